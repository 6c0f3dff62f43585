/** Where the people of a conversation were heard last on a channel, so that something can be sent there unasked. */

export type Addresses = {
  /** @returns a function to be called with the conversation that the message from there is taken in */
  note(address: string): (conversationId: string) => void
  /** @throws Error when nobody of that conversation was heard here */
  of(conversationId: string): string
}

export function createAddresses(): Addresses {
  const latest = new Map<string, string>()
  return {
    note: (address) => (conversationId) => void latest.set(conversationId, address),
    of(conversationId) {
      const address = latest.get(conversationId)
      if (address === undefined) throw new Error(`nobody of ${conversationId} was heard on this channel, so nothing can be sent there`)
      return address
    },
  }
}
