/** Reports on a wiggum run from its journal and its record: for a person as Markdown or HTML, for machines as JSON. */

import { escapeHidden } from '../../../kit/escape.ts'
import { cut } from '../../../kit/text.ts'
import { attempts } from '../../../memory/journal/attempts.ts'
import type { Memory } from '../../../memory/memory.ts'
import type { Proposal, Usage, Wiggum } from '../../../runtime/event.ts'
import { consequenceIn, externalOf } from '../../../runtime/replay/external-entry.ts'
import { addUsage } from '../../../runtime/usage.ts'
import type { ChangeStore } from '../../../workspace/changes/store.ts'
import type { Setup } from '../../api.ts'
import { FailureError } from '../../failure.ts'
import { resolveRun } from '../../records/records-base.ts'
import { listRecords } from './run-copy.ts'

type CheckLine = { readonly name: string; readonly pass: boolean; readonly exit?: number; readonly ms?: number; readonly evidence: string }
type Iteration = { count: number; changes: string[]; refused: string[]; checks: CheckLine[]; usage?: Usage }

type Reporting = { readonly setup: Setup; readonly memory: Memory; readonly store: Pick<ChangeStore, 'show'>; readonly ref: string }

export type WiggumReport = ReturnType<typeof reportOf>

/**
 * Times are in milliseconds since 1970; `receipts` are the ids of the receipts of all calls, `testsChanged` tests of the beginning that the result
 * changes. @param ref a run id, a unique prefix of it, or `last`, the latest wiggum run @throws FailureError `error` when there is no such run, or it was structured
 */
export function reportOf({ setup, memory, store, ref }: Reporting) {
  const records = listRecords(setup)
  // The very last run is that of a check.
  const latest = ref === 'last' ? records.flatMap(({ runs }) => runs.at(-1) ?? [])[0] : undefined
  const { runId, conversationId, code, message, ended } = resolveRun(memory, latest ?? ref)
  const record = records.find(({ runs }) => runs.includes(runId))
  const runs = record?.runs ?? [runId]
  const { begun, iterations } = readRuns(memory, runs)
  if (begun === undefined) throw new FailureError('error', `the run ${runId} is not a wiggum run; see: braidclaw run show ${runId}`)
  const set = store.show(`wiggum-${runs.at(-1)}`)
  const paths = set?.changes.map(({ path }) => path) ?? []
  const open = {
    code: code ?? 'unfinished',
    message: message ?? '',
    notes: [`to go on: braidclaw agent --wiggum --resume ${conversationId}`],
  }
  return {
    ...{
      runs,
      conversation: conversationId,
      task: begun.prompt,
      workspace: record?.workspace,
      started: begun.at,
      ended: record?.ended?.at ?? ended,
    },
    maxIterations: record?.maxIterations ?? begun.wiggum.maxIterations,
    checks: begun.wiggum.checks.map((check) => ({
      ...check,
      files: Object.keys(record?.checks.find(({ spec }) => spec.name === check.name)?.frozen.files ?? {}),
    })),
    ...{ iterations, usage: iterations.map(({ usage }) => usage).reduce((sum, each) => (each ? addUsage(sum, each) : sum), undefined) },
    receipts: runs.flatMap((run) => [...attempts(memory.store, run)].flatMap(({ receiptId }) => receiptId ?? [])),
    ending: record?.ended ?? open,
    testsChanged: paths.filter((path) => record?.tests.includes(path)),
    ...(set && { result: { name: `${set.about.run}/${set.about.call}`, state: set.state, summary: set.review?.summary ?? '', paths } }),
  }
}

/** An iteration that was interrupted has parts in two runs. */
function readRuns({ journal }: Memory, runs: readonly string[]) {
  const iterations: Iteration[] = []
  const calls = new Map<string, Proposal>()
  let begun: { readonly prompt: string; readonly at: number; readonly wiggum: Wiggum } | undefined
  let now: Iteration = { count: 0, changes: [], refused: [], checks: [] }
  const enter = (count: number) => {
    if (count === now.count) return
    now = { count, changes: [], refused: [], checks: [] }
    iterations.push(now)
  }
  for (const entry of runs.flatMap((run) => journal.events(run))) {
    const event = externalOf(entry) ?? consequenceIn(entry)
    if (event?.type === 'run.start' && event.wiggum) begun ??= { ...event, wiggum: event.wiggum }
    if (event?.type === 'run.start') enter(event.continues?.wiggum?.iteration ?? 1)
    if (event?.type === 'retry') enter(now.count + 1)
    if (event?.type === 'model.done') {
      for (const each of event.proposals) calls.set(each.call.id, each)
      now.usage = addUsage(now.usage, event.usage)
    }
    if (event?.type === 'apply') now.changes.push(event.review.summary)
    if (event?.type === 'deny' || event?.type === 'drop')
      now.refused.push(`${calls.get(event.id)?.judgement.summary ?? event.id}: ${event.reason}`)
    const written = event?.type === 'tool.done' && event.outcome.status === 'allowed' ? calls.get(event.id) : undefined
    if (written && written.call.name !== 'shell' && written.judgement.writes.length > 0) now.changes.push(written.judgement.summary)
    if (event?.type !== 'check.done') continue
    const { pass, exit, ms, evidence } = event
    now.checks.push({ name: begun?.wiggum.checks[now.checks.length]?.name ?? 'check', pass, exit, ms, evidence })
  }
  return { begun, iterations }
}

