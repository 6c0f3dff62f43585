/** What the operator did outside of any run, in clear: its receipt holds only the hash of these words. */

import type { JsonObject } from '../kit/json.ts'
import type { Store } from './store.ts'

export type OperatorActions = {
  /** In the transaction that writes the receipt. */
  keep(receiptId: string, input: JsonObject): void
  /** As JSON; undefined when nothing is kept of that receipt. */
  wordsOf(receiptId: string): string | undefined
}

export function createOperatorActions(store: Store): OperatorActions {
  return {
    keep(receiptId, input) {
      const put = store.sql<never, [string, string]>('INSERT OR REPLACE INTO operator_actions VALUES (?, ?)')
      store.write(() => put.run(receiptId, JSON.stringify(input)))
    },
    wordsOf(receiptId) {
      const found = store.sql<{ input: string }, [string]>('SELECT input FROM operator_actions WHERE receipt_id = ?')
      return found.get(receiptId)?.input
    },
  }
}
