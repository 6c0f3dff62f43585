/** Unpacks a tar archive of a stranger into an empty folder: files, folders and links, and nothing that a plugin or skill may not hold. */

import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { grouped, quote } from '../../../../kit/text.ts'
import { FailureError } from '../../../failure.ts'
import { mostFiles } from './folder-files.ts'

const block = 512

/** Leaves out the first folder of each path, in which npm and git put everything. @throws FailureError that says what is wrong with it */
export function unpackTar(tar: Buffer, to: string): void {
  const links: (readonly [path: string, target: string])[] = []
  let count = 0
  for (const { type, name, mode, link, content } of entriesOf(tar)) {
    const [, ...parts] = name.split('/').filter((part) => part !== '.' && part !== '')
    if (name.startsWith('/') || parts.includes('..')) throw refusal(`${quote(name)} leads out of it`)
    if (parts.length === 0 || type === 'folder') continue
    if (type === 'other') throw refusal(`${quote(name)} is neither a file, a folder nor a link`)
    if ((mode & 0o6000) !== 0) throw refusal(`${quote(name)} is a set-user-ID or set-group-ID program`)
    count += 1
    if (count > mostFiles) throw refusal(`it has more than ${grouped(mostFiles)} files, which are the limit`)
    const path = join(to, ...parts)
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    // Links come last, so that no file is written through one.
    if (type === 'link') links.push([path, link])
    else writeFileSync(path, content, { flag: 'wx', mode: (mode & 0o100) === 0 ? 0o600 : 0o700 })
  }
  for (const [path, target] of links) symlinkSync(target, path)
}

function refusal(why: string): FailureError {
  return new FailureError('error', `the archive is refused: ${why}`)
}

type TarEntry = { type: 'file' | 'folder' | 'link' | 'other'; name: string; mode: number; link: string; content: Buffer }

const types: { readonly [flag: string]: TarEntry['type'] } = { '0': 'file', '\0': 'file', '2': 'link', '5': 'folder' }

function* entriesOf(tar: Buffer): Generator<TarEntry> {
  let long: { readonly [key: string]: string } = {}
  for (let at = 0; at + block <= tar.length && tar[at] !== 0; ) {
    const text = (from: number, length: number) => tar.toString('utf8', at + from, at + from + length).replace(/\0.*$/s, '')
    const [size, mode] = [Number.parseInt(text(124, 12), 8), Number.parseInt(text(100, 8), 8)]
    if (!(size >= 0) || !(mode >= 0) || at + block + size > tar.length) throw refusal('it is damaged')
    const content = tar.subarray(at + block, at + block + size)
    const flag = String.fromCharCode(tar[at + 156] ?? 0)
    if (flag === 'x') long = paxOf(content)
    else if (flag !== 'g') {
      const prefix = text(257, 5) === 'ustar' ? text(345, 155) : ''
      const name = long.path ?? (prefix === '' ? text(0, 100) : `${prefix}/${text(0, 100)}`)
      yield { type: types[flag] ?? 'other', name, mode, link: long.linkpath ?? text(157, 100), content }
      long = {}
    }
    at += block + Math.ceil(size / block) * block
  }
}

/** Reads lines of the form `LENGTH KEY=VALUE`; the length is that of the line. */
function paxOf(content: Buffer): { readonly [key: string]: string } {
  const found = new Map<string, string>()
  for (let at = 0; at < content.length; ) {
    const length = Number.parseInt(content.toString('latin1', at, at + 20), 10)
    if (!(length > 0)) throw refusal('it is damaged')
    const [, key = '', value = ''] = /^\d+ ([^=]*)=(.*)\n$/s.exec(content.toString('utf8', at, at + length)) ?? []
    found.set(key, value)
    at += length
  }
  return Object.fromEntries(found)
}
