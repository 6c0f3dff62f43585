/** Creates agents on Node: it drives the executable over stdio and offers the same interface as the library in Bun. */

import type { BraidClaw } from '../agent/agent-api.ts'
import { type RemoteOptions, startExecutable } from './link.ts'
import { functionThread, remoteAgent } from './remote-agent.ts'

export { veto } from '../../runtime/threads/thread.ts'

/**
 * Creates an agent that runs as a child process. The first run starts the child; a later run starts it again if it has died, and continues the
 * conversation.
 * @throws Error for a thread with functions, a provider, or a tool that cannot be described: they cannot leave this process
 */
export function createAgent(options: RemoteOptions = {}): BraidClaw {
  return remoteAgent(options, startExecutable(options))
}

/** Refuses, because threads with functions run only in Bun. @throws Error */
export async function verifyAgent(): Promise<never> {
  throw new Error(`${functionThread}; verify it in Bun, or the program's own rules with: braidclaw verify`)
}

/** Returns a failure that says how to replay: the journal is read in Bun, or by the program. */
export async function replay({ runId }: { readonly runId: string }) {
  return { ok: false, code: 'usage', message: `a run is replayed in Bun, or by the program: braidclaw replay ${runId}` } as const
}
