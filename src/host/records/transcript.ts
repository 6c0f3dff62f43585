/** Builds the transcript of a run from its journal entries: its messages, and each call with its result, approval and changes. */

import { isObject } from '../../kit/json.ts'
import type { JournalEntry } from '../../memory/journal/journal-entry.ts'
import { askedIn } from '../../runtime/behaviours/start-events.ts'
import type { ExternalEvent, Proposal, Usage } from '../../runtime/event.ts'
import { gateIdOf } from '../../runtime/gate-id.ts'
import { changesOf, dropOutcome } from '../../runtime/outcome.ts'
import { type Consequence, consequenceIn, externalOf } from '../../runtime/replay/external-entry.ts'
import { addUsage } from '../../runtime/usage.ts'
import type { CallApproval, CallChanges, CallStep, TranscriptStep } from '../contract/records-api.ts'

type CallEnd = { readonly status: 'allowed' | 'denied' | 'failed'; readonly output: string; readonly error?: string | undefined }

/** Leaves out what no run writes, so that it can show an altered run as well. */
export function transcriptOf(
  runId: string,
  entries: readonly JournalEntry[],
): { readonly steps: readonly TranscriptStep[]; readonly usage?: Usage } {
  const steps: TranscriptStep[] = []
  /** Where the step of each call is. */
  const calls = new Map<string, number>()
  const changed = new Set<string>()
  const state: { usage?: Usage } = {}

  function update(callId: string, change: (call: CallStep) => Partial<CallStep>): void {
    const at = calls.get(callId) ?? -1
    const step = steps[at]
    if (step?.type === 'call') steps[at] = { ...step, ...change(step) }
  }

  function propose({ seq, at }: JournalEntry, proposals: readonly Proposal[]): void {
    for (const { call, judgement } of proposals) {
      const { risk, verdict, rule, reason, summary } = judgement
      calls.set(call.id, steps.length)
      const asked = { callId: call.id, tool: call.name, input: call.input, risk, verdict, rule, reason, summary, approvals: [] }
      steps.push({ seq, at, type: 'call', ...asked })
    }
  }

  function reply(entry: JournalEntry, { parts, proposals, model, usage, cut }: Extract<ExternalEvent, { type: 'model.done' }>): void {
    const said = (type: 'text' | 'thinking') => parts.flatMap((part) => (part.type === type ? [part.text] : [])).join('')
    const [text, thinking] = [said('text'), said('thinking')]
    state.usage = addUsage(state.usage, usage)
    const { seq, at } = entry
    steps.push({ seq, at, type: 'reply', text, model, usage, ...(thinking ? { thinking } : {}), ...(cut ? { cut } : {}) })
    propose(entry, proposals)
  }

  function end(id: string, at: number, { status, output, error }: CallEnd, receipt: string | undefined, changes: string | undefined): void {
    const outcome = { status, output, at, ...(error === undefined || error === '' ? {} : { error }) }
    const fate = changes === undefined ? undefined : fateOf(changes, `${runId}/${id}`)
    update(id, () => ({ outcome, receipt, ...(fate ? { changes: fate } : {}) }))
  }

  function ask(id: string, opened: number): void {
    const about = changed.has(id) ? 'changes' : 'call'
    const question: CallApproval = { id: gateIdOf(runId, id, about), about, opened }
    update(id, ({ approvals }) => ({ approvals: [...approvals, question] }))
  }

  function decide(at: number, { id, allow, by, note }: Extract<ExternalEvent, { type: 'approval.decision' }>): void {
    const decision = { allow, by, at, note }
    update(id, ({ approvals }) => ({
      approvals: approvals.map((each, index) => (index === approvals.length - 1 ? { ...each, decision } : each)),
    }))
  }

  function external(entry: JournalEntry, event: ExternalEvent): void {
    const { seq, at } = entry
    if (event.type === 'run.start') {
      steps.push({ seq, at, type: 'message', text: askedIn(event) })
      propose(entry, event.continues?.proposals ?? [])
    } else if (event.type === 'model.done') reply(entry, event)
    else if (event.type === 'judged') propose(entry, event.proposals)
    else if (event.type === 'steer') steps.push({ seq, at, type: 'message', text: event.text })
    else if (event.type === 'model.fail' && event.code !== 'aborted')
      steps.push({ seq, at, type: 'error', code: event.code === 'budget' ? event.code : `provider.${event.code}`, message: event.message })
    else if (event.type === 'tool.changed') changed.add(event.id)
    else if (event.type === 'approval.decision') decide(at, event)
    else if (event.type === 'tool.done') end(event.id, at, event.outcome, event.outcome.receipt, changesOf(event.outcome.metadata))
  }

  function consequence({ seq, at, body }: JournalEntry, event: Consequence): void {
    const receipt = isObject(body) && typeof body.receipt === 'string' ? body.receipt : undefined
    if (event.type === 'deny')
      end(event.id, at, { status: 'denied', output: '', error: `${event.by}: ${event.reason}` }, receipt, undefined)
    else if (event.type === 'drop') dropped(at, event, body, receipt)
    else if (event.type === 'retry') steps.push({ seq, at, type: 'message', text: event.evidence })
    else if (event.type === 'finish' && event.ending.stop === 'error' && steps.at(-1)?.type !== 'error')
      steps.push({ seq, at, type: 'error', code: event.ending.code, message: event.ending.message })
  }

  /** After a crash the entry has the result itself. */
  function dropped(at: number, event: Extract<Consequence, { type: 'drop' }>, body: unknown, receipt: string | undefined): void {
    const result = isObject(body) && isObject(body.result) ? body.result : undefined
    const droppedOutcome = dropOutcome(event)
    const error = typeof result?.error === 'string' ? result.error : droppedOutcome.error
    const metadata = isObject(result?.metadata) ? result.metadata : droppedOutcome.metadata
    end(event.id, at, { ...droppedOutcome, status: result ? 'failed' : 'denied', error }, receipt, changesOf(metadata))
  }

  for (const entry of entries) {
    const { kind, type, body, seq, at } = entry
    if (kind === 'note' && type === 'gate.open' && isObject(body) && typeof body.id === 'string') ask(body.id, at)
    else if (kind === 'note' && type === 'interrupted') {
      const message = isObject(body) && typeof body.message === 'string' ? body.message : 'the process of the run ended'
      steps.push({ seq, at, type: 'error', code: 'interrupted', message })
    } else {
      const event = externalOf(entry)
      const known = event ? undefined : consequenceIn(entry)
      if (event) external(entry, event)
      if (known) consequence(entry, known)
    }
  }
  return { steps, usage: state.usage }
}

function fateOf(changes: string, set: string): CallChanges {
  if (changes === 'none' || changes === 'direct') return { fate: changes }
  if (changes === 'dropped' || changes === 'pending') return { fate: changes, set }
  return { fate: 'applied', digest: changes, set }
}
