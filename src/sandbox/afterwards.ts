/** What is put right in the workspace when a command is over, and said in its result. */

import type { Log, Spawn } from './port.ts'
import { dropSetGroup, type Left } from './set-group.ts'

/** `workspace` without symbolic links. */
type After = { readonly workspace: string; readonly spawn: Spawn; readonly log: Log }

export function puttingRight({ workspace, spawn, log }: After): Spawn {
  return async (plan) => {
    const since = Date.now()
    const ended = await spawn(plan)
    if (!ended.ok || plan.readOnly) return ended
    const undone = await putRight({ workspace, since }).catch((error: unknown) => [`the workspace could not be looked over: ${error}`])
    for (const what of undone) log('warn', `sandbox: ${what}`)
    return undone.length === 0 ? ended : { ...ended, undone }
  }
}

async function putRight(left: Left): Promise<string[]> {
  const programs = await dropSetGroup(left)
  return programs.map(
    (path) => `the set-group-ID bit of ${JSON.stringify(path)} was taken away: a command may not leave programs with rights`,
  )
}
