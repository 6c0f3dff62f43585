/** Defines the settings of [memory]: where conversations are stored, and how many messages stay unsummarised. */

import type { Rows } from '../kit/settings.ts'

export const memoryRows = {
  backend: {
    type: 'choice',
    values: ['sqlite'],
    default: 'sqlite',
    init: 'written',
    about: 'How conversations are kept.',
  },
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
} as const satisfies Rows