const when = (at: number) => `${new Date(at).toISOString().slice(0, 19).replace('T', ' ')} UTC`
const plain = (text: string) =>
  escapeHidden(text)
    .replaceAll('\n', ' ')
    .replace(/[\\`*_<[\]]/g, '\\$&')
const list = (lines: readonly string[]) => lines.map((line) => `- ${plain(line)}`).join('\n')
const code = (text: string) => `~~~~\n${escapeHidden(text).replaceAll('~~~~', '~ ~ ~ ~')}\n~~~~`

function used(usage: Usage | undefined): string {
  if (usage === undefined) return 'nothing'
  const { inputTokens, outputTokens, costMicros } = usage
  return `${inputTokens + outputTokens} tokens${costMicros === undefined ? '' : `, $${(costMicros / 1_000_000).toFixed(4)}`}`
}

/** Returns the report as Markdown. */
export function markdownOf(report: WiggumReport): string {
  const { runs, task, checks, iterations, usage, ending, result, receipts, testsChanged, ended } = report
  const tests = testsChanged.length === 0 ? [] : [`tests of the beginning that the result changes: ${testsChanged.join(', ')}`]
  const facts = [
    `folder: ${report.workspace ?? 'unknown'}`,
    `began: ${when(report.started)}${ended ? `, ended: ${when(ended)}` : ''}`,
    `iterations: ${iterations.at(-1)?.count ?? 0} of at most ${report.maxIterations}`,
    `used: ${used(usage)}`,
    `receipts: ${receipts.length}${runs.length > 1 ? `; it went on ${runs.length - 1} times: ${runs.join(', ')}` : ''}`,
  ]
  const frozen = checks.map(
    ({ name, tier, digest, files }) =>
      `${name} (tier ${tier}, ${digest.slice(0, 12)}${files.length > 0 ? `; uses ${files.join(', ')}` : ''})`,
  )
  const parts = [
    `# ${plain(`Wiggum run ${runs[0]}`)}`,
    plain(`It ended ${ending.code === 'answered' ? 'with success: all checks passed' : `with ${ending.code}: ${ending.message}`}.`),
    list([...ending.notes, ...tests]),
    ...['## Task', code(task), list(facts), '## Frozen checks', list(frozen)],
    ...iterations.flatMap(iterationParts),
    '## Result',
    ...(result
      ? [plain(`${result.name} is ${result.state}: ${result.summary}`), list(result.paths.slice(0, 100))]
      : ['No change set is kept.']),
  ]
  return `${parts.filter((part) => part !== '').join('\n\n')}\n`
}

function iterationParts({ count, changes, refused, checks, usage }: Iteration): readonly string[] {
  const shown = checks.map(
    ({ name, pass, exit, ms }) =>
      `${pass ? 'passed' : 'failed'}: ${name}${exit === undefined ? '' : `, exit ${exit}`}${ms === undefined ? '' : `, ${ms} ms`}`,
  )
  const lines = [
    ...changes.map((each) => `changed: ${each}`),
    ...refused.map((each) => `refused: ${cut(each, 400)}`),
    ...shown,
    `used: ${used(usage)}`,
  ]
  const failure = checks.findLast(({ pass }) => !pass)
  return [`## Iteration ${count}`, list(lines), ...(failure ? [code(cut(failure.evidence, 3_000))] : [])]
}

/** Returns the report as a page that loads nothing and runs nothing. */
export function htmlOf(report: WiggumReport): string {
  const head = `<!doctype html><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">`
  const style = 'body{font:16px/1.5 system-ui;max-width:50rem;margin:2rem auto}pre{overflow:auto;background:#8881;padding:.5rem}'
  return `${head}<title>Wiggum run</title><style>${style}</style>\n${Bun.markdown.html(markdownOf(report))}`
}
