/**
 * Makes a store that writes the events of a command at its end: every daemon locks the one row that hands out their ids only for the commit,
 * and after all its other locks, so that two commands do not wait for each other.
 */

import type { Command, Param, Store } from '../../contract/store-port.ts'
import { WRITE_EVENT, writeEvents } from './record-event.ts'

export function eventsLast(store: Store): Store {
  return {
    ...store,
    write: (command, beside) => store.write(() => withEventsLast(command), beside),
    get reachable() {
      return store.reachable
    },
  }
}

function* withEventsLast<T>(command: () => Command<T>): Command<T> {
  const events: (readonly Param[])[] = []
  const inner = command()
  let step = inner.next([])
  while (!step.done) {
    const [sql, params = []] = step.value
    if (sql === WRITE_EVENT) events.push(params)
    step = inner.next(sql === WRITE_EVENT ? [] : yield step.value)
  }
  yield* writeEvents(events)
  return step.value
}
