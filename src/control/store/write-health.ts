/** Remembers whether the database takes writes: after one that it refused, an empty one follows every two seconds until it succeeds. */

import { PlaneRefusal } from '../contract/plane-refusal.ts'
import type { Command, Store } from '../contract/store-port.ts'

export type WriteHealth = {
  /** Notes how a write ends. */
  watched<T>(work: () => Promise<T>): Promise<T>
  /** Notes that writes are refused, although none was tried. */
  failed(why: PlaneRefusal): void
  isWell(): boolean
  stop(): void
}

export type WriteHealthOptions = {
  readonly log: (level: 'info' | 'error', event: string, fields?: object) => void
  /** Tries an empty write; `why` is the last refusal. */
  readonly probe: (why: PlaneRefusal) => Promise<unknown>
}

const everyMs = 2_000

export function createWriteHealth({ log, probe }: WriteHealthOptions): WriteHealth {
  const state: { trouble?: PlaneRefusal; timer?: ReturnType<typeof setTimeout>; isOver?: true } = {}

  function failed(why: PlaneRefusal): void {
    if (state.isOver || state.trouble?.message === why.message) return
    log('error', 'the database refuses writes', { why: why.message })
    const isFirst = state.trouble === undefined
    state.trouble = why
    if (isFirst) tryLater()
  }

  function tryLater(): void {
    state.timer = setTimeout(async () => {
      if (state.trouble) await watched(() => probe(state.trouble as PlaneRefusal)).catch(() => undefined)
      if (state.trouble && !state.isOver) tryLater()
    }, everyMs)
    state.timer.unref()
  }

  async function watched<T>(work: () => Promise<T>): Promise<T> {
    try {
      const value = await work()
      if (state.trouble) log('info', 'the database takes writes again')
      state.trouble = undefined
      return value
    } catch (error) {
      if (error instanceof PlaneRefusal && isAboutStorage(error)) failed(error)
      throw error
    }
  }

  return {
    ...{ watched, failed, isWell: () => state.trouble === undefined },
    stop() {
      state.isOver = true
      clearTimeout(state.timer)
    },
  }
}

function isAboutStorage({ details }: PlaneRefusal): boolean {
  return details.storage !== undefined && details.storage !== 'conflict' && details.storage !== 'locked'
}

/** Writes nothing, but as a write. */
export function emptyWrite(write: Store['write']): Promise<void> {
  return write(function* (): Command<void> {
    yield ['UPDATE sequences SET value = value']
  })
}
