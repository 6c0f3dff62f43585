/** Reads and creates the secret key that seals receipts: 32 random bytes as hex, in a file that only its owner can read. */

import { closeSync, constants, fstatSync, fsyncSync, linkSync, openSync, readFileSync, unlinkSync, writeSync } from 'node:fs'
import { hasCode } from '../kit/errors.ts'
import { diskFailure, isMissing, type ReceiptFailure } from './receipt-failure.ts'

export type ReadKey =
  | { readonly ok: true; readonly key: Uint8Array }
  | { readonly ok: false; readonly missing: boolean; readonly failure: ReceiptFailure }

/** Never creates a key: a new key beside an old log would make every old receipt look forged, or hide a real forgery. */
export function readKey(path: string): ReadKey {
  try {
    const file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
    try {
      return keyOf(path, fstatSync(file), () => readFileSync(file, 'latin1'))
    } finally {
      closeSync(file)
    }
  } catch (error) {
    if (isMissing(error))
      return refused(`the receipt key "${path}" is missing; restore it from a backup, without it no receipt can be trusted`, true)
    const failure = diskFailure(path, error)
    if (!failure) throw error
    return { ok: false, missing: false, failure }
  }
}

function keyOf(path: string, stat: { mode: number; isFile(): boolean }, text: () => string): ReadKey {
  const mode = (stat.mode & 0o777).toString(8)
  if (!stat.isFile()) return refused(`the receipt key "${path}" is no regular file; put the key there again from a backup`)
  if (stat.mode & 0o077) return refused(`the receipt key "${path}" can be read by others (mode ${mode}); run: chmod 600 "${path}"`)
  const key = decoded(text())
  return key ? { ok: true, key } : refused(`"${path}" holds no receipt key (64 hex digits); restore it from a backup`)
}

/** Accepts 64 lower-case hex digits, with or without a final newline. */
function decoded(text: string): Uint8Array | undefined {
  const hex = text.endsWith('\n') ? text.slice(0, -1) : text
  try {
    const key = Uint8Array.fromHex(hex)
    return key.length === 32 && key.toHex() === hex ? key : undefined
  } catch {
    return undefined
  }
}

/** Call it only for a log without receipts. Creates the file atomically; if one exists, reads that instead. */
export function createKey(path: string): ReadKey {
  const draft = `${path}.${crypto.randomUUID()}.tmp`
  const file = openSync(draft, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, 0o600)
  try {
    writeSync(file, `${crypto.getRandomValues(new Uint8Array(32)).toHex()}\n`)
    fsyncSync(file)
    linkSync(draft, path)
  } catch (error) {
    if (!hasCode(error, 'EEXIST')) throw error
  } finally {
    closeSync(file)
    unlinkSync(draft)
  }
  return readKey(path)
}

function refused(message: string, missing = false): ReadKey {
  return { ok: false, missing, failure: { code: 'key', message } }
}
