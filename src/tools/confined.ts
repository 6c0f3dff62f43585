/** Adds to a tool's result how its child processes ran: in which sandbox, and on which view of the workspace. */

import type { ToolResult } from '../runtime/port.ts'
import type { Spawn, SpawnResult } from './process.ts'

type Ran = Extract<SpawnResult, { ok: true }>

/** Tells how the children of a call ran. `view` holds their changes; its receiver applies or drops it. `dropped`: it was dropped already. */
export type Confined = Pick<Ran, 'sandbox' | 'view'> & { readonly mode?: Ran['mode'] | 'dropped' }

/** A symbol, because text that a foreign program prints can become a member of `metadata` but never this key. */
export const confinedBy = Symbol('confinedBy')

export type SandboxedResult = ToolResult & { readonly [confinedBy]?: Confined }

/** The key is absent when the call started no child. One program confines all its children in the same way. */
export async function recordSandbox(spawn: Spawn, run: (spawn: Spawn) => Promise<ToolResult>): Promise<SandboxedResult> {
  const seen: { confined?: Ran } = {}
  const result = await run(async (plan) => {
    // The changes of two commands of one call could contradict each other.
    if (seen.confined?.view !== undefined && plan.view === 'private') return { ok: false, message: 'a call runs one command that writes' }
    const ended = await spawn(plan)
    if (ended.ok && ended.sandbox !== undefined) seen.confined = ended
    return ended
  })
  return seen.confined === undefined ? result : sandboxed(result, seen.confined)
}

/** Adds how a command ran in the background, where no call waited for it. */
export function sandboxed(result: ToolResult, ended: SpawnResult): SandboxedResult {
  if (!ended.ok || ended.sandbox === undefined) return result
  return { ...result, [confinedBy]: { sandbox: ended.sandbox, mode: ended.mode, view: ended.view } }
}
