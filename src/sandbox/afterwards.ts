/** Repairs the workspace after each command, and reports every repair in the result of the command. */

import type { Log, Spawn } from './confinement.ts'
import { dropRights } from './left-rights.ts'
import { moveNewAside, namesIn } from './protect/new-names.ts'

/** `workspace` is a path without symbolic links. `names` is true when the sandbox guards protected names. */
type After = { readonly workspace: string; readonly spawn: Spawn; readonly log: Log; readonly names: boolean }

export function withRepairs({ workspace, spawn, log, names }: After): Spawn {
  return async (plan) => {
    // The commands of a private view change nothing in the workspace.
    if (plan.view === 'private') return spawn(plan)
    const [since, before] = [Date.now(), names && !plan.readOnly ? namesIn(workspace) : undefined]
    const ended = await spawn(plan)
    if (!ended.ok || plan.readOnly) return ended
    const [moved, removed] = await Promise.all([
      attempt(() => (before === undefined ? [] : moveNewAside(workspace, before))),
      attempt(async () => (await dropRights({ workspace, since })).map(removalNote)),
    ])
    const undone = [...moved, ...removed]
    for (const what of undone) log('warn', `sandbox: ${what}`)
    return undone.length === 0 ? ended : { ...ended, undone, ...(moved.length > 0 ? { refused: true } : {}) }
  }
}

async function attempt(putRight: () => string[] | Promise<string[]>): Promise<string[]> {
  try {
    return await putRight()
  } catch (error) {
    return [`the workspace could not be looked over (${error instanceof Error ? error.message : String(error)}); see what the command left`]
  }
}

function removalNote(path: string): string {
  return `the set-user-ID or set-group-ID bit of ${JSON.stringify(path)} was taken away: a command may not leave programs with rights`
}
