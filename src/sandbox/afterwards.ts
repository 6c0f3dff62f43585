/** Repairs the workspace after each command, and reports every repair in the result of the command. */

import type { Log, Spawn } from './confinement.ts'
import { dropRights } from './left-rights.ts'

/** `workspace` is a path without symbolic links. */
type After = { readonly workspace: string; readonly spawn: Spawn; readonly log: Log }

export function withRepairs({ workspace, spawn, log }: After): Spawn {
  return async (plan) => {
    // The commands of a private view change nothing in the workspace.
    if (plan.view === 'private') return spawn(plan)
    const since = Date.now()
    const ended = await spawn(plan)
    if (!ended.ok || plan.readOnly) return ended
    const undone = await removals(workspace, since)
    for (const what of undone) log('warn', `sandbox: ${what}`)
    return undone.length === 0 ? ended : { ...ended, undone }
  }
}

async function removals(workspace: string, since: number): Promise<string[]> {
  try {
    return (await dropRights({ workspace, since })).map(removalNote)
  } catch (error) {
    return [`the workspace could not be looked over (${error instanceof Error ? error.message : String(error)}); see what the command left`]
  }
}

function removalNote(path: string): string {
  return `the set-user-ID or set-group-ID bit of ${JSON.stringify(path)} was taken away: a command may not leave programs with rights`
}
