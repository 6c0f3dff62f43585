/** [memory], [receipts] and [log]: what is kept, and what is said. */

import { logLevels } from '../config.ts'
import type { Setting } from '../setting.ts'

export const records: readonly Setting[] = [
  {
    key: 'memory.backend',
    type: 'choice',
    values: ['sqlite'],
    default: 'sqlite',
    project: 'refused',
    about: 'How conversations are kept.',
  },
  { key: 'memory.path', type: 'path', default: '~/.braidclaw/memory.sqlite', project: 'refused', about: 'The database file.' },
  {
    key: 'memory.agent_dir',
    type: 'path',
    env: 'PLANCKCLAW_DIR',
    absent: '~/.braidclaw/agents/default',
    project: 'refused',
    about: 'The folder of the agent "default": soul.md, history.jsonl, summary.md, pins.jsonl.',
  },
  {
    key: 'memory.history_max',
    type: 'whole',
    min: 3,
    max: 1_000_000,
    unit: 'messages',
    default: 200,
    env: 'HISTORY_MAX',
    project: 'refused',
    about: 'When a conversation has more messages than this since its last summary, the older ones are summarised.',
  },
  {
    key: 'memory.history_keep',
    type: 'whole',
    min: 2,
    max: 1_000_000,
    unit: 'messages',
    default: 40,
    env: 'HISTORY_KEEP',
    project: 'refused',
    about: 'How many of the newest are then left as they are. Must be less than history_max.',
  },
  {
    key: 'receipts.enabled',
    type: 'boolean',
    default: true,
    project: 'refused',
    about: 'Leave a receipt of every tool call that was attempted.',
  },
  { key: 'receipts.path', type: 'path', default: '~/.braidclaw/tool_receipts.log', project: 'refused', about: 'The log of receipts.' },
  { key: 'log.level', type: 'choice', values: logLevels, default: 'warn', about: 'The least important messages shown on stderr.' },
]
