/** Tracks the open gates of one run: who may answer, until when, and whether another process already has. */

import type { InternalEvent } from '../event.ts'
import { gateIdOf } from '../gate-id.ts'
import type { Decision, Question, Questions, RunIdentity } from '../port.ts'

export type Gates = ReturnType<typeof createGates>

export type GatesOptions = {
  readonly identity: RunIdentity
  readonly questions: Questions
  readonly after: (ms: number, then: () => void) => () => void
  readonly ttlMs: number
  /** Sends a decision about this plan to the run. */
  readonly decide: (callId: string, plan: string, decision: Decision) => Promise<string | undefined>
  /** Reports that the record could not be read: nothing further may happen. */
  readonly fail: (error: unknown) => void
}

type Gate = { readonly question: Question; readonly takeBack: readonly (() => void)[]; readonly closed: PromiseWithResolvers<void> }

export function createGates({ identity, questions, after, ttlMs, decide, fail }: GatesOptions) {
  /** By the gate's id. */
  const gates = new Map<string, Gate>()

  /** Opens a gate. `earlier`: an approval of the same plan from a run that could not wait; then nobody is asked. */
  function open({ id, call, judgement, changes }: Extract<InternalEvent, { type: 'gate.open' }>, earlier: Decision | undefined): void {
    const gateId = gateIdOf(identity.runId, id, changes && 'changes')
    const question = { call, judgement, ...(changes ? { changes } : {}) }
    const answer = (decision: Decision) => decide(id, judgement.plan, decision)
    if (earlier) {
      void answer(earlier)
      return
    }
    const note = `no answer within ${Math.round(ttlMs / 1000)} s`
    const takeBack = [
      after(ttlMs, () => void answer({ allow: false, by: 'expiry', note })),
      questions.watch(identity, { gateId, proposal: question, answer, fail }),
    ]
    gates.set(gateId, { question, takeBack, closed: Promise.withResolvers() })
  }

  /** Accepts an answer from another process; the first answer counts. */
  function answeredElsewhere(gateId: string, { call, judgement }: Question): boolean {
    try {
      const answer = questions.answered(gateId)
      if (answer) void decide(call.id, judgement.plan, answer)
      return answer !== undefined
    } catch (error) {
      fail(error)
      return true
    }
  }

  /** @returns undefined when the decision counted and is on disk, else the name of the rule that rejected it. */
  async function approve(gateId: string, decision: Decision): Promise<string | undefined> {
    const question = get(gateId)
    if (!question) return 'approval'
    return answeredElsewhere(gateId, question) ? 'approval' : await decide(question.call.id, question.judgement.plan, decision)
  }

  const get = (gateId: string) => gates.get(gateId)?.question

  function closeGate(gateId: string): void {
    const gate = gates.get(gateId)
    gates.delete(gateId)
    for (const takeBack of gate?.takeBack ?? []) takeBack()
    gate?.closed.resolve()
  }

  return {
    open,
    approve,
    get,
    /** Resolves when it has closed, at once when it is not open. */
    closed: async (gateId: string) => await gates.get(gateId)?.closed.promise,
    /** Closes the gate of a call that is decided or can no longer be decided. */
    close: (callId: string): void => {
      for (const [gateId, { question }] of gates) if (question.call.id === callId) closeGate(gateId)
    },
    closeAll: (): void => {
      for (const gateId of gates.keys()) closeGate(gateId)
    },
  }
}
