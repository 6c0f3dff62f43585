/** Determines by a trial whether commands can be confined here: doctor, the list of tools and the model's tool list use the same result. */

import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { SandboxKind } from '../../../sandbox/confinement.ts'
import type { Trial } from '../../../sandbox/trial.ts'
import { trialKey } from '../../../sandbox/trial-key.ts'
import type { Setup } from '../../api.ts'

/** Runs the trial now, ignores earlier results, and stores nothing. */
export async function trySandboxNow(setup: Setup, kind: SandboxKind = 'auto'): Promise<Trial> {
  const { config, paths, context } = setup
  const { trySandbox } = await import('../../../sandbox/trial.ts')
  const trial = await trySandbox(kind, { workspace: config.workspaceDir, home: context.env.HOME || '/', stateHome: paths.home })
  if (!trial.ok) forgetSandbox(setup)
  return trial
}

/** Forgets the stored success after a failure, so that the next turn tries again. */
export function forgetSandbox(setup: Setup): void {
  rmSync(fileOf(setup), { force: true })
}

/**
 * Returns the stored or a new result. A success is stored until the machine reboots, or the workspace, bubblewrap or a relevant setting
 * changes. A failure is never stored, because somebody may fix the cause.
 */
export async function sandboxState(setup: Setup, kind: SandboxKind = 'auto'): Promise<Trial> {
  // Nothing needs a trial, and loading the trial module takes milliseconds.
  if (kind === 'none') return { ok: true }
  const key = keyFor(setup, kind)
  if (key === undefined) return trySandboxNow(setup, kind)
  if (kept(setup) === key) return { ok: true }
  const trial = await trySandboxNow(setup, kind)
  if (trial.ok) keep(setup, key)
  return trial
}

/** @returns whether a stored success still holds; it tries nothing */
export function isSandboxTried(setup: Setup, kind: SandboxKind): boolean {
  const key = keyFor(setup, kind)
  return key !== undefined && kept(setup) === key
}

/** @returns undefined when a trial costs nothing or bubblewrap is not there */
function keyFor({ config }: Setup, kind: SandboxKind): string | undefined {
  const key = kind === 'auto' || kind === 'bubblewrap' ? trialKey() : undefined
  return key && `${config.workspaceDir}\n${key}`
}

function fileOf({ paths }: Setup): string {
  return join(paths.home, 'run', 'sandbox-works')
}

function kept(setup: Setup): string | undefined {
  try {
    return readFileSync(fileOf(setup), 'utf8')
  } catch {
    return undefined
  }
}

/** When the result cannot be stored, every turn runs the trial. */
function keep(setup: Setup, key: string): void {
  const file = fileOf(setup)
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
    writeFileSync(file, key, { mode: 0o600 })
  } catch (error) {
    setup.log('debug', 'sandbox trial not kept', { why: error instanceof Error ? error.message : String(error) })
  }
}
