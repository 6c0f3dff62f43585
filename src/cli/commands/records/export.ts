/** Implements `export trajectories`: it writes runs of the journal as training data. */

import { appendFileSync, closeSync, fsyncSync, openSync, renameSync, rmSync } from 'node:fs'
import { resolve } from 'node:path'
import { errorCode, explainErrno } from '../../../config/text/read-toml-file.ts'
import { withMemory } from '../../../host/open/open-records.ts'
import {
  type DataPart,
  type ExportSummary,
  exportTrajectories,
  type LeftOut,
} from '../../../host/records/trajectories/export-trajectories.ts'
import { formatNames } from '../../../host/records/trajectories/formats.ts'
import { durationOf } from '../../../host/schedules/read-timing.ts'
import { loadSetup } from '../../../host/setup/setup.ts'
import { atEnd } from '../../../kit/errors.ts'
import { count } from '../../../kit/text.ts'
import { command, type Flags } from '../../args/command.ts'
import { commandError, usageError } from '../../exit.ts'

export const outputFlags = {
  format: { type: 'choice', values: formatNames, about: 'What the records are (default: seed); docs/trajectories.md describes each' },
  out: { type: 'text', about: 'The file to write, for you alone; an old one is replaced when all is written (default: stdout)' },
  json: { type: 'boolean', about: 'Print the summary, which goes to stderr, as JSON' },
} as const satisfies Flags

const flags = {
  run: { type: 'text', many: true, about: 'Only this run: an id, a unique prefix, or "last"; may be repeated' },
  since: { type: 'text', about: 'Only runs that began since then: 7d, 12h, 2026-05-01, 2026-05-01T09:00:00Z' },
  task: { type: 'text', many: true, about: 'Only runs of this task: its text, or its task_id; may be repeated' },
  split: { type: 'boolean', about: 'Write two files, FILE.train.jsonl and FILE.test.jsonl: a tenth of all tasks is for tests' },
  ...outputFlags,
} as const satisfies Flags

export const trajectories = command({
  flags,
  examples: [
    ['--out night.jsonl', 'every checked run, in the shape of the library'],
    ['--format trl-pref --split --out night', 'pairs of a success and a failure, as night.train.jsonl and night.test.jsonl'],
    ['--format atif --run last', 'the latest run, on stdout'],
  ],
  details: () => 'A reward comes only from checks that were executed. A run without one is written where the format needs no reward.',
  exits: [9],
  async run(context, { format = 'seed', run: runs, since, task: tasks, out, split = false, json = false }) {
    if (split && out === undefined) throw usageError('--split writes two files; say which with --out FILE')
    const query = { format, runs, tasks, since: since === undefined ? undefined : timeIn(since, Date.now()) }
    const { stdout, stderr } = context.process
    const setup = loadSetup(context)
    const files = out === undefined ? undefined : openFiles(resolve(context.cwd, out), split)
    using _end = atEnd(() => files?.discard())
    const summary = await withMemory(setup, (memory) =>
      exportTrajectories({ memory, setup }, query, (line, part) => {
        if (files) files.write(line, part)
        else stdout.write(`${line}\n`)
        return files !== undefined || !context.outputClosed()
      }),
    )
    files?.keep()
    stderr.write(json ? `${JSON.stringify(summary)}\n` : summaryText(summary))
  },
})

/** @throws CliExit for a time that cannot be read */
function timeIn(text: string, now: number): number {
  const ago = durationOf(text)
  const at = ago === undefined && /^\d{4}-\d\d-\d\d/.test(text) ? Date.parse(text) : now - (ago ?? Number.NaN)
  if (Number.isNaN(at)) throw usageError(`--since "${text}" is not a time; write 7d, 12h, 2026-05-01 or 2026-05-01T09:00:00Z`)
  return at
}

/** Opens the file, or one for each part; `keep` puts them in place of old ones, `discard` removes what was not kept. @throws CliExit */
export function openFiles(path: string, split: boolean) {
  const named = <T>(place: string, work: () => T): T => {
    try {
      return work()
    } catch (error) {
      throw commandError(`${place}: ${explainErrno(errorCode(error))}`)
    }
  }
  const parts: readonly DataPart[] = split ? ['train', 'test'] : ['train']
  const files = parts.map((part) => {
    const place = split ? `${path.replace(/\.jsonl$/, '')}.${part}.jsonl` : path
    const draft = `${place}.${crypto.randomUUID()}`
    return { part, place, draft, file: named(place, () => openSync(draft, 'ax', 0o600)) }
  })
  return {
    write(line: string, part: DataPart): void {
      for (const each of files) if (!split || each.part === part) named(each.place, () => appendFileSync(each.file, `${line}\n`))
    },
    keep(): void {
      for (const { file } of files) fsyncSync(file)
      for (const { draft, place } of files) named(place, () => renameSync(draft, place))
    },
    discard(): void {
      for (const { file, draft } of files) {
        closeSync(file)
        rmSync(draft, { force: true })
      }
    },
  }
}

const reasons: readonly (readonly [LeftOut, string])[] = [
  ['unchecked', 'without an executed check, so without a reward'],
  ['unfit', 'that did not end well, which a model should not imitate'],
  ['unpaired', 'of a task without a success, or without a failure, to pair it with'],
  ['running', 'without an end'],
]

function summaryText({ format, records, tasks, passed, failed, unchecked, redactions, left, altered }: ExportSummary): string {
  const runs = `${count(passed, 'run')} passed, ${failed} failed, ${unchecked} unchecked`
  const secrets = redactions === 0 ? '' : `; ${count(redactions, 'secret')} redacted`
  const words = reasons.flatMap(([reason, why]) => (left[reason] === 0 ? [] : [`${count(left[reason], 'run')} ${why}`]))
  const out = [...words, ...altered.map((each) => `${each}; see: braidclaw receipt verify --deep`)].map((each) => `left out: ${each}\n`)
  return `${count(records, 'record')} (${format}) of ${count(tasks, 'task')}: ${runs}${secrets}\n${out.join('')}`
}
