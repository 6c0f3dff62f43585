/** Writes turns of another conversation, or of a file, into a new conversation: their messages, without calls, receipts or costs. */

import { createId } from '../../kit/sha256.ts'
import type { Message, RunIdentity } from '../../runtime/port.ts'
import type { Approvals } from '../approval-table.ts'
import type { Journal } from '../journal/journal.ts'
import { copiedMessage, copiedTurn } from '../journal/journal-entry.ts'
import type { Store } from '../store.ts'
import { isOver, lateDecisions, runsOf, turnReader, turnsOf } from './model-context.ts'
import { createResults } from './results.ts'
import { addSummary, digestOfText, latestSummary, placeOf, sourceDigest } from './summaries.ts'

type Source = { readonly store: Store; readonly journal: Journal; readonly approvals: Approvals }

/** `at`: when the turn began, in milliseconds since 1970. `runIds`: its runs; absent for a turn of a file. */
export type CopiedTurn = {
  readonly at: number
  readonly provider: string
  readonly model: string
  readonly messages: readonly Message[]
  readonly runIds?: readonly string[]
}

/** Returns the turns of a conversation that have ended, oldest first; what a summary covers is among them. */
export function turnsToCopy({ store, journal, approvals }: Source, now: number, conversationId: string): readonly CopiedTurn[] {
  const said = store.sql<{ at: number }, [string]>(
    `SELECT coalesce(metadata ->> 'copied', at) AS at FROM turns WHERE run_id = ? ORDER BY id`,
  )
  const readTurn = turnReader(store)
  const turns = [...turnsOf(runsOf(store, conversationId, 0), readTurn)].toReversed()
  return turns.flatMap(({ runIds, started }) => {
    const { messages } = readTurn(runIds)
    if (messages.length === 0 || !runIds.every((runId) => isOver(store, runId))) return []
    const late = runIds.flatMap((runId) => lateDecisions(store, approvals, runId, now)).map(({ message }) => message)
    const { provider = '', model = '' } = journal.run(runIds.at(-1) ?? '') ?? {}
    return [{ at: said.get(runIds[0] ?? '')?.at ?? started, provider, model, messages: [...messages, ...late], runIds }]
  })
}

export type Copy = {
  readonly conversationId: string
  readonly channel: 'fork' | 'import'
  readonly folder?: string | undefined
  readonly turns: readonly CopiedTurn[]
  /** The conversation that the turns are from; its summary is copied too. */
  readonly from?: string
}

/** `end` ends a run and seals it. */
type Writing = Omit<Source, 'approvals'> & { readonly end: Journal['end']; readonly now: number; readonly resultsMaxBytes: number }

/** Writes one run for each turn. Call it inside a transaction. */
export function writeCopy({ journal, store, end, now, resultsMaxBytes }: Writing, { turns, from, ...copy }: Copy): void {
  const positions = turns.map(({ at, provider, model, messages }) => {
    const run: RunIdentity = { ...copy, runId: newId('run'), turnId: newId('turn'), provider, model }
    const note = (type: string, body: object) => journal.append({ run, kind: 'note', type, at: now, body: { type, ...body } })
    const seqs = messages.map((message, index) => note(copiedMessage, { message, said: at, ...(index === 0 ? { question: true } : {}) }))
    note(copiedTurn, from === undefined ? {} : { from })
    end(run.runId, { at: now, code: 'answered', message: '', digest: null })
    return seqs[0] ?? 0
  })
  if (from === undefined) return
  const to = copy.conversationId
  copySummary(store, { from, to, turns, positions })
  const digests = turns.flatMap(({ messages }) => messages.flatMap(picturesNamed))
  if (digests.length > 0) createResults(store).copyPictures({ from, to, digests }, now, resultsMaxBytes)
}

function picturesNamed(message: Message): string[] {
  const pictures = message.role === 'assistant' ? [] : (message.pictures ?? [])
  return pictures.flatMap((each) => ('sha256' in each ? each.sha256 : []))
}

const newId = (prefix: string) => createId(prefix, crypto.getRandomValues(new Uint8Array(12)))

type SummaryCopy = Pick<Copy, 'turns'> & {
  readonly from: string
  readonly to: string
  /** The first journal entry of each copied turn. */
  readonly positions: readonly number[]
}

/** Copies the summary when it ends with one of the turns, so that the model gets the same messages as before. */
function copySummary(store: Store, { from, to, turns, positions }: SummaryCopy): void {
  const summary = latestSummary(store, from)
  const end = summary && placeOf(store, summary.through)
  const places = turns.map(({ runIds = [] }) => runIds.map((runId) => placeOfRun(store, runId)))
  const last = places.findLastIndex((runs) => runs.every((place) => place <= (end ?? 0)))
  const through = positions[last]
  const isBetween = places[last + 1]?.every((place) => place > (end ?? 0)) ?? true
  const upTo = through === undefined ? undefined : placeOf(store, through)
  if (!summary || end !== places[last]?.at(-1) || through === undefined || upTo === undefined || !isBetween) return
  const digest = sourceDigest(store, to, { after: 0, upTo })
  addSummary(store, { ...summary, conversationId: to, through, sourceDigest: digest, previousDigest: digestOfText('') })
}

function placeOfRun(store: Store, runId: string): number {
  return store.sql<{ place: number }, [string]>('SELECT rowid AS place FROM runs WHERE run_id = ?').get(runId)?.place ?? 0
}
