/** Implements `control events`, and prints the events of one task for `control task log`. */

import type { CliContext } from '../../../../channels/terminal/context.ts'
import type { ControlEvent } from '../../../../control/contract/activity-shapes.ts'
import type { Command, Flags, Given } from '../../../args/command.ts'
import { CliExit, exitCodes } from '../../../exit.ts'
import { controlExits, controlFlags, present } from '../connect/control-flags.ts'
import { proposeControlAgents, proposeControlRuns, proposeTasks } from '../connect/control-names.ts'
import { idOf } from '../connect/ids.ts'
import { terminalWidth } from '../connect/screen.ts'
import { type Control, withControl } from '../connect/with-control.ts'
import { eventLine } from '../text/run-text.ts'

const flags = {
  follow: { type: 'boolean', short: 'f', about: 'Go on printing what happens, until Ctrl-C; none is missed or printed twice' },
  after: { type: 'whole', max: Number.MAX_SAFE_INTEGER, about: 'Only events behind this id' },
  limit: { type: 'whole', short: 'n', min: 1, max: 200, default: 50, about: 'Without --after: how many of the latest' },
  type: { type: 'text', about: 'Only of this type, such as task.completed' },
  task: { type: 'text', about: 'Only of this task', complete: proposeTasks },
  run: { type: 'text', about: 'Only of this run', complete: proposeControlRuns },
  agent: { type: 'text', about: 'Only of this agent', complete: proposeControlAgents },
  ...controlFlags,
} as const satisfies Flags

export const events = {
  flags,
  examples: [
    ['', 'the latest 50, oldest first'],
    ['-f --type approval.requested', 'from now on, each question of an agent'],
    ['-f --after 1200 --json', 'for scripts: goes on behind the last id that they have seen'],
  ],
  exits: [...controlExits, 130],
  async run(context, given) {
    const { follow = false, after, limit, json = false } = given
    const asked = { query: queryOf(given), after, limit, follow, json }
    await withControl(context, given, (control, { signal }) => printEvents(context, control, { ...asked, signal }))
  },
} as const satisfies Command<typeof flags>

type Query = { readonly type?: string; readonly task_id?: string; readonly run_id?: string; readonly agent_id?: string }

function queryOf({ type, task, run, agent }: Given<typeof flags>): Query {
  return present({ type, task_id: task && idOf('task', task), run_id: run && idOf('run', run), agent_id: agent })
}

export type EventsAsked = {
  readonly query: Query
  /** Undefined: the latest `limit`. */
  readonly after: number | undefined
  readonly limit?: number
  readonly follow: boolean
  readonly json: boolean
  readonly signal: AbortSignal
}

/** With `follow` it ends at Ctrl-C, with 130; it ends quietly when nobody reads any more. */
export async function printEvents(context: CliContext, control: Control, asked: EventsAsked): Promise<void> {
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

/** Oldest first, page by page. */
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
