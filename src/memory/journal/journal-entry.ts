/** Defines one line of the journal. */

import type { Json } from '../../kit/json.ts'

/** `at` is in milliseconds since 1970. `body` is the event as JSON. */
export type JournalEntry = {
  readonly seq: number
  readonly kind: 'external' | 'intent' | 'note'
  readonly type: string
  readonly at: number
  readonly body: Json
}
