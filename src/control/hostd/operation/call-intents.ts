/** Notes each call on disk before its program starts, so that a killed hostd leaves no operation without a receipt. */

import { closeSync, constants, fsyncSync, mkdirSync, openSync, readdirSync, readFileSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { isObject, type JsonObject } from '../../../kit/json.ts'

export type Intent = { readonly call: string; readonly op: string; readonly details: JsonObject }

export type Intents = {
  /** On disk when it returns. @throws errno errors */
  begin(intent: Intent): void
  end(call: string): void
  /** What a killed hostd left, oldest first as far as the folder says. */
  left(): readonly Intent[]
}

export function createIntents(folder: string): Intents {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const pathOf = (call: string) => join(folder, `${call}.json`)
  return {
    begin(intent) {
      const bytes = Buffer.from(JSON.stringify(intent))
      const file = openSync(pathOf(intent.call), constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW, 0o600)
      try {
        // A full disk may take only a part without an error.
        if (writeSync(file, bytes) < bytes.length) throw Object.assign(new Error('the disk is full'), { code: 'ENOSPC' })
        fsyncSync(file)
      } catch (error) {
        rmSync(pathOf(intent.call), { force: true })
        throw error
      } finally {
        closeSync(file)
      }
    },
    end: (call) => rmSync(pathOf(call), { force: true }),
    left: () =>
      readdirSync(folder)
        .filter((name) => /^[0-9a-f-]{36}\.json$/.test(name))
        .map((name) => intentIn(join(folder, name), name.slice(0, -5))),
  }
}

/** A crash can leave an empty or cut file; its name still says which call it was. */
function intentIn(path: string, call: string): Intent {
  try {
    const value: unknown = JSON.parse(readFileSync(path, 'utf8'))
    if (isObject(value) && typeof value.op === 'string' && isObject(value.details))
      return { call, op: value.op, details: JSON.parse(JSON.stringify(value.details)) }
  } catch {
    // Reported as an unknown operation below.
  }
  return { call, op: 'unknown', details: {} }
}
