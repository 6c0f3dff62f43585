/** Which conversation in memory an agent's session goes on with: a file that holds its id. */

import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'

/** Undefined when there is none yet, or none that could be an id. @throws errno errors but ENOENT */
export function readPointer(path: string): string | undefined {
  try {
    const id = readFileSync(path, 'utf8').trim()
    return /^\w{1,100}$/.test(id) ? id : undefined
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  }
}

/** Replaced whole. @throws errno errors */
export function writePointer(path: string, id: string): void {
  const draft = `${path}.${crypto.randomUUID()}`
  try {
    write(draft, `${id}\n`)
    renameSync(draft, path)
  } catch (error) {
    rmSync(draft, { force: true })
    throw error
  }
}

function write(path: string, text: string): void {
  const options = { mode: 0o600, flag: 'wx' } as const
  try {
    writeFileSync(path, text, options)
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    writeFileSync(path, text, options)
  }
}

export function forgetPointer(path: string): void {
  rmSync(path, { force: true })
}
