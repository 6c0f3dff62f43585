/** Creates agents on Node: it drives the executable over stdio and offers the same interface as the library in Bun. */

import { type BraidClaw, closedTurn, describeTool, isThread } from '../agent/agent-api.ts'
import { createLink, type RemoteOptions, runTurn } from './link.ts'

export { veto } from '../../runtime/threads/thread.ts'

/**
 * Creates an agent that runs as a child process. The first run starts the child; a later run starts it again if it has died, and continues the
 * conversation.
 * @throws Error for a thread with functions, a provider, or a tool that cannot be described: they cannot leave this process
 */
export function createAgent(options: RemoteOptions = {}): BraidClaw {
  const state = { closed: false }
  const link = createLink(options, helloOf(options))
  const { known } = link
  return {
    async *run(prompt, signal) {
      yield* state.closed ? closedTurn() : runTurn(link, prompt, signal)
    },
    addThread: () => Promise.resolve(`${functionThread}; give rules in JSON as "threads" when you create the agent`),
    async approve(gateId, { by = 'program', ...decision }) {
      const reply = await link.ask({ approve: { gateId, by, ...decision } })
      const rule = reply ? (reply.rejected ?? undefined) : 'approval'
      if (rule === undefined) known.gates.delete(gateId)
      return rule
    },
    changes: async (gateId) => (await link.ask({ changes: gateId }))?.changes ?? undefined,
    gate: (gateId) => known.gates.get(gateId),
    cancel: () => void link.send({ cancel: true }),
    async setMode(mode) {
      const reply = await link.ask({ mode })
      return reply ? (reply.rejected ?? undefined) : 'modes'
    },
    ending: () => known.ending,
    conversationId: () => known.conversation,
    runId: () => known.run,
    async close() {
      state.closed = true
      await link.end()
    },
  }
}

/** Refuses, because threads with functions run only in Bun. @throws Error */
export async function verifyAgent(): Promise<never> {
  throw new Error(`${functionThread}; verify it in Bun, or the program's own rules with: braidclaw verify`)
}

/** Returns a failure that says how to replay: the journal is read in Bun, or by the program. */
export async function replay({ runId }: { readonly runId: string }) {
  return { ok: false, code: 'usage', message: `a run is replayed in Bun, or by the program: braidclaw replay ${runId}` } as const
}

const functionThread = 'a thread with functions cannot join an agent in another process'

function helloOf({ threads = [], tools = [], modelCall, provider }: RemoteOptions): object {
  const functions = threads.find(isThread)
  if (functions) throw new Error(`thread ${JSON.stringify(functions.name)}: ${functionThread}; write it as a rule in JSON (docs/rules.md)`)
  if (provider) throw new Error('provider: it cannot answer an agent in another process; give a modelCall')
  return { tools: tools.filter(({ builtin }) => builtin === undefined).map(describeTool), threads, modelCall: modelCall !== undefined }
}
