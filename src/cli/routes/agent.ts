/** The command most turns are: apart, so that none of the others has to be built for it. */

import { buildCommand } from '@stricli/core'
import type { CliContext } from '../world.ts'
import { jsonFlag, wholeNumber, workspaceFlag } from './flags.ts'
import type { AgentFlags } from './types.ts'

export const agent = buildCommand<AgentFlags, [], CliContext>({
  loader: async () => (await import('../commands/agent.ts')).agent,
  parameters: {
    flags: {
      message: {
        kind: 'parsed',
        parse: String,
        optional: true,
        brief: 'Run one turn with this message and exit; text on stdin is appended',
        placeholder: 'text',
      },
      ...workspaceFlag,
      model: {
        kind: 'parsed',
        parse: String,
        optional: true,
        brief: 'Provider and model for this call, e.g. local/mock',
        placeholder: 'provider/model',
      },
      autonomy: { kind: 'enum', values: ['readonly', 'supervised', 'full'], optional: true, brief: 'How much may happen without asking' },
      maxTurns: {
        kind: 'parsed',
        parse: wholeNumber,
        optional: true,
        brief: 'Tool rounds at most (default: limits.max_tool_rounds, 5)',
        placeholder: 'n',
      },
      continue: { kind: 'boolean', optional: true, withNegated: false, brief: 'Go on with the latest conversation' },
      resume: { kind: 'parsed', parse: String, optional: true, brief: 'Go on with this conversation', placeholder: 'id' },
      approveAllMedium: {
        kind: 'boolean',
        optional: true,
        withNegated: false,
        brief: 'Say yes beforehand to every medium-risk call of this run',
      },
      outputFormat: {
        kind: 'enum',
        values: ['text', 'json', 'stream-json'],
        optional: true,
        brief: 'text (default), one JSON object, or one AgentEvent a line',
      },
      ...jsonFlag,
    },
    aliases: { m: 'message', C: 'workspace', c: 'continue' },
  },
  docs: {
    brief: 'Talk to the agent: a conversation, or one turn with -m',
    customUsage: [
      { input: '', brief: 'a conversation in the terminal' },
      { input: '-m "What files are in this project?"', brief: 'one turn' },
      { input: '-c -m "And the largest?"', brief: 'go on with the latest conversation' },
    ],
  },
})
