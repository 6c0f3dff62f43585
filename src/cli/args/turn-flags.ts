/** Flags of every turn at the command line, whoever it is shown to. */

import { proposeAgents } from './completions.ts'
import { jsonFlag, sandboxFlag, wholeNumber, workspaceFlag } from './flags.ts'

export const agentFlag = {
  agent: {
    kind: 'parsed',
    parse: String,
    optional: true,
    brief: 'Whose soul, session and log (default: default_agent)',
    placeholder: 'id',
    proposeCompletions: proposeAgents,
  },
} as const

export const turnFlags = {
  ...workspaceFlag,
  model: {
    kind: 'parsed',
    parse: String,
    optional: true,
    brief: 'Provider and model for this call, e.g. local/mock',
    placeholder: 'provider/model',
  },
  ...agentFlag,
  autonomy: { kind: 'enum', values: ['readonly', 'supervised', 'full'], optional: true, brief: 'How much may happen without asking' },
  maxTurns: {
    kind: 'parsed',
    parse: wholeNumber,
    optional: true,
    brief: 'Tool rounds at most (default: limits.max_tool_rounds)',
    placeholder: 'n',
  },
  continue: {
    kind: 'boolean',
    optional: true,
    withNegated: false,
    brief: 'Go on with the latest conversation of this folder (with an agent: the one of its session)',
  },
  resume: { kind: 'parsed', parse: String, optional: true, brief: 'Go on with this conversation', placeholder: 'id' },
  acceptAltered: {
    kind: 'boolean',
    optional: true,
    withNegated: false,
    brief: 'Go on although the record of the conversation was altered; a receipt says so',
  },
  ...sandboxFlag,
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
} as const
