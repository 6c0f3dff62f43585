/**
 * Asks before anything is sent out, once the conversation has read both content of others and something private: that content may hold
 * instructions to carry the private data away.
 */

import type { BThread, Pattern } from '../../../kernel/thread.ts'
import type { Judgement, Label, Proposal, RunEvent } from '../../event.ts'
import { refuseUnasked } from '../approval.ts'
import { blockedEffects, denials, denied, noRefusals, type Refusals, refuse } from '../refusals.ts'

/** The rule that asks. */
export const ruleOfTwo = 'egress.rule_of_two'

/** The kinds of data that were read, each with the line that describes it to a person; null: none yet. */
type Sources = { readonly untrusted: string | null; readonly private: string | null }

type PendingGate = Proposal & { readonly phase: 'wanted' | 'open' }

type Egress = {
  /** By calls that have begun, in this run or earlier in the conversation. */
  readonly read: Sources
  /** The same with the calls of the reply that is carried out now: their order is not known. */
  readonly reply: Sources
  readonly gates: readonly PendingGate[]
  readonly refusals: Refusals
  /** Set in a wiggum run, which asks nobody. */
  readonly unattended: boolean
}

const nothing: Sources = { untrusted: null, private: null }

/** The gate says of each call what it reads and whether it can send anything; a call that asks anyway is not asked about twice. */
export const egress: BThread<Egress, RunEvent> = {
  name: 'egress',
  priority: 29,
  init: { read: nothing, reply: nothing, gates: [], refusals: noRefusals, unattended: false },
  bid: ({ gates, refusals, unattended }) => ({
    wait: [
      { type: 'run.start', match: isTold },
      { type: 'model.done', match: isTold },
      { type: 'judged', match: isTold },
      { type: 'propose', match: sends },
      { type: 'act', match: isTold },
      ...gates.flatMap(({ call: { id } }): Pattern<RunEvent>[] => [
        { type: 'approval.decision', id },
        { type: 'deny', id },
      ]),
    ],
    block: [...gates.map(({ call }) => ({ type: 'act', id: call.id }) as const), ...blockedEffects(refusals)],
    request: [...(unattended ? refuseUnasked(gates) : gates.filter(({ phase }) => phase === 'wanted').map(openGate)), ...denials(refusals)],
  }),
  next(state, event) {
    switch (event.type) {
      case 'run.start':
        return { ...state, read: readBy(nothing, event.labels, 'earlier in this conversation'), unattended: event.wiggum !== undefined }
      case 'model.done':
      case 'judged':
        return { ...state, reply: event.proposals.reduce(readByCall, state.read) }
      case 'propose':
        return proposed(state, event)
      case 'act':
        return { ...state, read: readByCall(state.read, event) }
      case 'gate.open':
        return { ...state, gates: state.gates.map((gate) => (gate.call.id === event.id ? { ...gate, phase: 'open' } : gate)) }
      case 'approval.decision':
        return decided(state, event)
      case 'deny':
        return { ...state, gates: without(state.gates, event.id), refusals: denied(state.refusals, event.id) }
      default:
        return state
    }
  },
}

function isTold(event: RunEvent): boolean {
  if (event.type === 'run.start') return event.labels !== undefined || event.wiggum !== undefined
  if (event.type === 'act') return event.judgement.labels !== undefined
  return (event.type === 'model.done' || event.type === 'judged') && event.proposals.some(({ judgement }) => judgement.labels !== undefined)
}

function sends(event: RunEvent): boolean {
  return event.type === 'propose' && event.judgement.verdict === 'allow' && event.judgement.labels?.includes('sends') === true
}

function readByCall(sources: Sources, { judgement }: { readonly judgement: Judgement }): Sources {
  return judgement.verdict === 'deny' ? sources : readBy(sources, judgement.labels, judgement.summary)
}

/** Keeps the first source of each kind. */
function readBy(sources: Sources, labels: readonly Label[] = [], source: string): Sources {
  const shown = source.length > 120 ? `${source.slice(0, 119).toWellFormed()}…` : source
  const first = (kind: keyof Sources) => sources[kind] ?? (labels.includes(`reads_${kind}`) ? shown : null)
  const next = { untrusted: first('untrusted'), private: first('private') }
  return next.untrusted === sources.untrusted && next.private === sources.private ? sources : next
}

function proposed(state: Egress, { call, judgement }: Proposal): Egress {
  const { untrusted, private: secret } = state.reply
  if (untrusted === null || secret === null) return state
  const reason = `content of others was read (${untrusted}), and something private (${secret}); what is sent now could carry it away`
  const asked: Judgement = { ...judgement, verdict: 'ask', rule: ruleOfTwo, reason }
  return { ...state, gates: [...state.gates, { call, judgement: asked, phase: 'wanted' }] }
}

function decided(state: Egress, { id, allow, by, note }: Extract<RunEvent, { type: 'approval.decision' }>): Egress {
  const gate = state.gates.find(({ call }) => call.id === id)
  const gates = without(state.gates, id)
  if (!gate || allow) return { ...state, gates }
  const refusal = { call: gate.call, judgement: gate.judgement, by: `approval.${by}`, reason: note ?? 'the operator said no' }
  return { ...state, gates, refusals: refuse(state.refusals, refusal) }
}

const without = (gates: readonly PendingGate[], id: string) => gates.filter(({ call }) => call.id !== id)

const openGate = ({ call, judgement }: PendingGate): RunEvent => ({ type: 'gate.open', id: call.id, call, judgement })
