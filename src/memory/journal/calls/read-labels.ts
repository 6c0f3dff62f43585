/** Keeps what the calls of a conversation have read, private data or content of others, so that its next run knows. */

import type { Label } from '../../../runtime/event.ts'
import type { Store } from '../../store.ts'

export type ReadLabels = {
  /** Call it in the transaction that journals the beginning of the call. */
  keep(conversationId: string, labels: readonly Label[]): void
  of(conversationId: string): Label[]
}

export function createReadLabels(store: Store): ReadLabels {
  return {
    keep(conversationId, labels) {
      const put = store.sql<never, [string, Label]>('INSERT OR IGNORE INTO read_labels VALUES (?, ?)')
      for (const label of labels) if (label !== 'sends') put.run(conversationId, label)
    },
    of: (conversationId) =>
      store
        .sql<{ label: Label }, [string]>('SELECT label FROM read_labels WHERE conversation_id = ? ORDER BY label')
        .all(conversationId)
        .map(({ label }) => label),
  }
}
