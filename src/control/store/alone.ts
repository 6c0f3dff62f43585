/** Marks the place in a command from which on it needs to be the only one, and lets the commands of a batch take turns there. */

import type { Command } from '../contract/store-port.ts'

/** An executor that runs commands beside each other does not send this text to the database: it waits for the others. */
export const ALONE = '-- alone'

/** What the command has read until here may have changed afterwards. For commands that run beside others. */
export function* alone(): Command<void> {
  yield [ALONE]
}

export type Turns = {
  /** Resolves when every other command has ended, or waits as well. */
  alone(): Promise<void>
  ended(): void
}

export function createTurns(count: number): Turns {
  const waiting: (() => void)[] = []
  let active = count

  function ended(): void {
    active -= 1
    const next = active === 0 ? waiting.shift() : undefined
    if (!next) return
    active = 1
    next()
  }

  function alone(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    waiting.push(resolve)
    ended()
    return promise
  }

  return { alone, ended }
}
