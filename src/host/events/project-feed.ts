/** Turns journal entries of all runs into numbered events; the same entries always give the same events with the same numbers. */

import { isObject } from '../../kit/json.ts'
import { homeRun } from '../../memory/journal/home-notes.ts'
import type { Journal } from '../../memory/journal/journal.ts'
import type { JournalEntry } from '../../memory/journal/journal-entry.ts'
import type { FeedEntry } from '../../memory/journal/journal-feed.ts'
import type { HostEvent, HostNotice } from './host-event.ts'
import { createRunProjection, type RunProjection } from './run-projection.ts'

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
    const told = projection.take(entry)
    if (projection.isOver()) runs.delete(runId)
    const whose = { ...(conversationId === null ? {} : { conversationId }), runId, ...(channel === null ? {} : { channel }) }
    return told.map((event, part) => ({ id: idOf(seq, part), seq, at, ...whose, event }))
  }
}

export function idOf(seq: number, part: number): string {
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

function textIn(body: Body, key: string): string | undefined {
  const found = body[key]
  return typeof found === 'string' ? found : undefined
}
