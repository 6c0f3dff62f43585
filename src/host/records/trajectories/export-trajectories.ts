/** Exports runs of the journal as training data: grouped by task, redacted, validated, and byte for byte the same each time. */

import { changeTexts, isObject, parseJson } from '../../../kit/json.ts'
import { sha256 } from '../../../kit/sha256.ts'
import type { RunRecord } from '../../../memory/journal/journal.ts'
import { entryOf, firstAltered } from '../../../memory/journal/journal-entry.ts'
import type { Memory } from '../../../memory/memory.ts'
import { scheduleChecks } from '../../../memory/schedule-store.ts'
import { listReceipts } from '../../../receipts/list-receipts.ts'
import { type RecordedRun, recordedRun } from '../../../runtime/replay/recorded-run.ts'
import type { Setup } from '../../api.ts'
import { FailureError } from '../../failure.ts'
import { receiptPaths } from '../integrity/create-record.ts'
import { resolveRun } from '../records-base.ts'
import { type ExportedRun, type FormatName, formats } from './formats.ts'

/** `runs`: ids, unique prefixes or `last`. `since`: in milliseconds since 1970. `tasks`: texts, or their digests or the beginnings of these. */
export type ExportQuery = {
  readonly format: FormatName
  readonly runs?: readonly string[] | undefined
  readonly since?: number | undefined
  readonly tasks?: readonly string[] | undefined
}

/** Why a run has no record: see the words for each in the command. */
export type LeftOut = 'running' | 'unchecked' | 'unfit' | 'unpaired'

/** `altered`: what was found in runs that are not what was written; they have no record. */
export type ExportSummary = Record<'records' | 'tasks' | 'passed' | 'failed' | 'unchecked' | 'redactions', number> & {
  readonly format: FormatName
  readonly left: Record<LeftOut, number>
  readonly altered: string[]
}

/** A tenth of all tasks is for tests, whatever else is exported with them. */
export type DataPart = 'train' | 'test'

type Exporting = { readonly memory: Memory; readonly setup: Pick<Setup, 'config' | 'paths' | 'redactor'> }

/** `ids`: the runs that this one continues, and itself. */
type TaskRun = {
  readonly run: RunRecord
  readonly prompt: string
  readonly task_id: string
  readonly example: number
  readonly ids: readonly string[]
}

/**
 * Writes one line a record, without its newline, until `write` returns false.
 * @throws FailureError `usage` for a task that no run has, `error` for a run that does not exist or does not fit the schema
 */
export function exportTrajectories(from: Exporting, query: ExportQuery, write: (line: string, part: DataPart) => boolean): ExportSummary {
  const format = formats[query.format]
  const shape = format.shape()
  const summary: ExportSummary = {
    ...{ format: query.format, records: 0, tasks: 0, passed: 0, failed: 0, unchecked: 0, redactions: 0, altered: [] },
    left: { running: 0, unchecked: 0, unfit: 0, unpaired: 0 },
  }
  const read = createReader(from, summary)

  /** Yields the runs that the format takes, and counts the others. */
  function* fitting(runs: readonly TaskRun[]): Generator<ExportedRun> {
    for (const each of runs) {
      const run = read(each)
      const isUnchecked = run?.reward === undefined && (format.takes === 'rewarded' || format.takes === 'pairs')
      const isUnfit = format.takes === 'imitable' && (run?.reward === 0 || run?.provenance.ending !== 'answered')
      if (run && !isUnchecked && !isUnfit) yield run
      else if (run) summary.left[isUnfit ? 'unfit' : 'unchecked'] += 1
    }
  }

  for (const runs of groups(from, query, summary)) {
    const written = new Set<ExportedRun>()
    for (const set of format.takes === 'pairs' ? pairsOf([...fitting(runs)], summary) : alone(fitting(runs))) {
      const [run, failure] = set
      const value = format.record(run, failure)
      const wrong = shape.safeParse(value).error?.issues[0]
      const ids = [...new Set(set)].map(({ provenance }) => provenance.run_id).join(' and ')
      if (wrong) throw new FailureError('error', `${ids} cannot be written as ${query.format}: ${wrong.path.join('.')}: ${wrong.message}`)
      if (written.size === 0) summary.tasks += 1
      summary.records += 1
      for (const { reward, provenance } of new Set(set).difference(written)) {
        summary[reward === undefined ? 'unchecked' : reward === 1 ? 'passed' : 'failed'] += 1
        summary.redactions += provenance.redactions
      }
      for (const each of set) written.add(each)
      if (!write(lineOf(value), Number.parseInt(run.task_id.slice(0, 8), 16) % 10 === 0 ? 'test' : 'train')) return summary
    }
  }
  return summary
}

function* alone(runs: Iterable<ExportedRun>): Generator<readonly [ExportedRun, ExportedRun]> {
  for (const run of runs) yield [run, run]
}

/** Yields each success with a failure of the task; the fewer ones come again, so that every run is in a pair. */
function* pairsOf(runs: readonly ExportedRun[], { left }: ExportSummary): Generator<readonly [good: ExportedRun, bad: ExportedRun]> {
  const [good, bad] = [runs.filter(({ reward }) => reward === 1), runs.filter(({ reward }) => reward !== 1)]
  if (good.length === 0 || bad.length === 0) left.unpaired += runs.length
  for (let at = 0; at < Math.max(good.length, bad.length); at++) {
    const [chosen, rejected] = [good[at % good.length], bad[at % bad.length]]
    if (chosen && rejected) yield [chosen, rejected]
  }
}

