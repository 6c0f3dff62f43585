/** A queue of what comes from outside. Taking from the front costs the same however long it is. */

export type Inbox<T> = {
  push(item: T): void
  first(): T | undefined
  /** Takes the first one out. */
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
