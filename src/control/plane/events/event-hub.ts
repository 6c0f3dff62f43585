/** Reads each new event once a process, and hands it to all who follow. */

import type { Row, Store } from '../../contract/store-port.ts'
import { int, type PlaneContext } from '../command.ts'
import { lastEventId, readEvents } from './event-row.ts'

export type EventHub = {
  /**
   * Calls `heard` with every event after the number it answers, in order; what was committed before can be read.
   * `heard` must not throw.
   */
  join(heard: (row: Row) => void): Promise<{ readonly from: number; readonly leave: () => void }>
}

type State = { last: number; isReading: boolean; isAsked: boolean; started?: Promise<() => void> }

const rowsAtOnce = 500
/** An announcement that got lost delays events by this at most. */
const lookAgainMs = 2_000

export function createEventHub({ store, options }: Pick<PlaneContext, 'store' | 'options'>): EventHub {
  const followers = new Set<(row: Row) => void>()
  const state: State = { last: 0, isReading: false, isAsked: false }

  async function readNew(): Promise<void> {
    state.isAsked = true
    if (state.isReading) return
    state.isReading = true
    try {
      while (state.isAsked && followers.size > 0) state.isAsked = await readOnce()
    } catch (error) {
      options.log('warn', 'new events could not be read; they are read again soon', { error: String(error) })
    } finally {
      state.isReading = false
    }
  }

  /** @returns whether there is more, or somebody asked meanwhile */
  async function readOnce(): Promise<boolean> {
    state.isAsked = false
    const rows = await store.read(() => readEvents({ filter: {}, after: state.last, limit: rowsAtOnce }))
    for (const row of rows) {
      state.last = int(row, 'id')
      for (const heard of followers) heard(row)
    }
    return rows.length === rowsAtOnce || state.isAsked
  }

  async function start(): Promise<() => void> {
    const stop = listenTo(store, () => void readNew())
    try {
      state.last = await store.read(lastEventId)
      return stop
    } catch (error) {
      stop()
      delete state.started
      throw error
    }
  }

  function leave(heard: (row: Row) => void): void {
    followers.delete(heard)
    if (followers.size > 0) return
    void state.started?.then((stop) => stop())
    delete state.started
  }

  return {
    async join(heard) {
      followers.add(heard)
      try {
        state.started ??= start()
        await state.started
      } catch (error) {
        leave(heard)
        throw error
      }
      return { from: state.last, leave: () => leave(heard) }
    },
  }
}

function listenTo(store: Store, look: () => void): () => void {
  const stop = store.listen('events', look)
  const state: { timer?: ReturnType<typeof setTimeout> } = {}
  const later = () => {
    state.timer = setTimeout(() => {
      look()
      later()
    }, lookAgainMs)
    state.timer.unref()
  }
  later()
  return () => {
    stop()
    clearTimeout(state.timer)
  }
}
