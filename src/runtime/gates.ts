/** Tracks the open gates of one run: who may answer, until when, and whether another process already has. */

import type { Proposal } from './event.ts'
import { callIdOf } from './gate-id.ts'
import type { Decision, Questions, RunIdentity } from './port.ts'

export type Gates = {
  /** Opens a gate. `earlier`: an approval of the same plan from a run that could not wait; then nobody is asked. */
  open(id: string, proposal: Proposal, earlier: Decision | undefined): void
  /** @param gateId RUN/CALL. @returns undefined when the decision counted and is on disk, else the name of the rule that rejected it. */
  approve(gateId: string, decision: Decision): Promise<string | undefined>
  /** @param gateId RUN/CALL */
  get(gateId: string): Proposal | undefined
  /** Resolves when it is no longer open, at once when it is not. @param gateId RUN/CALL */
  closed(gateId: string): Promise<void>
  /** Closes a gate that is decided or can no longer be decided. */
  close(id: string): void
  closeAll(): void
}

export type GatesOptions = {
  readonly identity: RunIdentity
  readonly questions: Questions
  readonly after: (ms: number, then: () => void) => () => void
  readonly ttlMs: number
  /** Sends a decision about this plan to the run. */
  readonly decide: (id: string, plan: string, decision: Decision) => Promise<string | undefined>
  /** Reports that the record could not be read: nothing further may happen. */
  readonly fail: (error: unknown) => void
}

type Gate = { readonly proposal: Proposal; readonly takeBack: readonly (() => void)[]; readonly closed: PromiseWithResolvers<void> }

export function createGates({ identity, questions, after, ttlMs, decide, fail }: GatesOptions): Gates {
  const gates = new Map<string, Gate>()

  function open(id: string, proposal: Proposal, earlier: Decision | undefined): void {
    const { plan } = proposal.judgement
    if (earlier) {
      void decide(id, plan, earlier)
      return
    }
    const answer = (decision: Decision) => decide(id, plan, decision)
    const note = `no answer within ${Math.round(ttlMs / 1000)} s`
    const takeBack = [
      after(ttlMs, () => void answer({ allow: false, by: 'expiry', note })),
      questions.watch(identity, { callId: id, proposal, answer, fail }),
    ]
    gates.set(id, { proposal, takeBack, closed: Promise.withResolvers() })
  }

  /** Accepts an answer from another process; the first answer counts. */
  function answeredElsewhere(id: string, plan: string): boolean {
    try {
      const answer = questions.answered(identity, id)
      if (answer) void decide(id, plan, answer)
      return answer !== undefined
    } catch (error) {
      fail(error)
      return true
    }
  }

  async function approve(gateId: string, decision: Decision): Promise<string | undefined> {
    const id = callIdOf(identity.runId, gateId)
    const proposal = get(gateId)
    if (id === undefined || !proposal) return 'approval'
    const { plan } = proposal.judgement
    return answeredElsewhere(id, plan) ? 'approval' : await decide(id, plan, decision)
  }

  function gateOf(gateId: string): Gate | undefined {
    return gates.get(callIdOf(identity.runId, gateId) ?? '')
  }

  const get = (gateId: string) => gateOf(gateId)?.proposal

  function close(id: string): void {
    const gate = gates.get(id)
    gates.delete(id)
    for (const takeBack of gate?.takeBack ?? []) takeBack()
    gate?.closed.resolve()
  }

  return {
    open,
    approve,
    get,
    closed: async (gateId) => await gateOf(gateId)?.closed.promise,
    close,
    closeAll: () => {
      for (const id of gates.keys()) close(id)
    },
  }
}
