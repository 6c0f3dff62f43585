/** Stores where each conversation of a channel was heard last, so that a channel can send there after a restart. */

import type { Store } from '../store.ts'

export type AddressesTable = {
  keep(channel: string, conversationId: string, address: string): void
  of(channel: string, conversationId: string): string | undefined
}

export function createAddressesTable({ sql, writeLater }: Store): AddressesTable {
  const find = sql<{ address: string }, [string, string]>('SELECT address FROM channel_addresses WHERE channel = ? AND conversation_id = ?')
  const of: AddressesTable['of'] = (channel, conversationId) => find.get(channel, conversationId)?.address
  return {
    of,
    keep(channel, conversationId, address) {
      if (of(channel, conversationId) === address) return
      const put = sql<never, [string, string, string]>('INSERT OR REPLACE INTO channel_addresses VALUES (?, ?, ?)')
      writeLater(() => void put.run(channel, conversationId, address))
    },
  }
}
