/** Blocks the act of a risky call from the moment it is proposed until someone approves exactly that plan. */

import type { BThread } from '../../kernel/thread.ts'
import type { Proposal, RunEvent } from '../event.ts'
import { blockedActs, denials, denied, noRefusals, type Refusals, refuse } from './refusals.ts'

type Gate = Proposal & { readonly phase: 'wanted' | 'open' }
type Approval = { readonly gates: readonly Gate[]; readonly refusals: Refusals }

export const approval: BThread<Approval, RunEvent> = {
  name: 'approval',
  priority: 30,
  init: { gates: [], refusals: noRefusals },
  bid: ({ gates, refusals }) => ({
    wait: [
      { type: 'propose', match: needsYes },
      ...gates.map(({ call }) => ({ type: 'approval.decision', id: call.id }) as const),
      ...gates.map(({ call }) => ({ type: 'deny', id: call.id }) as const),
    ],
    block: [
      ...gates.map(({ call }) => ({ type: 'act', id: call.id }) as const),
      ...blockedActs(refusals),
      { type: 'approval.decision', match: (event) => !answersOpenGate(gates, event) },
    ],
    request: [...gates.filter(({ phase }) => phase === 'wanted').map(openGate), ...denials(refusals)],
  }),
  next(state, event) {
    switch (event.type) {
      case 'propose':
        return { ...state, gates: [...state.gates, { call: event.call, judgement: event.judgement, phase: 'wanted' }] }
      case 'gate.open':
        return { ...state, gates: state.gates.map((gate) => (gate.call.id === event.id ? { ...gate, phase: 'open' } : gate)) }
      case 'deny':
        return { gates: without(state.gates, event.id), refusals: denied(state.refusals, event.id) }
      case 'approval.decision':
        return decide(state, event)
      default:
        return state
    }
  },
}

function decide({ gates, refusals }: Approval, decision: Extract<RunEvent, { type: 'approval.decision' }>): Approval {
  const gate = gates.find(({ call }) => call.id === decision.id)
  const rest = without(gates, decision.id)
  if (!gate || decision.allow) return { gates: rest, refusals }
  const { call, judgement } = gate
  return {
    gates: rest,
    refusals: refuse(refusals, { call, judgement, by: `approval.${decision.by}`, reason: decision.note ?? 'the operator said no' }),
  }
}

const without = (gates: readonly Gate[], id: string) => gates.filter(({ call }) => call.id !== id)

const openGate = ({ call, judgement }: Gate): RunEvent => ({ type: 'gate.open', id: call.id, call, judgement })

function needsYes(event: RunEvent): boolean {
  return event.type === 'propose' && event.judgement.verdict === 'ask'
}

/** A decision counts only for an open gate and for the plan that the person saw; `approval` rejects any other decision. */
function answersOpenGate(gates: readonly Gate[], event: RunEvent): boolean {
  if (event.type !== 'approval.decision') return false
  return gates.some(({ call, judgement, phase }) => phase === 'open' && call.id === event.id && judgement.plan === event.plan)
}
