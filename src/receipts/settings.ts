/** Defines the settings of [receipts]: whether every tool call leaves a receipt, and where. */

import type { Rows } from '../kit/settings.ts'

export const receiptRows = {
  enabled: { type: 'boolean', default: true, init: 'written', about: 'Leave a receipt of every tool call that was attempted.' },
  hmac: { type: 'boolean', default: true, about: 'Whether a local key also seals each receipt (docs/proof.md).' },
  path: { type: 'path', default: '~/.braidclaw/tool_receipts.log', init: 'written', about: 'The log of receipts.' },
} as const satisfies Rows
