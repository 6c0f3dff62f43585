/** Defines the [tools] settings: the operator's own tools, and the backend that runs the loop of a turn. */

import type { Rows } from '../kit/settings.ts'

export const toolBackends = ['native', 'bash', 'llm', 'elixir'] as const

export const toolRows = {
  dir: { type: 'path', default: '~/.braidclaw/tools', about: 'The folder of your own tools (docs/tools.md).' },
  executables: { type: 'words', form: 'tool', default: [], project: 'stricter', about: 'Which of them every turn offers to the model.' },
  env: {
    type: 'words',
    form: 'toolVariable',
    default: ['SHELLCLAW_STUB'],
    about: 'Variables that executable tools get: NAME, or TOOL:NAME for one tool.',
  },
  backend: {
    type: 'choice',
    values: toolBackends,
    default: 'native',
    env: 'BRAIDCLAW_TOOL_BACKEND',
    about: 'Who runs the loop of a turn with --tools (docs/tool-backends.md).',
  },
  web_search: {
    type: 'choice',
    values: ['brave', 'tavily', 'exa', 'searxng', 'off'],
    absent: 'the first that has a key (docs/tools.md)',
    about: 'Who answers the tool web_search.',
  },
  skills_bytes: {
    type: 'whole',
    unit: 'bytes',
    min: 0,
    max: 65_536,
    default: 4_096,
    about: 'The room of the list of skills in the system prompt (docs/slash-commands.md).',
  },
  browser: { type: 'boolean', default: false, about: 'Offer the tool browser where Chromium is installed (docs/browser.md).' },
} as const satisfies Rows
