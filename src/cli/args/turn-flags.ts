/** Defines the flags of every turn at the command line, for all output formats. */

import type { Flags, Given } from './command.ts'
import { agentFlag, approveFlag, autonomyFlag, jsonFlag, modelFlag, sandboxFlag, workspaceFlag } from './flags.ts'

export const roundsFlag = {
  maxTurns: { type: 'whole', setting: 'limits.max_tool_rounds', about: 'Tool rounds at most' },
} as const satisfies Flags

/** Flags about turns that a process takes which stays and answers on channels. */
export const serverFlags = {
  ...workspaceFlag,
  ...sandboxFlag,
  ...agentFlag,
  ...modelFlag,
  ...autonomyFlag,
  ...roundsFlag,
  ...approveFlag,
} as const satisfies Flags

export const turnFlags = {
  ...workspaceFlag,
  ...modelFlag,
  ...agentFlag,
  ...autonomyFlag,
  ...roundsFlag,
  continue: {
    type: 'boolean',
    short: 'c',
    about: 'Go on with the latest conversation of this folder (with an agent: the one of its session)',
  },
  resume: { type: 'text', about: 'Go on with this conversation' },
  acceptAltered: { type: 'boolean', about: 'Go on although the record of the conversation was altered; a receipt says so' },
  ...sandboxFlag,
  ...approveFlag,
  outputFormat: {
    type: 'choice',
    values: ['text', 'json', 'stream-json'],
    about: 'text (default), one JSON object, or one AgentEvent a line',
  },
  ...jsonFlag,
} as const satisfies Flags

export type TurnFlags = Given<typeof turnFlags>

export const filterFlags = {
  system: { type: 'text', short: 's', about: 'System prompt, in place of the soul: a text, or a file' },
  ...turnFlags,
  model: { ...turnFlags.model, short: 'm' },
  tools: { type: 'text', about: 'Tools that the model may call: default (the built-in), a folder of executables, or a JSON list' },
  toolBackend: { type: 'text', about: 'Who runs the loop of a turn with --tools: native (default), bash or llm' },
} as const satisfies Flags

export type FilterFlags = Given<typeof filterFlags>
