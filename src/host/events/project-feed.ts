/** Turns journal entries of all runs into numbered events; the same entries always give the same events with the same numbers. */

import { isObject } from '../../kit/json.ts'
import type { Journal } from '../../memory/journal/journal.ts'
import { homeRun } from '../../memory/journal/journal.ts'
import type { JournalEntry } from '../../memory/journal/journal-entry.ts'
import type { FeedEntry } from '../../memory/journal/journal-feed.ts'
import { askedIn, broughtBy } from '../../runtime/behaviours/start-events.ts'
import type { ChangeReview } from '../../runtime/changes.ts'
import type { AgentEvent, ExternalEvent, Judgement, Proposal, RunEvent } from '../../runtime/event.ts'
import { gateIdOf } from '../../runtime/gate-id.ts'
import { changesOf, dropOutcome } from '../../runtime/outcome.ts'
import { type Projected, project, projection } from '../../runtime/project.ts'
import { type Consequence, consequenceIn, externalOf, type ReplayEntry } from '../../runtime/replay/external-entry.ts'
import type { AskedApproval, HostEvent, HostNotice } from './host-event.ts'

export type FeedProjection = (entry: FeedEntry) => readonly HostEvent[]

/** Runs whose process died are forgotten when so many others began after them; what follows of them is read again. */
const mostRuns = 1_000

/** Call it with entries in order. It reads the beginning of a run itself when it has not seen that. */
export function createFeedProjection(journal: Pick<Journal, 'events'>): FeedProjection {
  const runs = new Map<string, RunProjection>()

  function projectionOf({ runId, conversationId, seq }: FeedEntry): RunProjection {
    const known = runs.get(runId)
    if (known) return known
    const projection = createRunProjection({ runId, conversationId: conversationId ?? '' })
    for (const entry of journal.events(runId)) if (entry.seq < seq) projection.take(entry)
    runs.set(runId, projection)
    const [oldest] = runs.keys()
    if (runs.size > mostRuns && oldest !== undefined) runs.delete(oldest)
    return projection
  }

  return (entry) => {
    const { seq, at, runId, conversationId, channel } = entry
    if (runId === homeRun) {
      const notice = noticeOf(entry)
      return notice ? [{ id: idOf(seq, 0), seq, at, ...notice }] : []
    }
    const projection = projectionOf(entry)
    const projected = projection.take(entry)
    if (projection.isOver()) runs.delete(runId)
    const whose = { ...(conversationId === null ? {} : { conversationId }), runId, ...(channel === null ? {} : { channel }) }
    return projected.map((event, part) => ({ id: idOf(seq, part), seq, at, ...whose, event }))
  }
}

function idOf(seq: number, part: number): string {
  return `${seq}.${part}`
}

type Notice = Pick<HostEvent, 'conversationId' | 'runId'> & { readonly event: HostNotice }

/** The actions of an operator on a change set, and what they are called when they succeeded. */
const changeActions = {
  'changes.apply': 'changes_applied',
  'changes.drop': 'changes_dropped',
  'changes.undo': 'changes_undone',
  'changes.redo': 'changes_redone',
  'changes.restore': 'changes_restored',
} as const

type Body = { readonly [key: string]: unknown }

/** Reads the notes that belong to no run as notices; a note that concerns no subscriber gives none. */
function noticeOf({ type, body }: Pick<JournalEntry, 'type' | 'body'>): Notice | undefined {
  if (!isObject(body)) return undefined
  const conversation = textIn(body, 'conversationId')
  const whose = conversation === undefined || conversation === 'none' ? {} : { conversationId: conversation }
  if (isChangeAction(type)) return { ...whose, ...changed(changeActions[type], body) }
  if (type === 'memory.cleared') return { event: { type: 'memory_cleared' } }
  if (type === 'approval.decided') return decided(whose, body)
  if (type === 'conversation.renamed') return { ...whose, event: { type: 'conversation_renamed', title: textIn(body, 'title') ?? '' } }
  if (type === 'conversation.delete') return { ...whose, event: { type: 'conversation_deleted' } }
  if (type === 'schedule.fired') return fired(whose, body)
  if (type === 'schedule.ended')
    return { event: { type: 'schedule_ended', schedule: textIn(body, 'schedule') ?? '', state: textIn(body, 'state') ?? '' } }
  if (type === 'sop.changed')
    return { event: { type: 'procedure_changed', procedureRun: textIn(body, 'id') ?? '', state: textIn(body, 'state') ?? '' } }
}

const isChangeAction = (type: string): type is keyof typeof changeActions => Object.hasOwn(changeActions, type)

