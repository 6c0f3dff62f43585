/** Queues items between one part that adds them and one that takes them. */

type Inbox<T> = {
  push(item: T): void
  first(): T | undefined
  /** Removes the first item. */
  drop(): void
}

/** Creates an unbounded queue; removing the first item takes constant time at any length. */
export function createInbox<T>(): Inbox<T> {
  const items: T[] = []
  let head = 0
  return {
    push: (item) => void items.push(item),
    first: () => items[head],
    drop() {
      head += 1
      if (head < items.length / 2) return
      items.splice(0, head)
      head = 0
    },
  }
}

type Queue<T> = {
  /**
   * Returns undefined while there is room, so that the producer continues without an await; else a promise to wait for. After `close` it
   * drops the item.
   */
  push(item: T): Promise<void> | undefined
  /** Ends the iteration after the consumer has taken the queued items. */
  close(): void
  items(): AsyncGenerator<T>
}

/** Creates a bounded queue: when it is full, the producer waits. */
export function createQueue<T>(capacity: number): Queue<T> {
  const waiting = createInbox<{ readonly item: T }>()
  const state = { size: 0, closed: false }
  const [room, arrival] = [createWaiters(), createWaiters()]

  async function roomForMore(): Promise<void> {
    while (state.size >= capacity && !state.closed) await room.sleep()
  }

  return {
    push(item) {
      if (state.closed) return undefined
      waiting.push({ item })
      state.size += 1
      arrival.wake()
      return state.size < capacity ? undefined : roomForMore()
    },
    close() {
      state.closed = true
      room.wake()
      arrival.wake()
    },
    async *items() {
      for (;;) {
        const next = waiting.first()
        if (next !== undefined) {
          waiting.drop()
          state.size -= 1
          room.wake()
          yield next.item
        } else if (state.closed) return
        else await arrival.sleep()
      }
    },
  }
}

/** Lets others wait for an event. Usually nobody waits; `wake` then costs one check. */
export function createWaiters(): { sleep(): Promise<void>; wake(): void } {
  let sleepers: (() => void)[] = []
  return {
    sleep: () => new Promise((rouse) => sleepers.push(rouse)),
    wake() {
      if (sleepers.length === 0) return
      const awake = sleepers
      sleepers = []
      for (const rouse of awake) rouse()
    },
  }
}
