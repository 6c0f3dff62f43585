/** Says beside a tool's result, and so in its receipt, what confined the child processes of the call. */

import type { ToolResult } from '../runtime/port.ts'
import type { Ended, Spawn } from './process.ts'

type Sandbox = NonNullable<Extract<Ended, { ok: true }>['sandbox']>

/** No text a foreign program prints can become this key, as it could become a member of `metadata`. */
export const confinedBy = Symbol('confinedBy')

export type SayingResult = ToolResult & { readonly [confinedBy]?: Sandbox }

/** Absent when no child was started. All children of one program are confined alike. */
export async function sayingSandbox(spawn: Spawn, run: (spawn: Spawn) => Promise<ToolResult>): Promise<SayingResult> {
  const seen: { sandbox?: Sandbox } = {}
  const result = await run(async (plan) => {
    const ended = await spawn(plan)
    if (ended.ok && ended.sandbox !== undefined) seen.sandbox = ended.sandbox
    return ended
  })
  return seen.sandbox === undefined ? result : { ...result, [confinedBy]: seen.sandbox }
}
