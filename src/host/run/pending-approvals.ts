/**
 * Tracks runs that wait for an approval: an answer in this process wakes them at once, and one shared timer polls the record while any run
 * waits.
 */

import type { Decision, Questions, RunIdentity, WatchedQuestion } from '../../runtime/port.ts'
import type { OpenQuestion } from '../api.ts'

export type PendingApprovals = Questions & {
  /** The questions that are open in this process, oldest first. */
  open(): readonly OpenQuestion[]
  /** @returns undefined when the decision counted and is on disk, else the name of the rule that rejected it */
  decide(id: string, decision: Decision): Promise<string | undefined>
}

type Waiting = WatchedQuestion & { readonly run: RunIdentity }

/** The polling interval of the record, in milliseconds. */
const lookMs = 150

/** @param answered returns the recorded decision about a call; throws what the database throws */
export function createPendingApprovals(answered: Questions['answered'], everyMs = lookMs): PendingApprovals {
  const waiting = new Map<string, Waiting>()
  const state: { look?: ReturnType<typeof setInterval> } = {}

  function look(): void {
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
    clearInterval(state.look)
    delete state.look
  }

  return {
    answered,
    watch(run, question) {
      const id = question.gateId
      waiting.set(id, { run, ...question })
      state.look ??= setInterval(look, everyMs)
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
