/** Counts messages that wait for their answer, a channel at a time: an answer that nobody asked for answers nothing. */

import type { ReadMessage } from '../../../kit/wire.ts'

export type OpenQuestions = {
  asked(channel: string): void
  answered(line: ReadMessage): void
  /** No more will be asked. */
  last(): void
}

/** `done` is called once, when no more will be asked and all is answered. */
export function createOpenQuestions(done: () => void): OpenQuestions {
  const open = new Map<string, number>()
  const state = { ended: false }

  function count(channel: string, by: 1 | -1): void {
    const left = (open.get(channel) ?? 0) + by
    if (left > 0) open.set(channel, left)
    else open.delete(channel)
  }

  function look(): void {
    if (state.ended && open.size === 0) done()
  }

  return {
    asked: (channel) => count(channel, 1),
    answered(line) {
      if (line.ok) count(line.channel, -1)
      look()
    },
    last() {
      state.ended = true
      look()
    },
  }
}
