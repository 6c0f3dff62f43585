/** Repairs the workspace after each command, and reports every repair in the result of the command. */

import type { Log, Spawn } from './confinement.ts'
import { dropRights } from './left-rights.ts'
import { nameDeepChanges } from './protect/deep-names.ts'
import { moveNewAside, namesIn } from './protect/new-names.ts'

/** `workspace` is a path without symbolic links. `names` is true when the sandbox guards protected names. */
type After = { readonly workspace: string; readonly spawn: Spawn; readonly log: Log; readonly names: boolean }

/** The times of files lag behind the clock by so many milliseconds at most. */
const CLOCK_MS = 10

export function withRepairs({ workspace, spawn, log, names }: After): Spawn {
  return async (plan) => {
    // The commands of a private view change nothing in the workspace.
    if (plan.view === 'private') return spawn(plan)
    const [since, before] = [Date.now(), names && !plan.readOnly ? namesIn(workspace) : undefined]
    const ended = await spawn(plan)
    if (!ended.ok || plan.readOnly) return ended
    const undone = await Promise.all([
      attempt(() => (before === undefined ? [] : moveNewAside(workspace, before))),
      attempt(() => (names ? nameDeepChanges(workspace, since - CLOCK_MS) : [])),
      attempt(async () => (await dropRights({ workspace, since })).map(removalNote)),
    ])
    for (const what of undone.flat()) log('warn', `sandbox: ${what}`)
    return undone.flat().length === 0 ? ended : { ...ended, undone: undone.flat() }
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
