/** Defines the [tools] settings: the operator's own tools, and the backend that runs the loop of a turn. */

import type { Rows } from '../kit/settings.ts'

export const toolBackends = ['native', 'bash', 'llm'] as const

export const toolRows = {
  dir: {
    type: 'path',
    default: '~/.braidclaw/tools',
    about: 'The folder of your own tools: executables that answer --describe (docs/tools.md).',
  },
  executables: {
    type: 'words',
    form: 'tool',
    default: [],
    project: 'stricter',
    about: 'Which of them every turn offers to the model. Without being named here or by --tools, none is.',
  },
  backend: {
    type: 'choice',
    values: toolBackends,
    default: 'native',
    env: 'BRAIDCLAW_TOOL_BACKEND',
    about: 'Who runs the loop of a turn with --tools: ourselves, or the script for bash or llm (docs/tool-backends.md).',
  },
} as const satisfies Rows
