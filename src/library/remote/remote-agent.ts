/** Offers the interface of an agent for one that runs in the executable, over its stdio. */

import { type BraidClaw, closedTurn, describeTool, isThread, turnExtrasOf } from '../agent/agent-api.ts'
import { createLink, type RemoteOptions, runTurn, type StartProgram } from './link.ts'

/** Creates an agent in the program that `start` starts; with `cancelEnds`, `cancel` ends the program too. @throws Error as createAgent */
export function remoteAgent(options: RemoteOptions, start: StartProgram, { cancelEnds = false } = {}): BraidClaw {
  const state: { closed: boolean; ending?: Promise<void> } = { closed: false }
  const link = createLink(options, helloOf(options), start)
  const { known } = link
  return {
    options,
    async *run(prompt, options) {
      const { signal, images } = turnExtrasOf(options)
      if (images?.length)
        throw new Error('images: an agent in another process takes none; create it with createAgent of "braidclaw" in Bun')
      await state.ending
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
    cancel() {
      void link.send({ cancel: true })
      if (cancelEnds) state.ending = link.end()
    },
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

export const functionThread = 'a thread with functions cannot join an agent in another process'

function helloOf({ threads = [], tools = [], modelCall, provider }: RemoteOptions): object {
  const functions = threads.find(isThread)
  if (functions) throw new Error(`thread ${JSON.stringify(functions.name)}: ${functionThread}; write it as a rule in JSON (docs/rules.md)`)
  if (provider) throw new Error('provider: it cannot answer an agent in another process; give a modelCall')
  return { tools: tools.filter(({ builtin }) => builtin === undefined).map(describeTool), threads, modelCall: modelCall !== undefined }
}
