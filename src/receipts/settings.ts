/** Defines the settings of [receipts]: whether every tool call leaves a receipt, and where. */

import type { Rows } from '../kit/settings.ts'

export const receiptRows = {
  enabled: { type: 'boolean', default: true, init: 'written', about: 'Leave a receipt of every tool call that was attempted.' },
  hmac: {
    type: 'boolean',
    default: true,
    about:
      'Whether a local key also seals each receipt (HMAC-SHA256). Without it whoever can write the log can forge it. Counts from the first receipt of a home.',
  },
  path: { type: 'path', default: '~/.braidclaw/tool_receipts.log', init: 'written', about: 'The log of receipts.' },
} as const satisfies Rows
