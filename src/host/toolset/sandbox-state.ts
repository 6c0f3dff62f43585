/** Whether commands can be confined here, because it was tried: one answer for doctor, for the list of tools and for what a model is offered. */

import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { SandboxKind } from '../../sandbox/confinement.ts'
import type { Trial } from '../../sandbox/trial.ts'
import { trialKey } from '../../sandbox/trial-key.ts'
import type { Setup } from '../api.ts'

/** Tried now, whatever was found before; keeps nothing. */
export async function trySandboxNow(setup: Setup, kind: SandboxKind = 'auto'): Promise<Trial> {
  const { config, paths, context } = setup
  const { trySandbox } = await import('../../sandbox/trial.ts')
  const trial = await trySandbox(kind, { workspace: config.workspaceDir, home: context.env.HOME || '/', stateHome: paths.home })
  if (!trial.ok) forgetSandbox(setup)
  return trial
}

/** It did not work after all: the next turn tries again. */
export function forgetSandbox(setup: Setup): void {
  rmSync(fileOf(setup), { force: true })
}

/**
 * That it works is kept until the machine starts anew, or the workspace, bubblewrap or a setting it depends on changes. That it does not is
 * never kept: somebody may mend it.
 */
export async function sandboxState(setup: Setup, kind: SandboxKind = 'auto'): Promise<Trial> {
  // There is nothing to try, and what would try it takes milliseconds to load.
  if (kind === 'none') return { ok: true }
  const key = kind === 'auto' || kind === 'bubblewrap' ? trialKey() : undefined
  if (key === undefined) return trySandboxNow(setup, kind)
  const whole = `${setup.config.workspaceDir}\n${key}`
  if (kept(setup) === whole) return { ok: true }
  const trial = await trySandboxNow(setup, kind)
  if (trial.ok) keep(setup, whole)
  return trial
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

/** Where it cannot be kept it is tried each time. */
function keep(setup: Setup, key: string): void {
  const file = fileOf(setup)
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
    writeFileSync(file, key, { mode: 0o600 })
  } catch (error) {
    setup.log('debug', 'sandbox trial not kept', { why: error instanceof Error ? error.message : String(error) })
  }
}
