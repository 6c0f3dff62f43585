/** A folder of one sandbox in our state, which no command can see: its filter, its proxy socket. */

import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const PREFIX = 'sandbox-'

/** `pool` is shared and stays: place holders between two commands. */
export type OwnFolder =
  | { readonly ok: true; readonly path: string; readonly pool: string; remove(): void }
  | { readonly ok: false; readonly missing: string }

/** Takes away what sandboxes of dead processes left. */
export function ownFolder(stateHome: string): OwnFolder {
  const run = join(stateHome, 'run')
  try {
    mkdirSync(run, { recursive: true, mode: 0o700 })
    sweep(run)
    const pool = join(run, 'place-holders')
    mkdirSync(pool, { recursive: true, mode: 0o700 })
    const path = mkdtempSync(join(run, PREFIX))
    writeFileSync(join(path, 'pid'), String(process.pid))
    return { ok: true, path, pool, remove: () => rmSync(path, { recursive: true, force: true }) }
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    return { ok: false, missing: `${run}: ${why}; the sandbox keeps its filter there, so make it writable` }
  }
}

function sweep(run: string): void {
  for (const name of readdirSync(run).filter((name) => name.startsWith(PREFIX))) {
    const path = join(run, name)
    if (!existsSync(`/proc/${owner(path)}`)) rmSync(path, { recursive: true, force: true })
  }
}

/** A folder without a number is just being made by somebody. */
function owner(folder: string): string {
  try {
    return readFileSync(join(folder, 'pid'), 'utf8')
  } catch {
    return 'self'
  }
}
