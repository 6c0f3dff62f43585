/**
 * Decides as b-threads what a run of a procedure does next: a thread a step, one that stops after a failure, one that ends the run. They see
 * which steps ended and how, never what a step said.
 */

import type { AnyThread, BThread } from '../kernel/thread.ts'
import { type EndState, type Step, stagesOf } from './sop-file.ts'

export type SopEvent =
  /** From outside: a step has ended. */
  | { readonly type: 'settled'; readonly id: string; readonly state: EndState }
  /** From outside: a person cancelled the run. */
  | { readonly type: 'cancel' }
  /** Requests that the step runs, or a question is asked; the only event with an effect. */
  | { readonly type: 'step'; readonly id: string }
  | { readonly type: 'finish'; readonly state: 'done' | 'failed' | 'cancelled' }

type StepState = { readonly phase: 'waiting' | 'ready' | 'running' | 'over'; readonly left: number }

/** Runs a step when all steps of the stage before it have ended. */
function stepThread({ id }: Step, before: readonly Step[]): BThread<StepState, SopEvent> {
  const earlier = before.map((step) => ({ type: 'settled', id: step.id }) as const)
  return {
    name: `step ${id}`,
    priority: 50,
    init: { phase: before.length === 0 ? 'ready' : 'waiting', left: before.length },
    bid({ phase }) {
      if (phase === 'waiting') return { wait: earlier }
      if (phase === 'ready') return { request: [{ type: 'step', id }] }
      return phase === 'running' ? { wait: [{ type: 'settled', id }] } : {}
    },
    next({ phase, left }) {
      if (phase === 'waiting') return { phase: left === 1 ? 'ready' : 'waiting', left: left - 1 }
      return { phase: phase === 'ready' ? 'running' : 'over', left: 0 }
    },
  }
}

/** Blocks every further step once a step has failed that may not fail, or a person has cancelled. */
function stopThread(steps: readonly Step[]): BThread<{ readonly stopped: boolean }, SopEvent> {
  const fatal = fatalIn(steps)
  return {
    name: 'stop',
    priority: 10,
    init: { stopped: false },
    bid: ({ stopped }) => (stopped ? { block: [{ type: 'step' }] } : { wait: [{ type: 'settled', match: fatal }, { type: 'cancel' }] }),
    next: () => ({ stopped: true }),
  }
}

function fatalIn(steps: readonly Step[]): (event: SopEvent) => boolean {
  const fatal = new Set(steps.filter(({ onFailure }) => onFailure === 'abort').map(({ id }) => id))
  return (event) => event.type === 'settled' && event.state === 'failed' && fatal.has(event.id)
}

type FinishState = {
  readonly running: number
  readonly left: number
  readonly state: 'done' | 'failed' | 'cancelled'
  readonly isOver: boolean
}

/** Ends the run when every step has ended, or when nothing runs after a stop. */
function finishThread(steps: readonly Step[]): BThread<FinishState, SopEvent> {
  const fatal = fatalIn(steps)
  return {
    name: 'finish',
    priority: 90,
    init: { running: 0, left: steps.length, state: 'done', isOver: false },
    bid({ running, left, state, isOver }) {
      if (isOver) return {}
      const isDue = running === 0 && (left === 0 || state !== 'done')
      return { request: isDue ? [{ type: 'finish', state }] : [], wait: [{ type: 'step' }, { type: 'settled' }, { type: 'cancel' }] }
    },
    next(found, event) {
      const { running, left, state } = found
      if (event.type === 'finish') return { ...found, isOver: true }
      if (event.type === 'step') return { ...found, running: running + 1 }
      if (event.type === 'cancel') return { ...found, state: 'cancelled' }
      return { ...found, running: running - 1, left: left - 1, state: fatal(event) && state === 'done' ? 'failed' : state }
    },
  }
}

export function sopProgram(steps: readonly Step[]): readonly AnyThread<SopEvent>[] {
  const threads: AnyThread<SopEvent>[] = [stopThread(steps), finishThread(steps)]
  let before: readonly Step[] = []
  for (const stage of stagesOf(steps)) {
    for (const step of stage) threads.push(stepThread(step, before))
    before = stage
  }
  return threads
}
