/** Carries out the calls of a run: acts, and then applies or drops what an act changed on its private view of the workspace. */

import type { ExternalEvent, InternalEvent, ToolOutcome } from '../event.ts'
import type { Act, ActOutcome, ChangePorts, Redact } from '../port.ts'
import { notApplied } from './change-outcome.ts'

type Internal<Type extends InternalEvent['type']> = Extract<InternalEvent, { type: Type }>

/** `refusal`: why it may not be carried out after all. */
export type CarryOut = {
  act(act: Internal<'act'>, refusal: string | undefined): void
  apply(apply: Internal<'apply'>, refusal: string | undefined): void
  drop(drop: Internal<'drop'>): void
}

export type CarryOutOptions = {
  readonly act: Act
  readonly changes?: ChangePorts
  readonly redact: Redact
  /** Registers an effect that can be aborted. */
  readonly begin: (id: string) => AbortSignal
  /** Reports what became of it. */
  readonly end: (id: string, event: Extract<ExternalEvent, { type: 'tool.done' } | { type: 'tool.changed' }>) => void
  readonly fail: (error: unknown) => void
}

export function createCarryOut({ act, changes, redact, begin, end, fail }: CarryOutOptions): CarryOut {
  /** What calls returned whose changes are not applied or dropped yet. */
  const ran = new Map<string, ToolOutcome>()

  function done(id: string, outcome: Promise<ToolOutcome>): void {
    void outcome.then((outcome) => end(id, { type: 'tool.done', id, outcome: redact(outcome) }), fail)
  }

  function tell({ id, call, judgement }: Internal<'act'>, { changes: review, ...rest }: ActOutcome): void {
    const outcome = redact(rest)
    if (review !== undefined) ran.set(id, outcome)
    end(
      id,
      review === undefined
        ? { type: 'tool.done', id, outcome }
        : { type: 'tool.changed', id, call, judgement, outcome, review: redact(review) },
    )
  }

  /** A stop that came while the event was being recorded counts: then nothing is applied. */
  function apply(event: Internal<'apply'>, refusal: string | undefined): void {
    const { id } = event
    const signal = begin(id)
    const outcome = ran.get(id) ?? { status: 'failed', output: '' }
    ran.delete(id)
    if (changes && refusal === undefined && !signal.aborted) {
      done(id, changes.apply(event, signal, outcome))
      return
    }
    const reason = refusal === undefined ? 'the run was stopped' : `approval.unusable: ${refusal}`
    changes?.drop({ ...event, type: 'drop', outcome, by: 'runtime', reason })
    done(id, Promise.resolve(notApplied(outcome, 'denied', reason)))
  }

  return {
    act(event, refusal) {
      const signal = begin(event.id)
      if (refusal === undefined) void act(event, signal).then((outcome) => tell(event, outcome), fail)
      else done(event.id, Promise.resolve(notApproved(refusal)))
    },
    apply,
    drop(event) {
      ran.delete(event.id)
      changes?.drop(event)
    },
  }
}

/** The outcome is the same as for a call that changed after the judgement. */
function notApproved(reason: string): ToolOutcome {
  return { status: 'denied', output: '', error: `approval.unusable: ${reason}` }
}
