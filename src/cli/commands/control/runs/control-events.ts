/** Implements `control events`, for `control task log` too, and `control export`: everything that an operator may read, as JSON lines. */

import type { CliContext } from '../../../../channels/terminal/context.ts'
import type { ControlEvent } from '../../../../control/contract/activity-shapes.ts'
import type { Flags, Given } from '../../../args/command.ts'
import { CliExit, exitCodes } from '../../../exit.ts'
import { idOf } from '../connect/argument-values.ts'
import {
  controlCommand,
  controlFlags,
  present,
  proposeControlAgents,
  proposeControlRuns,
  proposeTasks,
  urlFlag,
} from '../connect/control-flags.ts'
import { terminalWidth } from '../connect/screen.ts'
import type { Control } from '../connect/with-control.ts'
import { eventLine } from '../text/control-text.ts'

const flags = {
  follow: { type: 'boolean', short: 'f', about: 'Continue to print events until Ctrl-C; none is missed or printed twice' },
  after: { type: 'whole', max: Number.MAX_SAFE_INTEGER, about: 'Only events after this id' },
  limit: { type: 'whole', short: 'n', min: 1, max: 200, default: 50, about: 'Without --after: how many of the latest' },
  type: { type: 'text', about: 'Only of this type, such as task.completed' },
  task: { type: 'text', about: 'Only of this task', complete: proposeTasks },
  run: { type: 'text', about: 'Only of this run', complete: proposeControlRuns },
  agent: { type: 'text', about: 'Only of this agent', complete: proposeControlAgents },
  ...controlFlags,
} as const satisfies Flags

export const events = controlCommand({
  flags,
  examples: [
    ['', 'the latest 50, oldest first'],
    ['-f --type approval.requested', 'from now on, each question of an agent'],
    ['-f --after 1200 --json', 'for scripts: continues after the last id that they have seen'],
  ],
  exits: [130],
  async run({ context, control, json, signal }, given) {
    const { follow = false, after, limit } = given
    await printEvents(context, control, { query: queryOf(given), after, limit, follow, json, signal })
  },
})

type Query = { readonly type?: string; readonly task_id?: string; readonly run_id?: string; readonly agent_id?: string }

function queryOf({ type, task, run, agent }: Given<typeof flags>): Query {
  return present({ type, task_id: task && idOf('task', task), run_id: run && idOf('run', run), agent_id: agent })
}

type EventsOptions = {
  readonly query: Query
  /** Undefined: the latest `limit`. */
  readonly after: number | undefined
  readonly limit?: number
  readonly follow: boolean
  readonly json: boolean
  readonly signal: AbortSignal
}

/** Prints events. With `follow` it ends at Ctrl-C, with 130; it ends without a message when its output is closed. */
export async function printEvents(context: CliContext, control: Control, asked: EventsOptions): Promise<void> {
  const { query, after, limit = 50, follow, json, signal } = asked
  const print = (event: ControlEvent) =>
    context.process.stdout.write(`${json ? JSON.stringify(event) : eventLine(event, terminalWidth())}\n`)
  let last = after ?? 0
  for await (const event of after === undefined ? latest(control, query, limit) : allAfter(control, query, after)) {
    print(event)
    last = event.id
    if (context.outputClosed()) return
  }
  if (!follow) return
  for await (const event of control.events.follow({ ...query, after: last }, signal)) {
    print(event)
    if (context.outputClosed()) return
  }
  throw new CliExit(exitCodes.cancelled)
}

async function* latest(control: Control, query: Query, limit: number): AsyncGenerator<ControlEvent> {
  const { events } = await control.events.list({ ...query, limit })
  yield* [...events].sort((a, b) => a.id - b.id)
}

/** Returns events page by page, the oldest first. */
export async function* allAfter(control: Control, query: Query, after: number): AsyncGenerator<ControlEvent> {
  for (let from = after; ; ) {
    const page = (await control.events.list({ ...query, after: from, limit: 200 })).events
    const events = [...page].sort((a, b) => a.id - b.id)
    yield* events
    const last = events.at(-1)
    if (last === undefined || events.length < 200) return
    from = last.id
  }
}

const kinds = ['budget', 'agents', 'schedules', 'tasks', 'runs', 'approvals', 'ledger', 'events'] as const

export const exportAll = controlCommand({
  flags: { only: { type: 'choice', values: kinds, many: true, about: 'Only this kind; may be repeated' }, ...urlFlag },
  examples: [
    ['> fleet.jsonl', 'one JSON object a line; "kind" says what it is'],
    ['--only tasks --only runs', 'only these'],
    ['| head -3', 'stops quietly'],
  ],
  details: () =>
    'Logs and artifacts of runs are not part of it, nor keys and tokens, which are not stored. A backup is "braidclaw control backup".',
  async run({ context, control }, given) {
    const chosen = given.only ?? kinds
    for (const kind of kinds) if (chosen.includes(kind)) await exportKind(context, sources(control)[kind])
  },
})

type RecordSource = AsyncIterable<object>

async function exportKind({ process: { stdout }, outputClosed }: CliContext, source: () => RecordSource): Promise<void> {
  if (outputClosed()) return
  for await (const each of source()) {
    stdout.write(`${JSON.stringify(each)}\n`)
    if (outputClosed()) return
  }
}

function sources(control: Control): { readonly [K in (typeof kinds)[number]]: () => RecordSource } {
  return {
    budget: () => once('budget', async () => [await control.budget.get()]),
    agents: () => once('agent', () => control.fleet.list()),
    schedules: () => once('schedule', () => control.schedules.list()),
    tasks: () => paged('task', async (after?: string) => named(await control.tasks.list({ limit: 200, after }), 'tasks')),
    runs: () => wholeRuns(control),
    approvals: () => paged('approval', async (after?: string) => named(await control.approvals.list({ limit: 200, after }), 'approvals')),
    ledger: () =>
      paged('ledger', async (after?: number) => named(await control.budget.ledger({ after: after ?? 0, limit: 200 }), 'entries')),
    events: async function* () {
      for await (const event of allAfter(control, {}, 0)) yield { kind: 'event', ...event }
    },
  }
}

/** Reads each run that has a manifest alone, because a list of runs has no manifests. */
async function* wholeRuns(control: Control): RecordSource {
  for (let after: string | undefined; ; ) {
    const { runs, next } = await control.runs.list({ limit: 200, after })
    for (const run of runs) yield { kind: 'run', ...(run.has_manifest ? await control.runs.get(run.run_id) : { ...run, manifest: null }) }
    if (next === null) return
    after = next
  }
}

async function* once(kind: string, read: () => Promise<readonly object[]>): RecordSource {
  for (const each of await read()) yield { kind, ...each }
}

type RecordPage<After> = { readonly items: readonly object[]; readonly next: After | null }

async function* paged<After>(kind: string, read: (after?: After) => Promise<RecordPage<After>>): RecordSource {
  for (let after: After | undefined; ; ) {
    const { items, next } = await read(after)
    for (const each of items) yield { kind, ...each }
    if (next === null) return
    after = next
  }
}

function named<Key extends string, After>(
  page: { readonly [K in Key]: readonly object[] } & { readonly next: After | null },
  key: Key,
): RecordPage<After> {
  return { items: page[key], next: page.next }
}
