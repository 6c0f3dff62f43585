/** Implements `control export`: everything that an operator may read, as JSON lines. */

import type { CliContext } from '../../../../channels/terminal/context.ts'
import type { Command, Flags } from '../../../args/command.ts'
import { controlExits, urlFlag } from '../connect/control-flags.ts'
import { type Control, withControl } from '../connect/with-control.ts'
import { allAfter } from './print-events.ts'

const kinds = ['budget', 'agents', 'schedules', 'tasks', 'runs', 'approvals', 'ledger', 'events'] as const

const flags = {
  only: { type: 'choice', values: kinds, many: true, about: 'Only this kind; may be repeated' },
  ...urlFlag,
} as const satisfies Flags

export const exportAll = {
  flags,
  examples: [
    ['> fleet.jsonl', 'one JSON object a line; "kind" says what it is'],
    ['--only tasks --only runs', 'only these'],
    ['| head -3', 'stops quietly'],
  ],
  details: () =>
    'Logs and artifacts of runs are not part of it, nor keys and tokens, which are not stored. A backup is "braidclaw control backup".',
  exits: controlExits,
  async run(context, given) {
    const wanted = given.only ?? kinds
    await withControl(context, given, async (control) => {
      for (const kind of kinds) if (wanted.includes(kind)) await exportKind(context, sources(control)[kind])
    })
  },
} as const satisfies Command<typeof flags>

type Source = AsyncIterable<object>

async function exportKind({ process: { stdout }, outputClosed }: CliContext, source: () => Source): Promise<void> {
  if (outputClosed()) return
  for await (const each of source()) {
    stdout.write(`${JSON.stringify(each)}\n`)
    if (outputClosed()) return
  }
}

function sources(control: Control): { readonly [K in (typeof kinds)[number]]: () => Source } {
  return {
    budget: () => once('budget', async () => [await control.budget.get()]),
    agents: () => once('agent', () => control.fleet.list()),
    schedules: () => once('schedule', () => control.schedules.list()),
    tasks: () => paged('task', async (after) => named(await control.tasks.list({ limit: 200, ...after }), 'tasks')),
    runs: () => wholeRuns(control),
    approvals: () => paged('approval', async (after) => named(await control.approvals.list({ limit: 200, ...after }), 'approvals')),
    ledger: async function* () {
      for await (const entry of wholeLedger(control)) yield { kind: 'ledger', ...entry }
    },
    events: async function* () {
      for await (const event of allAfter(control, {}, 0)) yield { kind: 'event', ...event }
    },
  }
}

/** A list of runs is without their manifests. */
async function* wholeRuns(control: Control): Source {
  for (let after: { readonly after?: string } = {}; ; ) {
    const { runs, next } = await control.runs.list({ limit: 200, ...after })
    for (const run of runs) yield { kind: 'run', ...(run.has_manifest ? await control.runs.get(run.run_id) : { ...run, manifest: null }) }
    if (next === null) return
    after = { after: next }
  }
}

/** Oldest first: each entry is one sum of tokens that was counted. */
async function* wholeLedger(control: Control): Source {
  for (let after = 0; ; ) {
    const { entries, next } = await control.budget.ledger({ after, limit: 200 })
    yield* entries
    if (next === null) return
    after = next
  }
}

async function* once(kind: string, read: () => Promise<readonly object[]>): Source {
  for (const each of await read()) yield { kind, ...each }
}

type Page = { readonly items: readonly object[]; readonly next: string | null }

async function* paged(kind: string, read: (after: { readonly after?: string }) => Promise<Page>): Source {
  let after: { readonly after?: string } = {}
  for (;;) {
    const { items, next } = await read(after)
    for (const each of items) yield { kind, ...each }
    if (next === null) return
    after = { after: next }
  }
}

function named<Key extends string>(page: { readonly [K in Key]: readonly object[] } & { readonly next: string | null }, key: Key): Page {
  return { items: page[key], next: page.next }
}
