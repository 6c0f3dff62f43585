/** Implements `log EVENT [MESSAGE]`: it adds a script's own line to agent.jsonl, beside those of the turns. */

import { agentProfileOf } from '../../../host/setup/agent-profile.ts'
import { loadSetup } from '../../../host/setup/setup.ts'
import { appendTrace } from '../../../memory/agent-files/trace-file.ts'
import type { Arguments, Command } from '../../args/command.ts'
import { agentFlag } from '../../args/flags.ts'
import { CliExit, exitCodes } from '../../exit.ts'

const args = {
  event: { type: 'text', about: 'What happened, one word' },
  message: { type: 'text', optional: true, about: 'More about it (default: none)' },
} as const satisfies Arguments

export const log = {
  flags: agentFlag,
  args: args,
  examples: [['deploy "to staging"', 'a line in agent.jsonl']],
  run(context, { agent }, { event, message = '' }) {
    if (!/^[\w.-]{1,64}$/.test(event))
      throw new CliExit(exitCodes.usage, `error: "${event}" is no event; write one word, such as deploy_done`)
    const { redactor, ...setup } = loadSetup(context, { agent })
    const { id, paths } = agentProfileOf(setup)
    appendTrace(paths.log, { agent: id, event, message: redactor.text(message) }, Date.now())
  },
} as const satisfies Command<typeof agentFlag, typeof args>
