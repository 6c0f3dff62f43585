/** Writes files whole. */

import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { atEnd } from './errors.ts'

/** Replaces a file that only its owner can read, or creates it and its folder; readers and crashes find the old content or the new one. */
export function replaceFile(path: string, content: string | Uint8Array): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  const draft = `${path}.${crypto.randomUUID()}`
  using _end = atEnd(() => rmSync(draft, { force: true }))
  writeFileSync(draft, content, { mode: 0o600, flag: 'wx', flush: true })
  renameSync(draft, path)
}
