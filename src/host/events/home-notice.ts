/** Reads the notes that belong to no run as notices; a note that concerns no subscriber gives none. */

import { isObject } from '../../kit/json.ts'
import type { JournalEntry } from '../../memory/journal/journal-entry.ts'
import type { HostEvent, HostNotice } from './host-event.ts'

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

export function noticeOf({ type, body }: Pick<JournalEntry, 'type' | 'body'>): Notice | undefined {
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

function member<Name extends string>(name: Name, value: string | undefined): { readonly [key in Name]?: string } {
  const found: { [key in Name]?: string } = {}
  if (value !== undefined) found[name] = value
  return found
}

function textIn(body: Body, key: string): string | undefined {
  const found = body[key]
  return typeof found === 'string' ? found : undefined
}
