/** Remembers whether the database takes writes: after one that it refused, an empty one follows every two seconds until it succeeds. */

import { PlaneRefusal } from '../contract/plane-refusal.ts'
import type { Command, Store } from '../contract/store-port.ts'

type WriteHealthOptions = {
  readonly log: (level: 'info' | 'error', event: string, fields?: object) => void
  /** Tries an empty write; `why` is the last refusal. */
  readonly probe: (why: PlaneRefusal) => Promise<unknown>
}

const everyMs = 2_000
const passing: readonly unknown[] = [undefined, 'conflict', 'locked']

export function createWriteHealth({ log, probe }: WriteHealthOptions) {
  const state: { trouble?: PlaneRefusal; timer?: ReturnType<typeof setTimeout>; isOver?: true } = {}

  /** Notes that writes are refused. */
  function failed(why: PlaneRefusal): void {
    if (state.isOver || state.trouble?.message === why.message) return
    log('error', 'the database refuses writes', { why: why.message })
    state.trouble = why
    tryLater()
  }

  function tryLater(): void {
    clearTimeout(state.timer)
    state.timer = setTimeout(async () => {
      const { trouble } = state
      if (trouble) await watched(() => probe(trouble)).catch(() => undefined)
      if (state.trouble && !state.isOver) tryLater()
    }, everyMs)
    state.timer.unref()
  }

  /** Notes how a write ends. */
  async function watched<T>(work: () => Promise<T>): Promise<T> {
    try {
      const value = await work()
      if (state.trouble) log('info', 'the database takes writes again')
      state.trouble = undefined
      return value
    } catch (error) {
      if (error instanceof PlaneRefusal && !passing.includes(error.details.storage)) failed(error)
      throw error
    }
  }

  const stop = () => {
    state.isOver = true
    clearTimeout(state.timer)
  }
  return { watched, failed, isWell: () => state.trouble === undefined, stop }
}

/** Changes nothing, but as a write. */
export function emptyWrite(write: Store['write']): Promise<void> {
  return write(function* (): Command<void> {
    yield ['UPDATE sequences SET value = value']
  })
}
