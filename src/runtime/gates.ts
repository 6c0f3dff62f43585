/** Open gates of one run: who may still answer, until when, and whether somebody elsewhere already has. */

import type { Proposal } from './event.ts'
import { callIdOf } from './gate-id.ts'
import type { Decision, Questions, RunIdentity } from './port.ts'

export type Gates = {
  /** `earlier`: the same plan was allowed before, in a run that could not wait; then nobody is asked. */
  open(id: string, proposal: Proposal, earlier: Decision | undefined): void
  /** @param gateId RUN/CALL. @returns undefined when the decision counted and is on disk, else the name of the rule that rejected it. */
  approve(gateId: string, decision: Decision): Promise<string | undefined>
  /** @param gateId RUN/CALL */
  get(gateId: string): Proposal | undefined
  /** Decided, or no longer to be decided. */
  close(id: string): void
  closeAll(): void
}

export type GatesOptions = {
  readonly identity: RunIdentity
  readonly questions: Questions
  readonly after: (ms: number, then: () => void) => () => void
  readonly ttlMs: number
  /** Puts a decision about this plan to the run. */
  readonly decide: (id: string, plan: string, decision: Decision) => Promise<string | undefined>
  /** The record could not be read: nothing further may happen. */
  readonly fail: (error: unknown) => void
}

/** How often the record is looked at while a gate is open, in milliseconds. */
const lookMs = 150

type Gate = { readonly proposal: Proposal; readonly appointments: Map<'expiry' | 'look', () => void> }

export function createGates({ identity, questions, after, ttlMs, decide, fail }: GatesOptions): Gates {
  const gates = new Map<string, Gate>()

  function open(id: string, proposal: Proposal, earlier: Decision | undefined): void {
    const { plan } = proposal.judgement
    if (earlier) {
      void decide(id, plan, earlier)
      return
    }
    const note = `no answer within ${Math.round(ttlMs / 1000)} s`
    const expire = after(ttlMs, () => void decide(id, plan, { allow: false, by: 'expiry', note }))
    gates.set(id, { proposal, appointments: new Map([['expiry', expire]]) })
    watch(id)
  }

  function watch(id: string): void {
    gates.get(id)?.appointments.set(
      'look',
      after(lookMs, () => {
        if (gates.has(id) && !answeredElsewhere(id)) watch(id)
      }),
    )
  }

  /** The first answer counts, wherever it was given. */
  function answeredElsewhere(id: string): boolean {
    try {
      const gate = gates.get(id)
      const answer = questions.answered(identity, id)
      if (!gate || !answer) return false
      void decide(id, gate.proposal.judgement.plan, answer)
      return true
    } catch (error) {
      fail(error)
      return true
    }
  }

  async function approve(gateId: string, decision: Decision): Promise<string | undefined> {
    const id = callIdOf(identity.runId, gateId)
    const proposal = get(gateId)
    if (id === undefined || !proposal || answeredElsewhere(id)) return 'approval'
    return await decide(id, proposal.judgement.plan, decision)
  }

  function get(gateId: string): Proposal | undefined {
    const id = callIdOf(identity.runId, gateId)
    return id === undefined ? undefined : gates.get(id)?.proposal
  }

  function close(id: string): void {
    for (const takeBack of gates.get(id)?.appointments.values() ?? []) takeBack()
    gates.delete(id)
  }

  return {
    open,
    approve,
    get,
    close,
    closeAll: () => {
      for (const id of gates.keys()) close(id)
    },
  }
}