function changed(type: (typeof changeActions)[keyof typeof changeActions], body: Body): Omit<Notice, 'conversationId'> {
  const input = isObject(body.input) ? body.input : {}
  const [run, call] = [textIn(input, 'run'), textIn(input, 'call')]
  const more = { ...member('digest', textIn(input, 'digest')), ...member('by', textIn(input, 'by')) }
  const end = { ...member('failed', textIn(body, 'error')), ...member('receipt', textIn(body, 'receipt')) }
  return { ...member('runId', run), event: { type, set: `${run ?? ''}/${call ?? ''}`, ...more, ...end } }
}

function decided(whose: Pick<Notice, 'conversationId'>, body: Body): Notice {
  const state = body.allow === true ? 'allowed' : 'denied'
  const said = { id: textIn(body, 'id') ?? '', state, by: textIn(body, 'by') ?? '', ...member('note', textIn(body, 'note')) } as const
  return { ...whose, ...member('runId', textIn(body, 'runId')), event: { type: 'approval_closed', ...said } }
}

function fired(whose: Pick<Notice, 'conversationId'>, body: Body): Notice {
  const run = member('runId', textIn(body, 'runId'))
  return { ...whose, ...run, event: { type: 'schedule_fired', schedule: textIn(body, 'schedule') ?? '', ...run } }
}

export function member<Name extends string>(name: Name, value: string | undefined): { readonly [key in Name]?: string } {
  const found: { [key in Name]?: string } = {}
  if (value !== undefined) found[name] = value
  return found
}

type ProjectedEvent = AgentEvent | HostNotice

type RunProjection = ReturnType<typeof createRunProjection>

/** How long an approval lives when its entry does not say it, in milliseconds. */
const usualLifeMs = 600_000

/**
 * Projects the journal entries of one run, one after the other, to what a subscriber sees. It needs no threads and judges nothing, so it
 * works for runs of other versions and of other programs too; what a replay shows comes out here in the same order of each call.
 */
