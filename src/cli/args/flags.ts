/** Defines the flags that several commands share. */

import type { Flags } from './command.ts'
import { proposeAgents } from './completions.ts'

export const workspaceFlag = {
  workspace: {
    type: 'text',
    short: 'C',
    setting: 'workspace_dir',
    about: 'The folder to work in (without a config file: this one)',
  },
} as const satisfies Flags

export const sandboxFlag = {
  sandbox: {
    type: 'choice',
    values: ['auto', 'bubblewrap', 'landlock', 'none'],
    about: 'How commands are confined (default: auto); none runs them with all your rights',
  },
} as const satisfies Flags

export const toolsFlag = {
  tools: {
    type: 'text',
    about: 'Which tools: a folder of executables, a JSON file that lists some by name, or "default" for the built-in ones',
  },
} as const satisfies Flags

export const autonomyFlag = {
  autonomy: {
    type: 'choice',
    values: ['readonly', 'supervised', 'full'],
    setting: 'security.autonomy',
    about: 'How much may happen without asking',
  },
} as const satisfies Flags

export const approveFlag = {
  approveAllMedium: {
    type: 'boolean',
    also: 'auto',
    setting: 'security.approve_all_medium',
    about: 'Run commands and apply harmless changes without asking; the rest still asks',
  },
} as const satisfies Flags

export const modelFlag = {
  model: { type: 'text', setting: 'default_model', about: 'Provider and model for this call, e.g. local/mock' },
} as const satisfies Flags

export const agentFlag = {
  agent: {
    type: 'text',
    setting: 'default_agent',
    about: 'Whose soul, session and log',
    complete: proposeAgents,
  },
} as const satisfies Flags

/** For a tool or a loop that another program calls. */
export const loggingAgentFlag = {
  agent: { ...agentFlag.agent, about: 'In whose agent.jsonl the loop is logged' },
} as const satisfies Flags

export const jsonFlag = { json: { type: 'boolean', about: 'Print JSON for machines' } } as const satisfies Flags

export const limitOf20 = { limit: { type: 'whole', default: 20, about: 'How many at most' } } as const satisfies Flags

/** Defines the flags of the commands that use the six FIFOs. */
export const folderFlags = {
  fifoDir: { type: 'text', about: 'The folder of the six FIFOs (default: PLANCKCLAW_FIFOS, or /tmp/planckclaw)' },
  envFile: { type: 'text', about: 'NAME=value lines, read and never run (default: config.env in the home, if it is there)' },
} as const satisfies Flags