/** Some readers take these three characters for the end of a line. */
function lineOf(value: unknown): string {
  return JSON.stringify(value).replace(/[\u0085\u2028\u2029]/g, (found) => `\\u${found.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

/** Returns the runs of each task, in the order in which tasks and runs began. A run that another one continues is part of that one. */
function groups({ memory, setup }: Exporting, query: ExportQuery, { left }: ExportSummary): Iterable<TaskRun[]> {
  const chosen = query.runs && new Set(query.runs.map((ref) => resolveRun(memory, ref).runId))
  const continues = new Map<string, string>()
  const begun: Omit<TaskRun, 'example' | 'ids'>[] = []
  for (const { start, ...run } of memory.journal.beginnings(query.since ?? 0)) {
    const body = parseJson(start ?? '')
    // No model answers what people and checks call: see directCall.
    if (!isObject(body) || run.provider === 'operator') continue
    const before = isObject(body.continues) ? body.continues : {}
    if (typeof before.run === 'string') continues.set(run.runId, before.run)
    const prompt = setup.redactor.text(String(before.asked ?? body.prompt)).toWellFormed()
    const task_id = sha256(prompt)
    const isTask = query.tasks?.some((task) => task === prompt || (task.length >= 6 && task_id.startsWith(task))) ?? true
    if (isTask && (chosen?.has(run.runId) ?? true)) begun.push({ run, prompt, task_id })
  }
  if (query.tasks && begun.length === 0) throw new FailureError('usage', 'no run has such a task; --task is its text, or its task_id')
  const parts = new Set(chosen ? [] : continues.values())
  const idsOf = (id: string | undefined, later: readonly string[] = []): readonly string[] =>
    id === undefined || later.includes(id) ? later : idsOf(continues.get(id), [id, ...later])
  const found = new Map<string, TaskRun[]>()
  for (const each of begun.filter(({ run }) => !parts.has(run.runId))) {
    if (each.run.ended === null) left.running += 1
    else {
      const group = found.get(each.task_id) ?? []
      group.push({ ...each, example: group[0]?.example ?? found.size, ids: idsOf(each.run.runId) })
      found.set(each.task_id, group)
    }
  }
  return found.values()
}

/** Returns a function that reads a run, without secrets; undefined for a run that is not what was written. */
function createReader({ memory, setup }: Exporting, { altered }: ExportSummary): (candidate: TaskRun) => ExportedRun | undefined {
  const scheduled = scheduleChecks(memory.store)
  let hashes: ReadonlyMap<string, string> | undefined
  const hashOf = (id: string) => {
    hashes ??= receiptHashes(receiptPaths(setup).log)
    return hashes.get(id) ?? `${id} is missing`
  }
  return ({ run, prompt, task_id, example, ids }) => {
    const runs = ids.map((id) => ({ id, entries: memory.journal.stored(id) }))
    const entries = runs.flatMap((each) => each.entries)
    const wrong = runs.flatMap(({ id, entries }) => {
      const first = firstAltered(id, entries)
      return first ? [`${id}: ${first.message}`] : []
    })
    // A trainer needs no intents: each result says what came of them.
    const recorded = recordedRun(entries.flatMap((entry) => (entry.kind === 'intent' ? [] : (entryOf(entry) ?? []))))
    altered.push(...wrong, ...(recorded ? [] : [`${run.runId}: its beginning cannot be read`]))
    if (recorded === undefined || wrong.length > 0) return undefined
    let redactions = 0
    const value = changeTexts(withSchedule(recorded, scheduled.get(run.runId)), (text) => {
      const safe = setup.redactor.text(text).toWellFormed()
      if (safe.includes('[redacted')) redactions += safe.match(/\[redacted(:[^\]\n]{1,80})?\]/g)?.length ?? 0
      return safe
    })
    const receipts = value.receipts.map(hashOf)
    const provenance = {
      ...{ run_id: run.runId, conversation_id: run.conversationId, model: `${run.provider}/${run.model}` },
      ...{ version: value.version, tools_sha256: value.tools, started: new Date(value.at).toISOString() },
      ...{ ended: run.ended === null ? null : new Date(run.ended).toISOString(), ending: run.code, redactions },
      ...{ journal_sha256: entries.at(-1)?.digest ?? null, checks: [...value.checks] },
      receipts: { count: receipts.length, sha256: sha256(receipts.join('\n')) },
    }
    return { ...value, prompt, task_id, example, provenance }
  }
}

type ScheduleCheck = { readonly checked: string; readonly command: string | null }

/** Adds the verdict of the schedule's check, which runs after the run. `checked` says `passed`, or why not; see run-schedule.ts. */
function withSchedule(run: RecordedRun, check: ScheduleCheck | undefined): RecordedRun {
  if (check === undefined || run.checks.length > 0 || check.checked.startsWith('not run')) return run
  const pass = check.checked === 'passed'
  const exit = pass ? 0 : Number(/^exit code (\d+)$/.exec(check.checked)?.[1] ?? Number.NaN)
  const name = check.command ?? 'the check of a schedule'
  return { ...run, checks: [{ name, tier: 0, iteration: 1, pass, exit: Number.isNaN(exit) ? undefined : exit }], reward: pass ? 1 : 0 }
}

function receiptHashes(path: string): ReadonlyMap<string, string> {
  const list = listReceipts({ path, limit: Number.MAX_SAFE_INTEGER })
  return new Map(list.ok ? list.receipts.map(({ id, receipt_hash }) => [id, receipt_hash]) : [])
}