function createRunProjection({ runId, conversationId }: { readonly runId: string; readonly conversationId: string }) {
  const state: { seen: Projected; over: boolean; failed: boolean } = { seen: projection(runId), over: false, failed: false }
  const proposals = new Map<string, Proposal>()
  const reviews = new Map<string, ChangeReview>()
  /** The open questions, by the call. */
  const gates = new Map<string, string>()
  /** Calls of the reply that were not shown yet: each call is shown before anything else about it. */
  let waiting: Proposal[] = []

  function show(event: RunEvent): readonly AgentEvent[] {
    state.seen = project(state.seen, event)
    return state.seen.events
  }

  /** Shows the calls up to the one that is `last`, or all. */
  function propose(last: (proposal: Proposal) => boolean = stops): ProjectedEvent[] {
    const at = waiting.findIndex(last)
    const next = waiting.splice(0, at < 0 ? waiting.length : at + 1)
    return next.flatMap((proposal) => show({ type: 'propose', id: proposal.call.id, ...proposal }))
  }

  function about(id: string): ProjectedEvent[] {
    const isIt = ({ call }: Proposal) => call.id === id
    return waiting.some(isIt) ? propose(isIt) : []
  }

  function external(event: ExternalEvent): readonly ProjectedEvent[] {
    const brought = broughtBy(event)
    if (brought !== undefined) {
      for (const proposal of brought) proposals.set(proposal.call.id, proposal)
      waiting = [...brought]
    }
    if (event.type === 'run.start')
      return [{ type: 'run_started', message: askedIn(event), model: event.model }, ...show(event), ...propose()]
    if (brought !== undefined) return [...show(event), ...propose()]
    if (event.type === 'model.fail') state.failed = true
    if (event.type === 'tool.changed') reviews.set(event.id, event.review)
    if (event.type === 'approval.decision') return closed(event.id, { allow: event.allow, by: event.by, note: event.note })
    if (event.type !== 'tool.done') return show(event)
    return [...show(event), ...fate(event.id, changesOf(event.outcome.metadata), event.outcome.receipt)]
  }

  function consequence(event: Consequence, body: ReplayEntry['body']): readonly ProjectedEvent[] {
    if (event.type === 'finish') return finished(event)
    const receipt = textIn(body, 'receipt')
    if (event.type === 'deny')
      return [...about(event.id), ...show(event), ...closed(event.id, { allow: false, by: event.by }), ...propose()]
    if (event.type === 'drop') return dropped(event, body, receipt)
    if (event.type === 'retry') return show(event)
    return about(event.id)
  }

  /** After a crash the entry has the result itself. */
  function dropped(
    event: Extract<Consequence, { type: 'drop' }>,
    body: ReplayEntry['body'],
    receipt: string | undefined,
  ): ProjectedEvent[] {
    const known = isObject(body) && isObject(body.result) ? body.result : undefined
    const metadata = known ? known.metadata : dropOutcome(event).metadata
    const changes = isObject(metadata) ? changesOf(metadata) : undefined
    return [...show(event), ...closed(event.id, { allow: false, by: event.by }), ...fate(event.id, changes, receipt, event.by)]
  }

  function finished(event: Extract<Consequence, { type: 'finish' }>): ProjectedEvent[] {
    const { code, message, stop } = event.ending
    state.over = true
    // Only this entry records what ended the run.
    const halted = stop === 'error' && !state.failed && code !== 'provider'
    const why: AgentEvent[] = halted ? [{ type: 'error', code, message, recoverable: false }] : []
    return [...propose(() => false), ...why, ...show(event), { type: 'run_ended', code, message }]
  }

  function interrupted(message: string): ProjectedEvent[] {
    state.over = true
    return [
      ...propose(() => false),
      { type: 'error', code: 'interrupted', message, recoverable: false },
      { type: 'done', stopReason: 'error' },
      { type: 'run_ended', code: 'error', message, interrupted: true },
    ]
  }

  function asked(id: string, { at, body }: ReplayEntry & { readonly at: number }): ProjectedEvent[] {
    const proposal = proposals.get(id)
    if (!proposal) return []
    const review = reviews.get(id)
    const gate = gateIdOf(runId, id, review && 'changes')
    gates.set(id, gate)
    const { call, judgement } = proposal
    const shown = { type: 'gate.open', id, call, judgement, ...(review ? { changes: review } : {}) } as const
    const expires = isObject(body) && typeof body.expires === 'number' ? body.expires : at + usualLifeMs
    const approval: AskedApproval = {
      id: gate,
      runId,
      conversationId,
      callId: id,
      tool: call.name,
      ...facts(judgement, review),
      about: review ? 'changes' : 'call',
      created: at,
      expires,
    }
    return [...about(id), ...show(shown), { type: 'approval_open', approval }, ...propose()]
  }

  function closed(
    id: string,
    { allow, by, note }: { readonly allow: boolean; readonly by: string; readonly note?: string | undefined },
  ): ProjectedEvent[] {
    const gate = gates.get(id)
    if (gate === undefined) return []
    gates.delete(id)
    // No person was there to answer: an operator elsewhere still can.
    if (!allow && /^(approval\.)?nobody$/.test(by)) return []
    return [{ type: 'approval_closed', id: gate, state: allow ? 'allowed' : 'denied', by, note }]
  }

  function fate(id: string, changes: string | undefined, receipt: string | undefined, by?: string): ProjectedEvent[] {
    if (changes === undefined || changes === 'none' || changes === 'direct') return []
    const more = { set: `${runId}/${id}`, by, receipt }
    if (changes === 'dropped') return [{ type: 'changes_dropped', ...more }]
    if (changes === 'pending') return [{ type: 'changes_pending', ...more }]
    return [{ type: 'changes_applied', digest: changes, ...more }]
  }

  return {
    /** Tells whether the run has ended; entries of a repair may follow. */
    isOver: () => state.over,
    /** Returns what the entry completes, in order. Never throws because of what the journal contains. */
    take(entry: ReplayEntry & { readonly at: number }): readonly ProjectedEvent[] {
      const { kind, type, body } = entry
      if (kind === 'note' && type === 'gate.open') return asked(textIn(body, 'id') ?? '', entry)
      if (kind === 'note' && type === 'interrupted') return interrupted(textIn(body, 'message') ?? 'the process of the run ended')
      const event = externalOf(entry)
      if (event) return external(event)
      const known = consequenceIn(entry)
      return known ? consequence(known, body) : []
    },
  }
}

/** The entry of a call that is denied or asked about comes before the next call is shown. */
const stops = ({ judgement }: Proposal) => judgement.verdict !== 'allow'

/** Returns the facts that the person is asked about: the call, or its changes. */
function facts({ risk, ...judged }: Judgement, review: ChangeReview | undefined) {
  const { rule, reason, summary } = review ?? judged
  return { risk, rule, reason, summary, plan: review?.digest ?? judged.plan }
}

function textIn(body: unknown, key: string): string | undefined {
  const found = isObject(body) ? body[key] : undefined
  return typeof found === 'string' ? found : undefined
}
