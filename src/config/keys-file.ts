/** Reads `~/.braidclaw/keys.env`, where `onboard` and `login` keep API keys so that the configuration contains none. */

import { lstatSync } from 'node:fs'
import { attempt } from '../kit/errors.ts'
import { readAssignments } from './text/assignments.ts'
import { readConfigFile } from './text/read-toml-file.ts'

export type Keys = {
  readonly keys: { readonly [name: string]: string }
  /** Why the file, or one of its lines, is not used; the text never contains a key. */
  readonly problem?: string
}

/** Ignores a file that others may read, because they may know its keys already. Never throws. */
export function readKeys(path: string): Keys {
  const found = attempt(() => lstatSync(path, { throwIfNoEntry: false }))
  if (found === undefined) return { keys: {} }
  const unused = (why: string) => ({ keys: {}, problem: `${path} is not used: ${why}` })
  if (!found.isFile()) return unused('it is not a regular file')
  if (found.uid !== process.getuid?.()) return unused('it belongs to somebody else')
  if ((found.mode & 0o077) !== 0) return unused(`others may read or change it; run: chmod 600 ${path}`)
  const read = readConfigFile(path)
  if (read.state !== 'text') return unused(`it ${read.state === 'unusable' ? read.why : 'is gone'}`)
  const { assignments, odd } = readAssignments(read.text)
  const others = assignments
    .filter(({ name }) => !isKeyName(name))
    .map(({ line }) => ({ line, why: 'sets no key, and is left out: a name ends in _KEY or _TOKEN' }))
  const keys = Object.fromEntries(assignments.filter(({ name }) => isKeyName(name)).map(({ name, value }) => [name, value]))
  const [first] = [...odd, ...others]
  return { keys, ...(first ? { problem: `${path}:${first.line}: this line ${first.why}` } : {}) }
}

/** Only names of keys are accepted: the file cannot change our settings or the variables of other programs. */
export function isKeyName(name: string): boolean {
  return /^[A-Z][A-Z0-9_]*_(KEY|TOKEN)$/.test(name)
}

/** Accepts the characters that vendors use in keys, and none that could end a line or a quote. */
export function isKey(text: string): boolean {
  return /^[!-&(-~]{1,4096}$/.test(text)
}
