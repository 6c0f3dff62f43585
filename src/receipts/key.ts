/** Reads and creates the secret key that seals receipts and other data: 32 random bytes as hex, in a file that only its owner can read. */

import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  unlinkSync,
  writeSync,
} from 'node:fs'
import { dirname } from 'node:path'
import { atEnd, attempt, hasCode } from '../kit/errors.ts'
import type { ReceiptPaths, Seal } from './contract.ts'
import { macOf } from './form/receipt.ts'
import { diskFailure, type ReceiptFailure } from './receipt-failure.ts'

export type ReadKey =
  | { readonly ok: true; readonly key: Uint8Array }
  | { readonly ok: false; readonly missing: boolean; readonly failure: ReceiptFailure }

/** Never creates a key: a new key beside an old log would make every old receipt look forged, or hide a real forgery. */
export function readKey(path: string): ReadKey {
  try {
    const file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
    using _end = atEnd(() => closeSync(file))
    return keyOf(path, fstatSync(file), () => readFileSync(file, 'latin1'))
  } catch (error) {
    if (hasCode(error, 'ENOENT'))
      return refused(`the receipt key "${path}" is missing; restore it from a backup, without it no receipt can be trusted`, true)
    const failure = diskFailure(path, error)
    if (!failure) throw error
    return { ok: false, missing: false, failure }
  }
}

function keyOf(path: string, stat: { mode: number; isFile(): boolean }, text: () => string): ReadKey {
  const mode = (stat.mode & 0o777).toString(8)
  if (!stat.isFile()) return refused(`the receipt key "${path}" is not a regular file; restore the key from a backup`)
  if (stat.mode & 0o077) return refused(`the receipt key "${path}" can be read by others (mode ${mode}); run: chmod 600 "${path}"`)
  const key = decoded(text())
  return key ? { ok: true, key } : refused(`"${path}" does not contain a receipt key (64 hex digits); restore it from a backup`)
}

/** Stands in the file where receipts are not sealed. */
const noKey = 'none'

/** Accepts 64 lower-case hex digits, or "none" for the empty key, with or without a final newline. */
function decoded(text: string): Uint8Array | undefined {
  const hex = text.endsWith('\n') ? text.slice(0, -1) : text
  if (hex === noKey) return new Uint8Array(0)
  return attempt(() => {
    const key = Uint8Array.fromHex(hex)
    return key.length === 32 && key.toHex() === hex ? key : undefined
  })
}

/** Call it only for a log without receipts; if a key exists, reads that instead. */
export function createKey(path: string, keyless = false): ReadKey {
  writeKeyOnce(path, `${keyless ? noKey : crypto.getRandomValues(new Uint8Array(32)).toHex()}\n`)
  return readKey(path)
}

/** Writes the file whole and only once, so that two processes that start at the same time end with one key. An existing file stays. */
export function writeKeyOnce(path: string, text: string): void {
  const draft = `${path}.${crypto.randomUUID()}.tmp`
  const file = openSync(draft, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, 0o600)
  try {
    writeSync(file, text)
    fsyncSync(file)
    linkSync(draft, path)
  } catch (error) {
    if (!hasCode(error, 'EEXIST')) throw error
  } finally {
    closeSync(file)
    unlinkSync(draft)
  }
}

function refused(message: string, missing = false): ReadKey {
  return { ok: false, missing, failure: { code: 'key', message } }
}

/** Seals data other than receipts. Creates the key when there are no receipts yet, as the first receipt would. */
export function createSealer(paths: ReceiptPaths): Seal {
  return (text) => sealWith(keyToSeal(paths), text)
}

/** Reads the key once for a check, and never creates it. */
export function sealsBy(keyPath: string): Seal {
  const key = readKey(keyPath)
  return (text) => sealWith(key, text)
}

/** The prefix keeps these seals distinct from the macs of receipts. */
function sealWith(key: ReadKey | undefined, text: string): string | undefined {
  return key?.ok ? macOf(key.key, `bc-seal1:${text}`) : undefined
}

function keyToSeal({ log, head, key, keyless }: ReceiptPaths): ReadKey | undefined {
  const found = readKey(key)
  if (found.ok || !found.missing || existsSync(log) || existsSync(head)) return found
  try {
    mkdirSync(dirname(key), { recursive: true, mode: 0o700 })
    return createKey(key, keyless)
  } catch (error) {
    if (!diskFailure(key, error)) throw error
    return undefined
  }
}
