/** Describes a counterexample: numbered steps, the thread that requested each, and the requests that were blocked at that moment. */

import { arrange, initialStates } from '../../kernel/check-program.ts'
import { advance, bidsOf, blockersOf, EXTERNAL, explainBids, nameOf, type Selection } from '../../kernel/select.ts'
import type { AnyThread } from '../../kernel/thread.ts'
import type { RunEvent } from '../event.ts'
import { eventName } from '../vocabulary.ts'

/** `heldBack`: requests that were blocked at this step, each with the threads that blocked it. */
export type TraceStep = { readonly step: number; readonly event: string; readonly by: string; readonly heldBack: readonly string[] }

export type Story = {
  readonly steps: readonly TraceStep[]
  /** The requests that are still blocked at the end; if the run hangs, they are the cause. */
  readonly heldBack: readonly string[]
}

/** `owed`: external events that the program should accept at the end. */
export function describeTrace(
  threads: readonly AnyThread<RunEvent>[],
  trace: readonly Selection<RunEvent>[],
  owed: readonly RunEvent[] = [],
): Story {
  const arranged = arrange(threads)
  const steps: TraceStep[] = []
  const last = trace.reduce<ReturnType<typeof advance>['states']>((states, { event, source }, at) => {
    steps.push({ step: at + 1, event: describe(event), by: source, heldBack: heldBack(arranged, states) })
    return advance({ threads: arranged, states, bids: bidsOf(arranged, states), event }).states
  }, initialStates(arranged))
  return { steps, heldBack: [...heldBack(arranged, last), ...refused(arranged, last, owed)] }
}

function heldBack(threads: readonly AnyThread<RunEvent>[], states: readonly unknown[]): string[] {
  const blocked = explainBids(threads, bidsOf(threads, states)).map(({ event, by }) => `${briefly(event)} by ${by.join(', ')}`)
  return [...new Set(blocked)]
}

function refused(threads: readonly AnyThread<RunEvent>[], states: readonly unknown[], owed: readonly RunEvent[]): string[] {
  const bids = bidsOf(threads, states)
  return owed.flatMap((event) => {
    const by = blockersOf(bids, event).map((place) => nameOf(threads, place))
    return by.length === 0 ? [] : [`${briefly(event)} from outside by ${by.join(', ')}`]
  })
}

/** Formats one line: `4. act a1 shell, asked by calls; held back: think by cancel`. */
export function sentence({ step, event, by, heldBack }: TraceStep): string {
  const who = by === EXTERNAL ? 'from outside' : `asked by ${by}`
  return `${step}. ${event}, ${who}${heldBack.length > 0 ? `; held back: ${heldBack.join('; ')}` : ''}`
}

function briefly(event: RunEvent): string {
  if (event.type === 'user') return eventName(event)
  return 'id' in event ? `${event.type} ${event.id}` : event.type
}

function describe(event: RunEvent): string {
  switch (event.type) {
    case 'model.done': {
      const calls = event.proposals.map(({ call, judgement }) => `${call.id} ${call.name} (${judgement.verdict}, ${judgement.risk})`)
      return `model.done with ${calls.length === 0 ? 'no call' : calls.join(' and ')}`
    }
    case 'judged':
      return `judged ${event.id} ${event.proposals.map(({ judgement }) => judgement.verdict).join()}`
    case 'approval.decision':
      return `approval.decision ${event.id} ${event.allow ? 'allow' : 'deny'} by ${event.by} for plan "${event.plan}"`
    case 'check':
      return `check ${event.id} "${event.name}" in iteration ${event.iteration}`
    case 'check.done':
      return `check.done ${event.id} ${event.pass ? 'pass' : event.notRun ? 'not run' : 'fail'} on "${event.tree ?? ''}"`
    case 'tool.done':
      return `tool.done ${event.id} ${event.outcome.status}`
    case 'act':
      return `act ${event.id} ${event.call.name} ${JSON.stringify(event.call.input)}`
    case 'tool.changed':
      return `tool.changed ${event.id} "${event.review.digest}" (${event.review.verdict})`
    case 'apply':
      return `apply ${event.id} "${event.review.digest}"`
    case 'deny':
    case 'drop':
      return `${event.type} ${event.id} by ${event.by}`
    case 'clock':
      return `clock at ${event.at} ms`
    case 'think':
      return `think, round ${event.round}`
    case 'finish':
      return `finish (${event.ending.code})`
    default:
      return briefly(event)
  }
}
