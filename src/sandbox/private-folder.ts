/** A folder of one sandbox in our state, which no command can see: its filter, its proxy socket. Its name says which process owns it. */

import { mkdirSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, realpathSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { statFields } from '../kit/proc.ts'
import { gateArgument } from './bubblewrap/start-gate.ts'
import type { Log } from './confinement.ts'
import { endLeftovers } from './leftovers.ts'

/** `pool` is shared and stays: place holders between two commands. */
export type OwnFolder =
  | { readonly ok: true; readonly path: string; readonly pool: string; remove(): void }
  | { readonly ok: false; readonly missing: string }

/** Ends and takes away what sandboxes of dead processes left. */
export function ownFolder(stateHome: string, log: Log): OwnFolder {
  const run = join(stateHome, 'run')
  try {
    mkdirSync(run, { recursive: true, mode: 0o700 })
    clearLeftovers(stateHome, log)
    const pool = join(run, 'place-holders')
    mkdirSync(pool, { recursive: true, mode: 0o700 })
    const path = mkdtempSync(join(run, `sandbox-${pidNamespace()}-${process.pid}-${startOf(process.pid)}-`))
    return { ok: true, path, pool, remove: () => rmSync(path, { recursive: true, force: true }) }
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    return { ok: false, missing: `${run}: ${why}; the sandbox keeps its filter there, so make it writable` }
  }
}

/**
 * Ends the sandbox processes of killed processes of ours, and removes their folders. As long as such a process may live, its folder is there:
 * where there is none, this is one look into a folder. @returns how many processes were ended
 */
export function clearLeftovers(stateHome: string, log: Log): number {
  const run = join(stateHome, 'run')
  const left = namesIn(run).filter(isOfDeadOwner)
  const ended = left.length === 0 ? 0 : endLeftovers(new Set(left.map((name) => join(realpathSync(run), name, gateArgument.name))))
  for (const name of left) rmSync(join(run, name), { recursive: true, force: true })
  if (ended > 0) log('warn', 'sandbox processes of a killed run ended', { count: ended })
  return ended
}

/** A process number means something in its own PID namespace alone: what another container left is for that container. */
function isOfDeadOwner(name: string): boolean {
  const [, namespace, pid = '', started] = /^sandbox-(\d+)-(\d+)-(\d+)-/.exec(name) ?? []
  if (namespace === undefined || namespace !== pidNamespace()) return false
  const now = startOf(Number(pid))
  return now !== undefined && now !== started
}

function pidNamespace(): string | undefined {
  return /\d+/.exec(readlinkSync('/proc/self/ns/pid'))?.[0]
}

/** When a process started, in ticks since the boot; "gone" when there is none, undefined when that cannot be seen. */
function startOf(pid: number): string | undefined {
  try {
    const field = statFields(readFileSync(`/proc/${pid}/stat`, 'latin1'))
    return field(3) === 'Z' || field(3) === 'X' ? 'gone' : field(22)
  } catch (error) {
    if (error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ESRCH')) return 'gone'
    return undefined
  }
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}
