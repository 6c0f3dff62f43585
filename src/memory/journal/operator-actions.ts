/** Stores the plain text of operator actions outside of any run, because their receipts contain only its hash. */

import type { JsonObject } from '../../kit/json.ts'
import type { Store } from '../store.ts'

export type OperatorActions = ReturnType<typeof createOperatorActions>

export function createOperatorActions(store: Store) {
  return {
    /** Call it in the transaction that writes the receipt. */
    keep(receiptId: string, input: JsonObject): void {
      const put = store.sql<never, [string, string]>('INSERT OR REPLACE INTO operator_actions VALUES (?, ?)')
      store.write(() => put.run(receiptId, JSON.stringify(input)))
    },
    /** Returns JSON; undefined when nothing is stored for that receipt. */
    wordsOf(receiptId: string): string | undefined {
      const found = store.sql<{ input: string }, [string]>('SELECT input FROM operator_actions WHERE receipt_id = ?')
      return found.get(receiptId)?.input
    },
  }
}
