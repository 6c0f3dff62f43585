/** Counts messages that wait for a reply, per channel; a reply that nobody requested has no effect. */

import type { ReadMessage } from '../../../kit/wire.ts'

export type OpenQuestions = {
  asked(channel: string): void
  answered(line: ReadMessage): void
  /** Says that no further question will come. */
  last(): void
}

/** `done` is called once, when no further question will come and all are answered. */
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
