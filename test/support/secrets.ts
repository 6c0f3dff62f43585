/** Searches everything that a run left behind for secrets: files and streams, in the usual encodings. */

import { lstatSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

export type Secret = { readonly name: string; readonly value: string }
export type Found = { readonly where: string; readonly secret: string; readonly spelling: string }

/**
 * Raw, inside a JSON string (also as PHP writes it), URL-encoded, and inside base64 at each of the three alignments, cut to the characters
 * that only the secret determines.
 */
export function spellings(value: string): readonly (readonly [name: string, text: string])[] {
  const json = JSON.stringify(value).slice(1, -1)
  const aligned = [0, 1, 2].map((shift) => {
    const text = Buffer.concat([Buffer.alloc(shift), Buffer.from(value)]).toString('base64')
    return [`base64+${shift}`, text.slice(shift === 0 ? 0 : shift + 1, Math.floor(((shift + Buffer.byteLength(value)) * 4) / 3))] as const
  })
  const url = encodeURIComponent(value)
  return [
    ['raw', value],
    ['json', json],
    ['json of PHP', json.replaceAll('/', '\\/')],
    ['json twice', JSON.stringify(json).slice(1, -1)],
    ['url', url],
    ['url lower', lowered(url)],
    ...aligned,
  ]
}

const lowered = (url: string) => url.replace(/%[0-9A-F]{2}/g, (code) => code.toLowerCase())

export function findIn(where: string, content: Uint8Array | string, secrets: readonly Secret[]): Found[] {
  const bytes = Buffer.from(content)
  return secrets.flatMap(({ name, value }) =>
    spellings(value)
      .filter(([, text]) => bytes.includes(text))
      .map(([spelling]) => ({ where, secret: name, spelling })),
  )
}

/** Searches every regular file below a folder except the `planted` ones, as relative paths; names count too. */
export function findBelow(root: string, secrets: readonly Secret[], planted: readonly string[] = []): Found[] {
  return filesBelow(root)
    .filter((path) => !planted.includes(path))
    .flatMap((path) => [...findIn(`name of ${path}`, path, secrets), ...findIn(path, readFileSync(join(root, path)), secrets)])
}

export function filesBelow(root: string): string[] {
  return readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((path) => lstatSync(join(root, path)).isFile())
}
