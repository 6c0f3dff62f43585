/** Implements `stdio`: prompts as lines of JSON on stdin, events as lines of JSON on stdout. */

import { version } from '../../../../package.json'
import { cliChannel } from '../../../channels/list.ts'
import { runStdio } from '../../../channels/stdio/channel.ts'
import { channelSettings } from '../../../config/config.ts'
import { activeAgentOf } from '../../../host/setup/agent-profile.ts'
import { withFoundModels } from '../../../host/setup/provider-pool.ts'
import { loadSetup } from '../../../host/setup/setup.ts'
import { command, type Flags } from '../../args/command.ts'
import { acceptance, conversationOf, turnFlags } from '../../args/turn-flags.ts'
import { CliExit, exitCodes } from '../../exit.ts'
import { noteOffline } from '../../offline-notice.ts'

const { outputFormat: _, json: __, ...flags } = turnFlags satisfies Flags

export const stdio = command({
  flags,
  examples: [
    ['<<< \'{"prompt": "List files in src/"}\'', 'one turn; several lines are several turns of one conversation'],
    ['--autonomy full < prompts.jsonl', 'nobody is asked'],
  ],
  details: () =>
    'Prints one AgentEvent a line and nothing else on stdout. It ends after the last turn. A first line {"hello": {"protocol": 1}} begins the protocol of docs/library.md: lines with ids, approvals, tools and models of the calling program, credits.',
  exits: [3, 4, 5, 6, 7, 8, 9, 10, 130],
  async run(context, given) {
    const { workspace, model, agent: id, autonomy, maxTurns, approveAllMedium } = given
    const setup = await withFoundModels(loadSetup(context, { workspace, model, agent: id, autonomy, maxTurns, approveAllMedium }))
    if (!channelSettings(setup.config, cliChannel).enabled)
      throw new CliExit(exitCodes.error, 'error: [channels.cli] enabled = false; this channel is switched off')
    const activeAgent = setup.config.defaultAgent === undefined ? undefined : await activeAgentOf(setup)
    noteOffline(setup)
    const which = conversationOf(given, activeAgent?.session)
    const end = await runStdio({ setup, which, options: { ...activeAgent?.request, ...acceptance(given) }, version })
    if (end !== 'answered') throw new CliExit(exitCodes[end])
  },
})
