/** Implements `stdio`: prompts as lines of JSON on stdin, events as lines of JSON on stdout. */

import { createWriteStream } from 'node:fs'
import { version } from '../../../../package.json'
import { assertCommandLine } from '../../../channels/list.ts'
import { refusedBy } from '../../../channels/take-turn.ts'
import { stdinPieces } from '../../../channels/terminal/input-stream.ts'
import { onInterrupt } from '../../../channels/terminal/signals.ts'
import { FailureError } from '../../../host/failure.ts'
import { activeAgentOf } from '../../../host/setup/agent-profile.ts'
import { withFoundModels } from '../../../host/setup/provider-pool.ts'
import { loadSetup } from '../../../host/setup/setup.ts'
import { within } from '../../../kit/abort.ts'
import { errnoOf } from '../../../kit/errors.ts'
import type { BraidClaw, ProgramParts } from '../../../library/agent/agent-api.ts'
import { conversationAgent } from '../../../library/agent/conversation-agent.ts'
import { goodbyeMs, type SessionEnd, serveSession } from '../../../library/stdio/session.ts'
import { hideProcess } from '../../../sandbox/protect/hide.ts'
import { command, type Flags } from '../../args/command.ts'
import { acceptance, conversationOf, turnFlags } from '../../args/turn-flags.ts'
import { CliExit, exitCodes } from '../../exit.ts'
import { noteOffline } from '../../offline-notice.ts'
import { confinedFlags, confinerOf } from './confined-flags.ts'

const { outputFormat: _, json: __, image: ___, ...turn } = turnFlags satisfies Flags
const flags = { ...turn, ...confinedFlags } as const satisfies Flags

export const stdio = command({
  flags,
  examples: [
    ['<<< \'{"prompt": "List files in src/"}\'', 'one turn; several lines are several turns of one conversation'],
    ['--autonomy full < prompts.jsonl', 'nobody is asked'],
  ],
  details: () =>
    'Prints one AgentEvent a line and nothing else on stdout. It ends after the last turn. A first line {"hello": {"protocol": 1}} begins the protocol of docs/library.md: lines with ids, approvals, tools and models of the calling program, credits.',
  exits: [3, 4, 5, 6, 7, 8, 9, 10, 11, 130],
  async run(context, given) {
    // Commands must not write orders into our stdin.
    hideProcess()
    const setup = await withFoundModels(loadSetup(context, given))
    assertCommandLine(setup)
    const activeAgent = setup.config.defaultAgent === undefined ? undefined : await activeAgentOf(setup)
    noteOffline(setup)
    const which = conversationOf(given, activeAgent?.session)
    const opening = { setup, which, options: { ...activeAgent?.request, ...acceptance(given), channel: 'stdio' } }
    const confiner = await confinerOf(given)
    const { workspaceDir } = setup.config
    const end = await serve((client = { tools: [], rules: [] }) =>
      confiner ? confiner.confine({ setup, which, parts: client }) : conversationAgent(client, workspaceDir, () => opening),
    )
    if (end !== 'answered') throw new CliExit(exitCodes[end])
  },
})

/** Serves until stdin ends. @returns how the session ended, for the exit code. @throws FailureError `error` when stdout cannot be written */
async function serve(open: (client?: ProgramParts) => BraidClaw): Promise<SessionEnd> {
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
    open,
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
