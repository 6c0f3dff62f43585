/** Remembers the latest address of each conversation on a channel, so that the channel can send messages unasked. */

export type Addresses = {
  /** @returns a function to call with the conversation that takes the message from this address */
  note(address: string): (conversationId: string) => void
  /** Returns an address itself unchanged. @throws Error when no message of that conversation came through this channel */
  of(conversation: string): string
}

export function createAddresses(): Addresses {
  const latest = new Map<string, string>()
  return {
    note: (address) => (conversationId) => void latest.set(conversationId, address),
    of(conversationId) {
      const address = latest.get(conversationId) ?? (conversationId.startsWith('conversation_') ? undefined : conversationId)
      if (address === undefined) throw new Error(`nobody of ${conversationId} was heard on this channel, so nothing can be sent there`)
      return address
    },
  }
}
