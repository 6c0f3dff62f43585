/**
 * Computes the lines of an agent's files from the journal alone, in the order of its entries, so that every rebuild gives the same lines.
 */

import { isObject } from '../kit/json.ts'
import { askedIn, broughtBy } from '../runtime/behaviours/start-events.ts'
import type { AgentEvent, Ending } from '../runtime/event.ts'
import { rememberedOf } from '../runtime/history-text.ts'
import type { RunAgent } from '../runtime/port.ts'
import { type Projected, project, projection } from '../runtime/project.ts'
import { externalOf } from '../runtime/replay/external-entry.ts'
import { type AgentFile, agentFiles } from './agent-files/agent-paths.ts'
import { messageLine } from './agent-files/history-file.ts'
import { sessionLine, traceLine } from './agent-files/session-file.ts'
import { agentIn } from './journal/journal.ts'
import { entryColumns, entryOf, foreignLineIn, type JournalEntry, type JournalRow } from './journal/journal-entry.ts'
import type { Store } from './store.ts'

export type JournalLine = RunLine & {
  readonly runId: string
  readonly seq: number
  readonly /** The position of the line among this run's lines in this file, from 0. */ number: number
}

/** @param key of the folder; see folderKey */
export function* linesInJournal(store: Store, key: string): Generator<JournalLine> {
  const rows = store.sql<JournalRow & { readonly runId: string; readonly agent: string }, [string]>(
    `SELECT ${entryColumns}, run_id AS runId, agent FROM journal JOIN runs USING (run_id) WHERE agent ->> 'folder' = ? ORDER BY seq`,
  )
  const runs = new Map<string, (row: JournalRow) => readonly JournalLine[]>()
  for (const { runId, agent, ...row } of rows.iterate(key)) {
    const next = runs.get(runId) ?? linesOfRun(store.path, runId, agent)
    runs.set(runId, next)
    yield* next(row)
  }
}

/**
 * Tells whether a file contains exactly the last part of the expected lines, because a compaction or a person cut it. Takes time in
 * proportion to the file. @returns the number of the journal entry before its first line
 */
export function matchesEnd(
  store: Store,
  { key, file, texts }: { readonly key: string; readonly file: AgentFile; readonly texts: readonly string[] },
) {
  const runs = store.sql<{ runId: string }, [string]>(`SELECT run_id AS runId FROM runs WHERE agent ->> 'folder' = ? ORDER BY rowid DESC`)
  let left = texts.length
  let since: number | undefined
  for (const { runId } of left === 0 ? [] : runs.iterate(key)) {
    for (const line of linesByRun(store, runId).toReversed()) {
      if (line.file !== file) continue
      if (left === 0) return line.seq === since ? undefined : (since ?? 0) - 1
      left -= 1
      if (line.text !== texts[left]) return undefined
      since = line.seq
    }
  }
  return left === 0 && since !== undefined ? since - 1 : undefined
}

/** Returns all lines of one run so far. */
export function linesByRun(store: Store, runId: string): readonly JournalLine[] {
  const agent = store.sql<{ agent: string | null }, [string]>('SELECT agent FROM runs WHERE run_id = ?').get(runId)?.agent ?? null
  return entriesAfter(store, runId, 0).flatMap(linesOfRun(store.path, runId, agent))
}

export function entriesAfter(store: Store, runId: string, seq: number): readonly JournalRow[] {
  return store
    .sql<JournalRow, [string, number]>(`SELECT ${entryColumns} FROM journal WHERE run_id = ? AND seq > ? ORDER BY seq`)
    .all(runId, seq)
}

/** @returns a function that takes the rows of a run in order; a row with invalid JSON gives no lines */
export function linesOfRun(path: string, runId: string, agentText: string | null): (row: JournalRow) => readonly JournalLine[] {
  const agent = agentIn(path, agentText)
  const next = agent && createRunLines(runId, agent)
  const counts = new Map(agentFiles.map((file) => [file, 0]))
  return (row) => {
    const entry = next && entryOf(row)
    if (!next || !entry) return []
    return next(entry).map((line) => {
      const number = counts.get(line.file) ?? 0
      if (!line.foreign) counts.set(line.file, number + 1)
      return { ...line, runId, seq: row.seq, number }
    })
  }
}

/** Without its newline. `foreign`: another program wrote the line, and the file contained it before the journal did. */
type RunLine = { readonly file: AgentFile; readonly text: string; readonly foreign?: true }

/** The state of a run after its journal was read up to some entry. */
type RunState = {
  projected: Projected
  readonly calls: Map<string, { readonly name: string; readonly input: unknown }>
  /** `isContinued`: an earlier run wrote the question into the session. */
  question?: { readonly text: string; readonly at: number; readonly isContinued: boolean }
  failed: boolean
}

