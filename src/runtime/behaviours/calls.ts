/** Takes each call of a reply from proposal to act or denial, and requests `observe` when all of them are resolved. */

import type { BThread } from '../../kernel/thread.ts'
import type { Proposal, RunEvent, ToolReport } from '../event.ts'
import { outcomeText } from '../outcome-text.ts'

type Phase = 'new' | 'proposed' | 'acting' | 'resolved'
type Entry = Proposal & { readonly phase: Phase; readonly approval?: string; readonly report?: ToolReport }
type Calls = {
  readonly round: number
  readonly entries: readonly Entry[]
  readonly stop: { readonly by: string; readonly reason: string } | null
}

/**
 * On cancel, estop, halt or stalled it denies the calls that have not started and waits for those that have. It proposes every call before
 * any other event about that call. It rejects a result that no act is waiting for.
 */
export const calls: BThread<Calls, RunEvent> = {
  name: 'calls',
  priority: 50,
  init: { round: 0, entries: [], stop: null },
  bid: ({ round, entries, stop }) => ({
    wait: [
      { type: 'think' },
      { type: 'model.done' },
      { type: 'judged' },
      { type: 'approval.decision', match: (event) => event.type === 'approval.decision' && event.allow },
      { type: 'tool.done' },
      { type: 'deny' },
    ],
    interrupt: [{ type: 'cancel' }, { type: 'estop' }, { type: 'halt' }, { type: 'stalled' }],
    block: [{ type: 'tool.done', match: (event) => !awaited(entries, event) }],
    request:
      entries.length === 0 ? [] : entries.every(resolved) ? [observe(round, entries)] : entries.flatMap((entry) => nextEvents(entry, stop)),
  }),
  next(state, event) {
    switch (event.type) {
      case 'think':
        return { ...state, round: event.round }
      case 'model.done':
      case 'judged':
        return { ...state, entries: event.proposals.map((proposal) => ({ ...proposal, phase: 'new' })) }
      case 'propose':
        return advance(state, event.id, { phase: 'proposed' })
      case 'approval.decision':
        return advance(state, event.id, { approval: event.by })
      case 'act':
        return advance(state, event.id, { phase: 'acting' })
      case 'tool.done':
        return advance(state, event.id, { phase: 'resolved', report: told(state, event) })
      case 'deny':
        return advance(state, event.id, { phase: 'resolved', report: refusedReport(event) })
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

/** The source of a denial when a thread blocked the act and requested no denial. */
const stranded = 'stalled'

function awaited(entries: readonly Entry[], event: RunEvent): boolean {
  return event.type === 'tool.done' && entries.some(({ call, phase }) => phase === 'acting' && call.id === event.id)
}

const resolved = ({ phase }: Entry) => phase === 'resolved'

function nextEvents(entry: Entry, stop: Calls['stop']): RunEvent[] {
  const { call, judgement, phase, approval } = entry
  if (phase === 'acting' || phase === 'resolved') return []
  if (phase === 'new') return [{ type: 'propose', id: call.id, call, judgement }]
  const act: RunEvent = { type: 'act', id: call.id, call, judgement, ...(approval ? { approval } : {}) }
  if (!stop) return [act]
  const deny: RunEvent = { type: 'deny', id: call.id, call, judgement, by: stop.by, reason: stop.reason }
  // A stranded act stays requested and blocked until it is denied, so that the error can name the thread that blocks it.
  return stop.by === stranded ? [act, deny] : [deny]
}

function observe(round: number, entries: readonly Entry[]): RunEvent {
  return { type: 'observe', round, results: entries.flatMap(({ report }) => (report ? [report] : [])) }
}

function advance(state: Calls, id: string, change: Partial<Entry>): Calls {
  return { ...state, entries: state.entries.map((entry) => (entry.call.id === id ? { ...entry, ...change } : entry)) }
}

function told(state: Calls, { id, outcome }: Extract<RunEvent, { type: 'tool.done' }>): ToolReport | undefined {
  const entry = state.entries.find(({ call }) => call.id === id)
  if (!entry) return undefined
  return { call: entry.call, ok: outcome.status === 'allowed', text: outcomeText(outcome) }
}

function refusedReport({ call, by, reason }: Extract<RunEvent, { type: 'deny' }>): ToolReport {
  return { call, ok: false, text: `Denied by ${by}: ${reason}` }
}
