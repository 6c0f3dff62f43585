/** A bounded hand-over between a run and its consumer: a full queue makes the producer wait. */

export type Queue<T> = {
  /** Resolves when there is room for more; after `close` it drops the item and resolves at once. */
  push(item: T): Promise<void>
  /** Ends the iteration once what is queued has been taken. */
  close(): void
  items(): AsyncGenerator<T>
}

export function createQueue<T>(capacity: number): Queue<T> {
  const waiting: T[] = []
  const state = { closed: false }
  const room: (() => void)[] = []
  const arrival: (() => void)[] = []
  const wake = (sleepers: (() => void)[]) => {
    for (const rouse of sleepers.splice(0)) rouse()
  }
  return {
    async push(item) {
      if (state.closed) return
      waiting.push(item)
      wake(arrival)
      while (waiting.length >= capacity && !state.closed) await new Promise<void>((rouse) => room.push(rouse))
    },
    close() {
      state.closed = true
      wake(room)
      wake(arrival)
    },
    async *items() {
      for (;;) {
        const [item] = waiting.splice(0, 1)
        if (item !== undefined) {
          wake(room)
          yield item
        } else if (state.closed) return
        else await new Promise<void>((rouse) => arrival.push(rouse))
      }
    },
  }
}
