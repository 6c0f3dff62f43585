/** Implements `control status`: the budget, what needs a person, the queues and the agents; with --watch again at each event. */

import type { CliContext } from '../../../../channels/terminal/context.ts'
import type { Task, TaskQuery } from '../../../../control/contract/task-shapes.ts'
import { sleep } from '../../../../kit/abort.ts'
import type { Command, Flags } from '../../../args/command.ts'
import { CliExit, exitCodes } from '../../../exit.ts'
import { controlExits, controlFlags } from '../connect/control-flags.ts'
import { show, terminalWidth } from '../connect/screen.ts'
import { type Control, withControl } from '../connect/with-control.ts'
import { type FleetStatus, statusText } from '../text/status-text.ts'

const flags = {
  watch: { type: 'boolean', short: 'w', about: 'Again whenever something happened, until Ctrl-C' },
  ...controlFlags,
} as const satisfies Flags

export const status = {
  flags,
  examples: [
    ['', 'budget, what needs you and the command for it, queues, agents'],
    ['--watch', 'again whenever something happened'],
    ['--json', 'for scripts; one line each time with --watch'],
  ],
  exits: [...controlExits, 130],
  async run(context, given) {
    const { watch = false, json = false } = given
    await withControl(context, given, async (control, { url, signal }) => {
      await print(context, control, { url, json })
      if (!watch) return
      await again(control, signal, async () => {
        if (!json) context.process.stdout.write(`\n${new Date().toISOString()}\n`)
        await print(context, control, { url, json })
        return !context.outputClosed()
      })
      if (!context.outputClosed()) throw new CliExit(exitCodes.cancelled)
    })
  },
} as const satisfies Command<typeof flags>

type Place = { readonly url: string; readonly json: boolean }

async function print(context: CliContext, control: Control, { url, json }: Place): Promise<void> {
  const found = await readStatus(control, url)
  show(context, { json, value: found, text: statusText(found, Date.now(), terminalWidth()) })
}

const dayMs = 86_400_000

/** A task that ended badly needs a person for one day; after that it is history. */
async function readStatus(control: Control, url: string): Promise<FleetStatus> {
  const listed = async (query: Partial<TaskQuery>) => (await control.tasks.list({ limit: 50, ...query })).tasks
  const [budget, agents, { approvals }, blocked, dead, failed] = await Promise.all([
    control.budget.get(),
    control.fleet.list(),
    control.approvals.list({ state: 'pending', limit: 50 }),
    listed({ status: 'blocked' }),
    listed({ status: 'dead' }),
    listed({ status: 'failed' }),
  ])
  const waits = blocked.filter(({ blocked_reason: reason }) => reason !== 'dependency')
  const recent = [...dead, ...failed].filter(({ ended_at: ended }) => ended !== null && Date.now() - Date.parse(ended) < dayMs)
  return {
    url,
    budget,
    agents,
    approvals,
    stuck: [...waits, ...recent],
    queue: await queueOf(control, [...new Set(agents.map(({ role }) => role))]),
  }
}

/** A role without an agent has a queue too, when its tasks are among the latest. */
async function queueOf(control: Control, known: readonly string[]): Promise<FleetStatus['queue']> {
  const { tasks } = await control.tasks.list({ open: true, limit: 200 })
  const roles = [...new Set([...known, ...tasks.map((task: Task) => task.role)])]
  const counted = await Promise.all(roles.map(async (role) => [role, (await control.tasks.list({ role, limit: 1 })).counts] as const))
  return Object.fromEntries(counted)
}

/** At most once a second, and at least once a minute, because time passes without events too; until `act` says false. */
async function again(control: Control, signal: AbortSignal, act: () => Promise<boolean>): Promise<void> {
  const events = control.events.follow({}, signal)
  const waiting = { next: events.next() }
  while (!signal.aborted) {
    const happened = await Promise.race([waiting.next, sleep(60_000, signal)])
    await sleep(1_000, signal)
    if (signal.aborted || happened?.done || !(await act())) return
    if (happened) waiting.next = events.next()
  }
}
