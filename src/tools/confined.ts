/** Adds to a tool's result, and so to its receipt, which sandbox confined the child processes of the call. */

import type { ToolResult } from '../runtime/port.ts'
import type { Ended, Spawn } from './process.ts'

type Sandbox = NonNullable<Extract<Ended, { ok: true }>['sandbox']>

/** A symbol, because text that a foreign program prints can become a member of `metadata` but never this key. */
export const confinedBy = Symbol('confinedBy')

export type SandboxedResult = ToolResult & { readonly [confinedBy]?: Sandbox }

/** The key is absent when the call started no child. One program confines all its children in the same way. */
export async function recordSandbox(spawn: Spawn, run: (spawn: Spawn) => Promise<ToolResult>): Promise<SandboxedResult> {
  const seen: { sandbox?: Sandbox } = {}
  const result = await run(async (plan) => {
    const ended = await spawn(plan)
    if (ended.ok && ended.sandbox !== undefined) seen.sandbox = ended.sandbox
    return ended
  })
  return seen.sandbox === undefined ? result : { ...result, [confinedBy]: seen.sandbox }
}
