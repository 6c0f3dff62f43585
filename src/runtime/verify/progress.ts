/** Defines what must happen in a run: every call is resolved once (P7), and an unfinished run waits for somebody (P8). */

import type { Property, Rest } from '../../kernel/property.ts'
import { broughtBy } from '../behaviours/start-events.ts'
import type { RunEvent } from '../event.ts'

type Stage = 'new' | 'proposed' | 'acting' | 'changed' | 'applying' | 'done'
/** For each event, the stage that it leads to and the stages that may precede it. */
const moves: { readonly [type: string]: { readonly from: readonly Stage[]; readonly to: Stage } } = {
  propose: { from: ['new'], to: 'proposed' },
  act: { from: ['proposed'], to: 'acting' },
  deny: { from: ['proposed'], to: 'done' },
  'tool.changed': { from: ['acting'], to: 'changed' },
  apply: { from: ['changed'], to: 'applying' },
  drop: { from: ['changed'], to: 'done' },
  'tool.done': { from: ['acting', 'applying'], to: 'done' },
}

export const resolvedOnce: Property<RunEvent, { readonly calls: { readonly [id: string]: Stage }; readonly broken: boolean }> = {
  name: 'Every call is proposed once and then resolved exactly once: by its own result, by a denial, or by dropping what it changed.',
  init: { calls: {}, broken: false },
  violated: ({ broken }) => broken,
  next(ledger, { event }) {
    const { calls } = ledger
    const open = Object.values(calls).some((stage) => stage !== 'done')
    const brought = broughtBy(event)
    if (brought) return { calls: Object.fromEntries(brought.map(({ call }) => [call.id, 'new'])), broken: open }
    if (event.type === 'observe') return { calls: {}, broken: open || event.results.length !== Object.keys(calls).length }
    if (event.type === 'finish') return { ...ledger, broken: open }
    const move = moves[event.type]
    if (move === undefined || !('id' in event)) return ledger
    const stage = calls[event.id]
    const isNext = stage !== undefined && move.from.includes(stage)
    return isNext ? { ...ledger, calls: { ...calls, [event.id]: move.to } } : { ...ledger, broken: true }
  },
}

type Owed = {
  readonly started: boolean
  readonly over: boolean
  readonly stopped: boolean
  readonly thinking: boolean
  readonly judging: string | null
  readonly acting: readonly string[]
  readonly gates: readonly string[]
}

export const somebodyOwesAnAnswer: Property<RunEvent, Owed> = {
  name: 'A run at rest that is not over waits for a model, a tool or an open gate, and would take the answer.',
  init: { started: false, over: false, stopped: false, thinking: false, judging: null, acting: [], gates: [] },
  next(owed, { event }) {
    switch (event.type) {
      case 'run.start':
        return { ...owed, started: true }
      case 'cancel':
      case 'estop':
      case 'halt':
        return { ...owed, stopped: true }
      case 'finish':
        return { ...owed, over: true }
      case 'think':
        return { ...owed, thinking: true }
      case 'model.done':
      case 'model.fail':
        return { ...owed, thinking: false }
      case 'judge':
        return { ...owed, judging: event.id }
      case 'judged':
        return { ...owed, judging: null }
      case 'act':
      case 'apply':
        return { ...owed, acting: [...owed.acting, event.id] }
      case 'gate.open':
        return { ...owed, gates: [...owed.gates, event.id] }
      case 'tool.done':
      case 'tool.changed':
      case 'deny':
      case 'drop':
      case 'approval.decision':
        return { ...owed, acting: without(owed.acting, event.id), gates: without(owed.gates, event.id) }
      default:
        return owed
    }
  },
  atQuiescence: (owed, rest) => owed.started && !owed.over && !isAwaited(owed, rest),
}

const without = (ids: readonly string[], id: string) => (ids.includes(id) ? ids.filter((each) => each !== id) : ids)

/** Some answer is outstanding, and the program accepts it. A stopped run asks nobody any more, so open gates do not count. */
function isAwaited({ thinking, judging, acting, gates, stopped }: Owed, { offers }: Rest<RunEvent>): boolean {
  if (!thinking && judging === null && acting.length === 0 && (stopped || gates.length === 0)) return false
  const takes = (type: RunEvent['type'], id?: string) =>
    offers.some((offer) => offer.type === type && (id === undefined || ('id' in offer && offer.id === id)))
  const thought = !thinking || (takes('model.done') && takes('model.fail'))
  const judged = judging === null || takes('judged', judging)
  return (
    thought && judged && acting.every((id) => takes('tool.done', id)) && (stopped || gates.every((id) => takes('approval.decision', id)))
  )
}
