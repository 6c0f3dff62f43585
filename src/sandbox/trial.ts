/** Tests whether a sandbox works on this machine by running one command in it. */

import { errorText } from '../kit/errors.ts'
import { namespaceArguments } from './bubblewrap/namespaces.ts'
import { chooseCover, directWorkspace, viewArguments } from './bubblewrap/view.ts'
import type { Layer, SandboxKind } from './contract.ts'
import { doesNotWork, type Lack, notInstalled, notLinux } from './install.ts'
import { type Places, resolvePlaces } from './protect/places.ts'
import { fixedPath } from './trial-key.ts'

export type Trial = { readonly ok: true } | ({ readonly ok: false } & Lack)

/** Ends a sandbox that hangs; no other takes this long. */
const TRIAL_MS = 10_000

/** Writes nothing to disk. Never rejects. */
export async function trySandbox(kind: SandboxKind, asked: Places): Promise<Trial> {
  if (kind === 'none') return { ok: true }
  if (process.platform !== 'linux') return lacking(notLinux)
  const resolved = resolvePlaces(asked)
  if (!resolved.ok) return lacking(resolved.missing)
  return kind === 'landlock' ? tryLandlock() : tryBubblewrap(resolved.places)
}

async function tryLandlock(): Promise<Trial> {
  const { hasLandlock, noLandlock } = await import('./landlock/landlock.ts')
  return hasLandlock() ? { ok: true } : lacking(noLandlock)
}

/** Uses the namespaces and the mounts that every command gets. */
async function tryBubblewrap(places: Places): Promise<Trial> {
  const program = Bun.which('bwrap', { PATH: fixedPath })
  if (program === null) return { ok: false, ...notInstalled }
  // Searching for hidden files takes long, and they only add covers to mounts that this trial makes anyway.
  const without = new Set<Layer>(['hidden files'])
  const view = { places, secretPaths: [], blank: '', cover: chooseCover(without), scratchBytes: 2 ** 20, without }
  const inside = ['--remount-ro', '/', '--chdir', places.workspace, '--', '/bin/sh', '-c', ':']
  try {
    const argv = [program, ...namespaceArguments(without), ...viewArguments(view), ...directWorkspace(view), ...inside]
    const child = Bun.spawn(argv, { cwd: '/', env: {}, stdio: ['ignore', 'ignore', 'pipe'], timeout: TRIAL_MS, killSignal: 'SIGKILL' })
    const [complaint, code] = await Promise.all([child.stderr.text(), child.exited])
    if (code === 0) return { ok: true }
    return { ok: false, ...doesNotWork(complaint.trim() || `a trial ended with ${child.signalCode ?? code}`) }
  } catch (error) {
    return { ok: false, ...doesNotWork(errorText(error)) }
  }
}

function lacking(missing: string): Trial {
  return { ok: false, missing, why: missing, remedy: [] }
}
