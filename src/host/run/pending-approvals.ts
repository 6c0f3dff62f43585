/** Tracks runs that wait for an approval: an answer in this process wakes them at once, and the record is polled while any run waits. */

import type { Decision, Questions, RunIdentity, WatchedQuestion } from '../../runtime/port.ts'
import type { OpenQuestion } from '../api.ts'
import { createHomePoll } from '../events/home-poll.ts'

export type PendingApprovals = Questions & {
  /** The questions that are open in this process, oldest first. */
  open(): readonly OpenQuestion[]
  /** Reads the record at once: an answer was just written there. */
  readAnswers(): void
  /** @returns undefined when the decision counted and is on disk, else the name of the rule that rejected it */
  decide(id: string, decision: Decision): Promise<string | undefined>
}

/** @param answered returns the recorded decision about a call; throws what the database throws */
export function createPendingApprovals(answered: Questions['answered'], poll = createHomePoll()): PendingApprovals {
  const waiting = new Map<string, WatchedQuestion & { readonly run: RunIdentity }>()
  const state: { stop?: () => void } = {}

  function readAnswers(): void {
    for (const [id, { answer, fail }] of [...waiting]) {
      try {
        const decision = answered(id)
        if (!decision) continue
        waiting.delete(id)
        void answer(decision)
      } catch (error) {
        waiting.delete(id)
        fail(error)
      }
    }
    rest()
  }

  function rest(): void {
    if (waiting.size > 0) return
    state.stop?.()
    delete state.stop
  }

  return {
    answered,
    readAnswers,
    watch(run, question) {
      const id = question.gateId
      waiting.set(id, { run, ...question })
      state.stop ??= poll(readAnswers)
      return () => {
        waiting.delete(id)
        rest()
      }
    },
    open: () => [...waiting].map(([id, { run, proposal }]) => ({ id, conversationId: run.conversationId, proposal })),
    async decide(id, decision) {
      const asked = waiting.get(id)
      if (!asked || answered(id)) return 'approval'
      return await asked.answer(decision)
    },
  }
}
