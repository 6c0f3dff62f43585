/** Supplies a conversation from the database to compaction: complete runs that have ended, oldest first. */

import { isObject } from '../../kit/json.ts'
import type { Clock, Log } from '../../runtime/port.ts'
import { messageLine, withoutMiddle } from '../agent-files/history-file.ts'
import type { Lengths } from '../agent-files/history-source.ts'
import type { Role } from '../journal/turns.ts'
import type { Store } from '../store.ts'
import { type CompactionStore, compact, type Failures, type Portion, type Summarise, type SummaryAnswer } from './compact.ts'
import { addSummary, digestOfText, latestSummary, placeOf, type Summary, sourceDigest } from './summaries.ts'

export type SummariseRequest = {
  readonly conversationId: string
  readonly lengths: Lengths
  readonly summarise: Summarise
  readonly signal: AbortSignal
  /** Says what the summary holds in any case. */
  readonly keep?: string | undefined
  /** Removes secrets from the summary. */
  readonly redact?: (text: string) => string
}

export type Summaries = ReturnType<typeof createSummaries>

export function createSummaries(store: Store, { now, log }: { readonly now: Clock; readonly log: Log }) {
  return {
    /**
     * Compacts when there are more than `max` messages since the last summary. The turns stay in the journal, and search still finds them.
     * @throws SQLiteError
     */
    compact: ({ conversationId, lengths, keep, summarise, signal, redact = (text) => text }: SummariseRequest) =>
      compact(conversationStore(store, { conversationId, lengths, keep, redact }), { summarise, now, log, signal }),
  }
}

type RunPortion = Portion & { readonly summary: Omit<Summary, 'text' | 'model' | 'at'> }

type SummaryScope = Required<Pick<SummariseRequest, 'conversationId' | 'lengths' | 'redact'>> & Pick<SummariseRequest, 'keep'>

function conversationStore(store: Store, of: SummaryScope): CompactionStore<RunPortion> {
  const { conversationId } = of
  return {
    due: () => due(store, of),
    failures: () => {
      const rows = store.sql<Failures, [string]>('SELECT count, at, message FROM summary_failures WHERE conversation_id = ?')
      return rows.get(conversationId) ?? undefined
    },
    failed({ count, at, message }) {
      const put = 'INSERT OR REPLACE INTO summary_failures(conversation_id, count, at, message) VALUES (?, ?, ?, ?)'
      store.run(put, conversationId, count, at, of.redact(message))
    },
    commit: (portion, answer) => store.write(() => commit(store, { portion, answer: { ...answer, text: of.redact(answer.text) } })),
  }
}

/** `over`: nothing will be added to the run. `position`: its first journal entry. */
type RunRow = {
  readonly runId: string
  readonly place: number
  readonly position: number
  readonly over: number
  readonly messages: number
}

function due(store: Store, { conversationId, lengths, keep }: SummaryScope): RunPortion | undefined {
  const previous = latestSummary(store, conversationId)
  const after = placeOf(store, previous?.through ?? 0)
  if (after === undefined) return undefined
  const runs = runsAfter(store, conversationId, after)
  if (messagesOf(runs) <= lengths.max) return undefined
  const open = runs.findIndex(({ over }) => over === 0)
  const old = runs.slice(0, Math.min(runs.length - runsToKeep(runs, lengths.keep), open === -1 ? runs.length : open))
  const taken = fitting(store, old, lengths.portionBytes)
  const last = taken.runs.at(-1)
  if (!last) return undefined
  return {
    existing: previous?.text ?? '',
    conversation: taken.lines.map(({ text }) => text).join('\n'),
    messages: messagesOf(taken.runs),
    keep,
    summary: {
      conversationId,
      through: last.position,
      turns: (previous?.turns ?? 0) + taken.lines.filter(({ role }) => role === 'user').length,
      sourceDigest: sourceDigest(store, conversationId, { after, upTo: last.place }),
      previousDigest: digestOfText(previous?.text ?? ''),
    },
  }
}

function messagesOf(runs: readonly RunRow[]): number {
  return runs.reduce((sum, { messages }) => sum + messages, 0)
}

/** Returns how many of the newest runs stay unchanged; at least one. */
function runsToKeep(runs: readonly RunRow[], keep: number): number {
  let messages = 0
  let count = 0
  for (const run of runs.toReversed()) {
    messages += run.messages
    if (messages > keep) break
    count += 1
  }
  return Math.max(1, count)
}

function runsAfter(store: Store, conversationId: string, after: number): RunRow[] {
  return store
    .sql<RunRow, [string, number]>(
      `SELECT run_id AS runId, rowid AS place, (SELECT min(seq) FROM journal WHERE journal.run_id = runs.run_id) AS position,
         ended IS NOT NULL AND NOT EXISTS (SELECT 1 FROM intents WHERE intents.run_id = runs.run_id) AS over,
         (SELECT count(*) FROM turns WHERE turns.run_id = runs.run_id) AS messages
       FROM runs WHERE conversation_id = ? AND rowid > ? AND position IS NOT NULL ORDER BY rowid`,
    )
    .all(conversationId, after)
}

type TurnLine = { readonly role: Role; readonly text: string }

/** Returns as many complete runs as fit into one request; at least one. */
function fitting(store: Store, runs: readonly RunRow[], portionBytes: number) {
  const lines: TurnLine[] = []
  let bytes = 0
  for (const [at, run] of runs.entries()) {
    const more = linesOf(store, run.runId, Math.floor(portionBytes / 2))
    bytes += more.reduce((sum, { text }) => sum + Buffer.byteLength(text) + 1, 0)
    if (at > 0 && bytes > portionBytes) return { runs: runs.slice(0, at), lines }
    lines.push(...more)
  }
  return { runs, lines }
}

/** Tool results are shortened, and what a failed check found is left out, because the answer after them contains what mattered. */
const longestResult = 500

function linesOf(store: Store, runId: string, longest: number): TurnLine[] {
  const rows = store.sql<{ role: Role; content: string; results: string | null }, [string]>(
    `SELECT role, content, tool_results AS results FROM turns WHERE run_id = ? AND metadata ->> 'file' IS NULL AND metadata ->> 'retry' IS NULL
     ORDER BY id`,
  )
  return rows.all(runId).flatMap(({ role, content, results }): TurnLine[] => {
    if (role === 'tool')
      return [{ role, text: messageLine({ role, content: `${toolIn(results)}: ${withoutMiddle(content, longestResult)}` }) }]
    return content === '' ? [] : [{ role, text: messageLine({ role, content: withoutMiddle(content, longest) }) }]
  })
}

function toolIn(results: string | null): string {
  const [shown]: unknown[] = JSON.parse(results ?? '[]')
  return isObject(shown) && typeof shown.name === 'string' ? shown.name : 'tool'
}

function commit(store: Store, { portion: { summary }, answer }: { readonly portion: RunPortion; readonly answer: SummaryAnswer }): boolean {
  const { conversationId, through } = summary
  const previous = latestSummary(store, conversationId)
  const [after, upTo] = [placeOf(store, previous?.through ?? 0), placeOf(store, through)]
  // If another summary was stored meanwhile, the source starts elsewhere and its digest differs.
  if (after === undefined || upTo === undefined) return false
  if (sourceDigest(store, conversationId, { after, upTo }) !== summary.sourceDigest) return false
  addSummary(store, { ...summary, ...answer })
  store.run('DELETE FROM summary_failures WHERE conversation_id = ?', conversationId)
  return true
}