/** @returns a function that takes the entries of one run in order and returns the lines that each adds */
function createRunLines(runId: string, agent: RunAgent): (entry: JournalEntry) => readonly RunLine[] {
  const seen: RunState = { projected: projection(runId), calls: new Map(), failed: false }

  function trace(at: number, event: string, message: string): RunLine {
    return { file: 'trace', text: traceLine({ agent: agent.id, event, message }, at) }
  }

  function external(entry: JournalEntry): readonly RunLine[] {
    const event = externalOf(entry)
    if (!event) return []
    const proposals = event.type === 'judged' ? [] : (broughtBy(event) ?? [])
    for (const { call } of proposals) seen.calls.set(call.id, call)
    const called = proposals.map(({ call }) => trace(entry.at, 'tool_call', spelled(call)))
    if (event.type === 'run.start') {
      seen.question = { text: event.continues?.asked ?? event.prompt, at: entry.at, isContinued: event.continues !== undefined }
      return [trace(entry.at, event.continues ? 'continued' : 'user_input', askedIn(event)), ...called]
    }
    seen.projected = project(seen.projected, event)
    if (event.type === 'model.fail') seen.failed = true
    return [...called, ...seen.projected.events.flatMap((each) => resultLine(entry.at, each))]
  }

  function resultLine(at: number, event: AgentEvent): RunLine[] {
    if (event.type === 'error') return [trace(at, 'error', `${event.code}: ${event.message}`)]
    if (event.type !== 'tool_result') return []
    const name = seen.calls.get(event.toolCallId)?.name ?? event.toolCallId
    return [trace(at, event.status === 'completed' ? 'tool_result' : 'tool_failed', `${name}: ${String(event.output)}`)]
  }

  function note({ type, at, body }: JournalEntry): readonly RunLine[] {
    if (type === 'deny') return [trace(at, 'denied', `${nameIn(body)}: Denied by ${textOf(body, 'by')}: ${textOf(body, 'reason')}`)]
    if (type === 'gate.open') return [trace(at, 'approval_asked', spelled(seen.calls.get(textOf(body, 'id')) ?? { name: '', input: {} }))]
    if (type === 'finish') return finished(at, isObject(body) ? body.ending : undefined)
    return type === 'interrupted' ? session(at) : []
  }

  function finished(at: number, ending: unknown): readonly RunLine[] {
    if (!isEnding(ending)) return session(at)
    const last = project(seen.projected, { type: 'finish', ending }).events.at(-1)
    const answer = last?.type === 'done' ? last.result : undefined
    return [
      ...(hasHalted(ending) && !seen.failed ? [trace(at, 'error', `${ending.code}: ${ending.message}`)] : []),
      ...(answer === undefined ? [] : [trace(at, 'llm_response', answer)]),
      ...session(at, answer),
      ...(agent.remembers ? history(rememberedOf(ending, answer)) : []),
    ]
  }

  /** Writes a question without an answer alone. */
  function session(at: number, answer?: string): RunLine[] {
    const { question } = seen
    if (!question) return []
    const asked = question.isContinued ? [] : [sessionMessage({ role: 'user', content: question.text }, question.at)]
    return [...asked, ...(answer === undefined ? [] : [sessionMessage({ role: 'assistant', content: answer }, at)])]
  }

  function history(answer: string | undefined): RunLine[] {
    if (answer === undefined || !seen.question) return []
    const pair = [messageLine({ role: 'user', content: seen.question.text }), messageLine({ role: 'assistant', content: answer })]
    return pair.map((text) => ({ file: 'history', text }))
  }

  return (entry) => {
    const foreign = foreignLineIn(entry)
    if (foreign) return [{ file: foreign.file, text: foreign.text, foreign: true }]
    if (entry.kind === 'external') return external(entry)
    return entry.kind === 'note' ? note(entry) : []
  }
}

function sessionMessage(message: Parameters<typeof sessionLine>[0], at: number): RunLine {
  return { file: 'session', text: sessionLine(message, at) }
}

function spelled({ name, input }: { readonly name: string; readonly input: unknown }): string {
  return `${name} ${JSON.stringify(input)}`
}

/** Tells whether a limit was reached or nothing could continue: no event of the journal contains this reason. */
function hasHalted({ code }: Ending): boolean {
  return ['limit', 'budget', 'timeout', 'stalled', 'checks_failed'].includes(code)
}

function nameIn(body: unknown): string {
  return textOf(isObject(body) ? body.call : undefined, 'name') || textOf(body, 'id')
}

function textOf(value: unknown, key: string): string {
  const found = isObject(value) ? value[key] : undefined
  return typeof found === 'string' ? found : ''
}

function isEnding(value: unknown): value is Ending {
  return isObject(value) && [value.stop, value.code, value.message].every((each) => typeof each === 'string')
}
