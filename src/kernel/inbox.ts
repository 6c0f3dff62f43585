/** Queues external events; removing the first one takes constant time at any length. */

export type Inbox<T> = {
  push(item: T): void
  first(): T | undefined
  /** Removes the first item. */
  drop(): void
}

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
