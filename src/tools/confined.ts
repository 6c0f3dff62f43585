/** Says in a tool's result, and so in its receipt, what confined the child processes of the call. */

import type { ToolResult } from '../runtime/port.ts'
import type { Spawn } from './process.ts'

/** `metadata.sandbox` is absent when no child was started. All children of one program are confined alike. */
export async function sayingSandbox(spawn: Spawn, run: (spawn: Spawn) => Promise<ToolResult>): Promise<ToolResult> {
  const seen: { sandbox?: string } = {}
  const result = await run(async (plan) => {
    const ended = await spawn(plan)
    if (ended.ok && ended.sandbox !== undefined) seen.sandbox = ended.sandbox
    return ended
  })
  return seen.sandbox === undefined ? result : { ...result, metadata: { ...result.metadata, sandbox: seen.sandbox } }
}
