/** Takes each call of a reply from proposal to its end: a result, a denial or dropped changes; then it requests `observe`. */

import type { BThread } from '../../kernel/thread.ts'
import type { Changed, Proposal, RunEvent, ToolReport } from '../event.ts'
import { dropText, outcomeText, picturesIn } from '../outcome.ts'
import { broughtBy } from './start-events.ts'

type Phase = 'new' | 'proposed' | 'acting' | 'changed' | 'applying' | 'resolved'
/** `approval`: the person who approved the next step, the act or the changes; `part`: the part of the changes that was approved. */
type Yes = { readonly approval?: string; readonly part?: string }
type CallState = Proposal & Yes & { readonly phase: Phase; readonly changed?: Changed; readonly report?: ToolReport }
type Calls = {
  readonly round: number
  readonly entries: readonly CallState[]
  readonly stop: { readonly by: string; readonly reason: string } | null
}

/**
 * On cancel, estop, halt or stalled it denies the calls that have not started, drops the changes that are not being applied, and waits for
 * the others. It proposes every call before any other event about that call. It rejects a result that nothing is waiting for.
 */
export const calls: BThread<Calls, RunEvent> = {
  name: 'calls',
  priority: 50,
  init: { round: 0, entries: [], stop: null },
  bid: ({ round, entries, stop }) => ({
    wait: [
      { type: 'run.start' },
      { type: 'think' },
      { type: 'model.done' },
      { type: 'judged' },
      { type: 'approval.decision', match: (event) => event.type === 'approval.decision' && event.allow },
      { type: 'tool.done' },
      { type: 'tool.changed' },
      { type: 'deny' },
      { type: 'drop' },
    ],
    interrupt: [{ type: 'cancel' }, { type: 'estop' }, { type: 'halt' }, { type: 'stalled' }],
    block: [
      { type: 'tool.done', match: (event) => !awaited(entries, event) },
      { type: 'tool.changed', match: (event) => !awaited(entries, event) },
    ],
    request:
      entries.length === 0 ? [] : entries.every(resolved) ? [observe(round, entries)] : entries.flatMap((entry) => nextEvents(entry, stop)),
  }),
  next(state, event) {
    switch (event.type) {
      case 'think':
        return { ...state, round: event.round }
      case 'run.start':
      case 'model.done':
      case 'judged':
        return { ...state, entries: (broughtBy(event) ?? []).map((proposal) => ({ ...proposal, phase: 'new' })) }
      case 'propose':
        return advance(state, event.id, { phase: 'proposed' })
      case 'approval.decision':
        return advance(state, event.id, { approval: event.by, part: event.part })
      case 'act':
        return advance(state, event.id, { phase: 'acting' })
      case 'tool.changed':
        return changed(state, event)
      case 'apply':
        return advance(state, event.id, { phase: 'applying' })
      case 'tool.done':
        return advance(state, event.id, { phase: 'resolved', report: reportOf(state, event) })
      case 'deny':
        return advance(state, event.id, { phase: 'resolved', report: refusedReport(event) })
      case 'drop':
        return advance(state, event.id, { phase: 'resolved', report: { call: event.call, ok: false, text: dropText(event) } })
      case 'observe':
        return { ...state, entries: [] }
      case 'cancel':
        return { ...state, stop: state.stop ?? { by: 'cancel', reason: `cancelled by ${event.by}` } }
      case 'estop':
        return { ...state, stop: state.stop ?? { by: 'estop', reason: event.reason } }
      case 'halt':
        return { ...state, stop: state.stop ?? { by: event.code, reason: event.message } }
      case 'stalled':
        return { ...state, stop: state.stop ?? { by: stranded, reason: 'it may not run, nobody refused it, and nothing else can happen' } }
      default:
        return state
    }
  },
}

/** The source of a denial when a thread blocked the effect and requested no denial. */
const stranded = 'stalled'

/** Only a call that ran can have changed something, and such a call ends when its changes are applied or dropped. */
function awaited(entries: readonly CallState[], event: RunEvent): boolean {
  if (event.type !== 'tool.done' && event.type !== 'tool.changed') return false
  const entry = entries.find(({ call }) => call.id === event.id)
  return entry?.phase === 'acting' || (entry?.phase === 'applying' && event.type === 'tool.done')
}

const resolved = ({ phase }: CallState) => phase === 'resolved'

/** A stranded effect stays requested and blocked until it is refused, so that the error can name the thread that blocks it. */
function nextEvents(entry: CallState, stop: Calls['stop']): RunEvent[] {
  const { call, judgement, phase, approval, part, changed } = entry
  const id = call.id
  if (phase === 'new') return [{ type: 'propose', id, call, judgement }]
  const yes = approval === undefined ? {} : { approval }
  if (phase === 'proposed')
    return either({ type: 'act', id, call, judgement, ...yes }, stop && { type: 'deny', id, call, judgement, ...stop }, stop)
  if (phase !== 'changed' || changed === undefined) return []
  const apply: RunEvent = { type: 'apply', id, call, judgement, review: changed.review, ...yes, ...(part === undefined ? {} : { part }) }
  return either(apply, stop && { type: 'drop', id, call, judgement, ...changed, ...stop }, stop)
}

function either(effect: RunEvent, refusal: RunEvent | null, stop: Calls['stop']): RunEvent[] {
  if (refusal === null) return [effect]
  return stop?.by === stranded ? [effect, refusal] : [refusal]
}

function observe(round: number, entries: readonly CallState[]): RunEvent {
  return { type: 'observe', round, results: entries.flatMap(({ report }) => (report ? [report] : [])) }
}

function advance(state: Calls, id: string, change: Partial<CallState>): Calls {
  return { ...state, entries: state.entries.map((entry) => (entry.call.id === id ? { ...entry, ...change } : entry)) }
}

/** Removes the approval of the act, because it does not cover the changes. */
function changed(state: Calls, { id, outcome, review }: Extract<RunEvent, { type: 'tool.changed' }>): Calls {
  const after = ({ call, judgement }: CallState): CallState => ({ call, judgement, phase: 'changed', changed: { outcome, review } })
  return { ...state, entries: state.entries.map((entry) => (entry.call.id === id ? after(entry) : entry)) }
}

function reportOf(state: Calls, { id, outcome }: Extract<RunEvent, { type: 'tool.done' }>): ToolReport | undefined {
  const entry = state.entries.find(({ call }) => call.id === id)
  if (!entry) return undefined
  return { call: entry.call, ok: outcome.status === 'allowed', text: outcomeText(outcome), ...picturesIn(outcome) }
}

function refusedReport({ call, by, reason }: Extract<RunEvent, { type: 'deny' }>): ToolReport {
  return { call, ok: false, text: `Denied by ${by}: ${reason}` }
}
