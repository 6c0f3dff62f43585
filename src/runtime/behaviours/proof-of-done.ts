/**
 * Checks what the final answer of a run claims, where claims need proof: the model is sent back once with the facts, and a second answer
 * that still claims what nothing proves ends the run.
 */

import type { BThread } from '../../kernel/thread.ts'
import type { RunEvent } from '../event.ts'

/** The name of the check, which the host carries out. */
export const proofCheck = 'proof of done'

/** Tells whether a check, or its result, is about an answer: the answer is final only when it passes. */
export function isProof({ id }: { readonly id: string }): boolean {
  return id.startsWith('proof-')
}

type Proof = {
  readonly stage: 'idle' | 'answered' | 'checking' | 'failed' | 'over'
  /** How many answers were checked. */
  readonly checked: number
  readonly evidence: string
}

const stops = [{ type: 'cancel' }, { type: 'estop' }, { type: 'halt' }, { type: 'stalled' }, { type: 'model.fail' }] as const

/** It asks before the finisher does, which would else end the run. */
export const proofOfDone: BThread<Proof, RunEvent> = {
  name: 'proof-of-done',
  priority: 62,
  init: { stage: 'idle', checked: 0, evidence: '' },
  bid: (state) => ({
    wait: [{ type: 'run.start' }, { type: 'model.done' }, { type: 'judge' }, { type: 'check.done' }, ...stops],
    request: nextEvents(state),
  }),
  next(state, event) {
    switch (event.type) {
      case 'run.start':
        // The checks of a wiggum run decide what is done.
        return event.wiggum ? { ...state, stage: 'over' } : state
      case 'model.done':
        return state.stage === 'over' ? state : { ...state, stage: event.proposals.length === 0 ? 'answered' : 'idle' }
      case 'judge':
      case 'retry':
        return state.stage === 'over' ? state : { ...state, stage: 'idle' }
      case 'check':
        return { ...state, stage: 'checking', checked: state.checked + 1 }
      case 'check.done':
        if (state.stage !== 'checking') return state
        return { ...state, stage: event.pass ? 'idle' : 'failed', evidence: event.evidence }
      default:
        return { ...state, stage: 'over' }
    }
  },
}

function nextEvents({ stage, checked, evidence }: Proof): RunEvent[] {
  if (stage === 'answered') return [{ type: 'check', id: `proof-${checked + 1}`, name: proofCheck, tier: 0, iteration: checked + 1 }]
  if (stage !== 'failed') return []
  if (checked > 1)
    return [{ type: 'halt', code: 'checks_failed', message: `the answer claims what nothing proves: ${evidence.split('\n').join('; ')}` }]
  return [
    { type: 'retry', evidence: `[BraidClaw: your answer claims what the record of this turn does not prove.]\n${evidence}\n${advice}` },
  ]
}

const advice = 'Do what is missing and answer again, or answer again and claim only what is proved.'
