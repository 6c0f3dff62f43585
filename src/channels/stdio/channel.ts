/** Runs `braidclaw stdio` as a channel: lines of JSON on stdin drive one conversation, and its events go to stdout. */

import { createWriteStream } from 'node:fs'
import type { Conversation, ConversationChoice, ConversationOptions, Setup } from '../../host/api.ts'
import { FailureError } from '../../host/failure.ts'
import { within } from '../../kit/abort.ts'
import { errnoOf } from '../../kit/errors.ts'
import { conversationAgent, openFor, programTools } from '../../library/agent/conversation-agent.ts'
import { goodbyeMs, type SessionEnd, serveSession } from '../../library/stdio/session.ts'
import { modelCallProvider } from '../../providers/model-call.ts'
import { withUsableReplies } from '../../providers/usable-reply.ts'
import { refusedBy } from '../take-turn.ts'
import { stdinPieces } from '../terminal/input-stream.ts'
import { onInterrupt } from '../terminal/signals.ts'

export type StdioOptions = {
  readonly setup: Setup
  readonly which: ConversationChoice
  readonly options: Omit<ConversationOptions, 'setup' | 'channel'>
  readonly version: string
}

/** Serves until stdin ends. @returns how the session ended, for the exit code. @throws FailureError `error` when stdout cannot be written */
export async function runStdio({ setup, which, options, version }: StdioOptions): Promise<SessionEnd> {
  // The session escapes its lines, and waits for a slow reader: the printer would block this process.
  const output = createWriteStream('', { fd: 1, autoClose: false })
  const interrupt = onInterrupt(() => {})
  const state: { conversation?: Conversation; failure?: string | undefined } = {}
  output.on('error', (error) => Object.assign(state, { failure: errnoOf(error) ?? error.message }))
  const end = await serveSession({
    input: stdinPieces(),
    output,
    version,
    signal: interrupt.signal,
    open(client) {
      const tools = programTools(client?.tools ?? [], setup.config.workspaceDir)
      const provider = client?.modelCall ? withUsableReplies(modelCallProvider(client.modelCall)) : options.provider
      const own = client?.rules.length ? { ...setup, ownRules: client.rules } : setup
      return conversationAgent(async () => {
        const opened = await openFor(own, which, { ...options, channel: 'stdio', provider, programTools: tools })
        state.conversation = opened.conversation
        return opened
      })
    },
    async unanswered(gateId) {
      const { conversation } = state
      const proposal = conversation?.gate(gateId)
      if (conversation && proposal) await refusedBy(conversation)(gateId, proposal)
    },
  })
  interrupt.stop()
  // A reader that never reads must not keep the process.
  await within(goodbyeMs, new Promise<void>((resolve) => output.end(resolve)))
  // A reader that has gone is not a failure.
  if (state.failure === undefined || state.failure === 'EPIPE') return end
  throw new FailureError('error', `stdout cannot be written (${state.failure}); free some space, or send it elsewhere`)
}
