/** Defines the settings of [memory]: where conversations are stored, and how many messages stay unsummarised. */

import type { Rows } from '../kit/settings.ts'

export const memoryRows = {
  backend: { type: 'choice', values: ['sqlite'], default: 'sqlite', init: 'written', about: 'How conversations are kept.' },
  path: { type: 'path', default: '~/.braidclaw/memory.sqlite', init: 'written', about: 'The database file.' },
  agent_dir: {
    type: 'path',
    env: 'PLANCKCLAW_DIR',
    absent: '~/.braidclaw/agents/default',
    example: '~/.braidclaw/agents/default',
    about: 'The folder of the agent "default": soul.md, history.jsonl, summary.md, pins.jsonl.',
  },
  history_max: {
    type: 'whole',
    min: 3,
    max: 1_000_000,
    unit: 'messages',
    default: 200,
    env: 'HISTORY_MAX',
    about: 'When a conversation has more messages than this since its last summary, the older ones are summarised.',
  },
  history_keep: {
    type: 'whole',
    min: 2,
    max: 1_000_000,
    unit: 'messages',
    default: 40,
    env: 'HISTORY_KEEP',
    about: 'How many of the newest are then left as they are. Must be less than history_max.',
  },
  results_max_bytes: {
    type: 'whole',
    min: 0,
    max: 100_000_000_000,
    unit: 'bytes',
    default: 268_435_456,
    about: 'Results that were too long for a request are kept whole for the tool result_read, up to so many bytes; the oldest go first.',
  },
  retention_days: {
    type: 'whole',
    min: 1,
    max: 36_500,
    unit: 'days',
    absent: 'for ever',
    example: 365,
    about: 'How long "braidclaw home prune" keeps a conversation after its last turn. Nothing is deleted before that command runs.',
  },
} as const satisfies Rows
