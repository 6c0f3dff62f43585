/**
 * Blocks a risky call until someone approves exactly that plan, and a change set that asks until someone approves exactly its digest. In a
 * wiggum run nobody is asked: whatever needs a yes is refused at once, and the model reads why.
 */

import type { BThread, Pattern } from '../../kernel/thread.ts'
import type { Changed, Judgement, Proposal, RunEvent } from '../event.ts'
import { blockedEffects, denials, denied, noRefusals, type Refusals, refuse } from './refusals.ts'

/** A call has at most one gate at a time: the one about its changes opens when it has run. */
type PendingGate = Proposal & { readonly phase: 'wanted' | 'open'; readonly changed?: Changed }
/** `open`: what the open gates ask about, whichever thread opened them. */
type ApprovalState = {
  readonly gates: readonly PendingGate[]
  readonly open: readonly { readonly id: string; readonly plan: string }[]
  readonly refusals: Refusals
  /** Set in a wiggum run. */
  readonly unattended: boolean
}

export const approval: BThread<ApprovalState, RunEvent> = {
  name: 'approval',
  priority: 30,
  init: { gates: [], open: [], refusals: noRefusals, unattended: false },
  bid: ({ gates, open, refusals, unattended }) => ({
    wait: [
      { type: 'run.start' },
      { type: 'propose', match: needsYes },
      { type: 'tool.changed', match: needsYes },
      { type: 'gate.open' },
      ...[...gates.map(({ call }) => call), ...open].flatMap(({ id }): Pattern<RunEvent>[] => [
        { type: 'approval.decision', id },
        { type: 'deny', id },
        { type: 'drop', id },
      ]),
    ],
    block: [
      ...gates.map(({ call, changed }): Pattern<RunEvent> => ({ type: changed ? 'apply' : 'act', id: call.id })),
      ...blockedEffects(refusals),
      { type: 'approval.decision', match: (event) => !answersOpenGate(open, event) },
    ],
    request: [...(unattended ? refuseUnasked(gates) : gates.filter(({ phase }) => phase === 'wanted').map(openGate)), ...denials(refusals)],
  }),
  next(state, event) {
    switch (event.type) {
      case 'run.start':
        return { ...state, unattended: event.wiggum !== undefined }
      case 'propose':
        return { ...state, gates: [...state.gates, { call: event.call, judgement: event.judgement, phase: 'wanted' }] }
      case 'tool.changed':
        return { ...state, gates: [...state.gates, { ...proposalOf(event), phase: 'wanted', changed: changedOf(event) }] }
      case 'gate.open':
        return opened(state, event)
      case 'deny':
      case 'drop':
        return { ...closed(state, event.id), refusals: denied(state.refusals, event.id) }
      case 'approval.decision':
        return decide(state, event)
      default:
        return state
    }
  },
}

const proposalOf = ({ call, judgement }: Proposal): Proposal => ({ call, judgement })
const changedOf = ({ outcome, review }: Changed): Changed => ({ outcome, review })

/** Refuses what would need a yes in a run that asks nobody. */
export function refuseUnasked(gates: readonly (Proposal & { readonly changed?: Changed })[]): RunEvent[] {
  const why = ({ judgement, changed }: (typeof gates)[number]) =>
    `this needs a yes, and a wiggum run asks nobody (${changed?.review.reason ?? judgement.reason}); find a way without it`
  return denials({ ids: [], pending: gates.map((gate) => ({ ...gate, by: 'approval.unattended', reason: why(gate) })) })
}

function opened(state: ApprovalState, { id, judgement: { plan } }: Extract<RunEvent, { type: 'gate.open' }>): ApprovalState {
  const gates = state.gates.map((gate) => (gate.call.id === id ? { ...gate, phase: 'open' as const } : gate))
  return { ...state, gates, open: [...state.open, { id, plan }] }
}

function closed(state: ApprovalState, id: string): ApprovalState {
  return { ...state, gates: state.gates.filter(({ call }) => call.id !== id), open: state.open.filter((gate) => gate.id !== id) }
}

/** A gate that another thread opened is that thread's to act on. */
function decide(state: ApprovalState, decision: Extract<RunEvent, { type: 'approval.decision' }>): ApprovalState {
  const gate = state.gates.find(({ call }) => call.id === decision.id)
  const rest = closed(state, decision.id)
  if (!gate || decision.allow) return rest
  const { call, judgement, changed } = gate
  const why = { by: `approval.${decision.by}`, reason: decision.note ?? 'the operator said no' }
  return { ...rest, refusals: refuse(rest.refusals, { call, judgement, ...why, ...(changed ? { changed } : {}) }) }
}

function openGate(gate: PendingGate): RunEvent {
  const { call, changed } = gate
  return { type: 'gate.open', id: call.id, call, judgement: asked(gate), ...(changed ? { changes: changed.review } : {}) }
}

/** Returns the judgement that a person is asked about. */
function asked({ judgement, changed }: PendingGate): Judgement {
  if (changed === undefined) return judgement
  const { rule, reason, summary, digest } = changed.review
  return { ...judgement, verdict: 'ask', rule, reason, summary, plan: digest }
}

function needsYes(event: RunEvent): boolean {
  if (event.type === 'tool.changed') return event.review.verdict === 'ask'
  return event.type === 'propose' && event.judgement.verdict === 'ask'
}

/** A decision counts only for an open gate and for the plan that the person saw; `approval` rejects any other decision. */
function answersOpenGate(open: ApprovalState['open'], event: RunEvent): boolean {
  return event.type === 'approval.decision' && open.some(({ id, plan }) => id === event.id && plan === event.plan)
}
