/** Runs `braidclaw stdio` as a channel: lines of JSON on stdin drive one conversation, and its events go to stdout. */

import { createWriteStream } from 'node:fs'
import type { ConversationChoice, Setup } from '../../host/api.ts'
import { FailureError } from '../../host/failure.ts'
import { within } from '../../kit/abort.ts'
import { errnoOf } from '../../kit/errors.ts'
import { conversationAgent, type Opening } from '../../library/agent/conversation-agent.ts'
import { goodbyeMs, type SessionEnd, serveSession } from '../../library/stdio/session.ts'
import { refusedBy } from '../take-turn.ts'
import { stdinPieces } from '../terminal/input-stream.ts'
import { onInterrupt } from '../terminal/signals.ts'

export type StdioOptions = {
  readonly setup: Setup
  readonly which: ConversationChoice
  readonly options: Omit<Opening['options'], 'channel'>
  readonly version: string
}

/** Serves until stdin ends. @returns how the session ended, for the exit code. @throws FailureError `error` when stdout cannot be written */
export async function runStdio({ setup, which, options, version }: StdioOptions): Promise<SessionEnd> {
  // The session escapes its lines, and waits for a slow reader: the printer would block this process.
  const output = createWriteStream('', { fd: 1, autoClose: false })
  const interrupt = onInterrupt(() => {})
  const state: { failure?: string | undefined } = {}
  output.on('error', (error) => Object.assign(state, { failure: errnoOf(error) ?? error.message }))
  const end = await serveSession({
    input: stdinPieces(),
    output,
    version,
    signal: interrupt.signal,
    open(client = { tools: [], rules: [] }) {
      const opening = { setup, which, options: { ...options, channel: 'stdio' } }
      return conversationAgent(client, setup.config.workspaceDir, () => opening)
    },
    async unanswered(gateId, agent) {
      const proposal = agent.gate(gateId)
      if (proposal) await refusedBy(agent)(gateId, proposal)
    },
  })
  interrupt.stop()
  // A reader that never reads must not keep the process.
  await within(goodbyeMs, new Promise<void>((resolve) => output.end(resolve)))
  // A reader that has gone is not a failure.
  if (state.failure === undefined || state.failure === 'EPIPE') return end
  throw new FailureError('error', `stdout cannot be written (${state.failure}); free some space, or send it elsewhere`)
}
