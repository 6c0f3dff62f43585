/** Resolves the value of `-s`: the text itself, or the file that it names. */

import { readdirSync, readFileSync, statSync } from 'node:fs'
import { basename, dirname, resolve } from 'node:path'
import { readConfigFile } from '../../config/text/read-toml-file.ts'
import { FailureError } from '../../host/failure.ts'
import { attempt } from '../../kit/errors.ts'
import { didYouMean } from '../../kit/text.ts'

/** Longer than any path. */
const longestPath = 4096

type TextPlace = Readonly<Record<'cwd' | 'home', string>> & { /** The flag that has the value; default: -s. */ readonly flag?: string }

/**
 * Reads an existing file (a pipe too: `-s <(cat a b)`); any other value is the text. A missing path is an error: one word that begins with
 * /, ./, ../ or ~/, or ends in .md, .txt or, for a schema, .json. @throws FailureError `usage` for a missing path, a folder, or an unreadable file
 */
export function systemTextOf(given: string, { cwd, home, flag = '-s' }: TextPlace): { readonly text: string; readonly file?: string } {
  const wrong = (what: string) => new FailureError('usage', `${flag} "${given}"${what}`)
  if (given.includes('\n') || given.length > longestPath) return { text: given }
  const path = resolve(cwd, given.startsWith('~/') ? `${home}${given.slice(1)}` : given)
  const found = given.trim() === '' ? undefined : attempt(() => statSync(path))
  if (found?.isFIFO()) return { text: readFileSync(path, 'utf8'), file: path }
  if (found && !found.isDirectory()) {
    const read = readConfigFile(path)
    if (read.state === 'text') return { text: read.text, file: path }
    throw wrong(`: this file ${read.state === 'missing' ? 'does not exist any more' : read.why}`)
  }
  if (found && given.includes('/')) throw wrong(' is a folder; name a file in it')
  const looksLikeFile = flag === '-s' ? /^(~|\.{0,2})\/|\.(md|txt)$/ : /^(~|\.{0,2})\/|\.json$/
  if (!looksLikeFile.test(given) || /\s/.test(given)) return { text: given }
  throw wrong(` looks like a file, and there is none${meant(path)}; a text that only looks so can end in a space`)
}

function meant(path: string): string {
  const names = attempt(() => readdirSync(dirname(path)))
  return names ? didYouMean(basename(path), names) : `: the folder ${dirname(path)} does not exist`
}
