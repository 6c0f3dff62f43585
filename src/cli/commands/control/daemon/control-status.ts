/** Implements `control status`: the budget, what needs a person, the queues and the agents; with --watch again at each event. */

import type { Approval } from '../../../../control/contract/activity-shapes.ts'
import type { Agent, Budget } from '../../../../control/contract/fleet-shapes.ts'
import type { Task, TaskQuery } from '../../../../control/contract/task-shapes.ts'
import { sleep } from '../../../../kit/abort.ts'
import { count, grouped } from '../../../../kit/text.ts'
import { CliExit, exitCodes } from '../../../exit.ts'
import { printOne } from '../../../print-list.ts'
import { controlCommand, controlFlags } from '../connect/control-flags.ts'
import { terminalWidth } from '../connect/screen.ts'
import type { Control } from '../connect/with-control.ts'
import { agentLines, budgetSentence, newDay, waitingTasks } from '../text/control-text.ts'
import { shortened, table } from '../text/table.ts'

export const status = controlCommand({
  flags: { watch: { type: 'boolean', short: 'w', about: 'Again whenever something happened, until Ctrl-C' }, ...controlFlags },
  examples: [
    ['', 'budget, what needs you and the command for it, queues, agents'],
    ['--watch', 'again whenever something happened'],
    ['--json', 'for scripts; one line each time with --watch'],
  ],
  exits: [130],
  async run({ context, control, json, url, signal }, { watch = false }) {
    const print = async () => {
      const found = await readStatus(control, url)
      printOne(context, { json, value: found, text: statusText(found, Date.now(), terminalWidth()) })
    }
    await print()
    if (!watch) return
    await repeatAtEvents(control, signal, async () => {
      if (!json) context.process.stdout.write(`\n${new Date().toISOString()}\n`)
      await print()
      return !context.outputClosed()
    })
    if (!context.outputClosed()) throw new CliExit(exitCodes.cancelled)
  },
})

const dayMs = 86_400_000

/** Reads the status. A task that failed needs a person for one day only. */
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

/** Counts the queue of each role, also of a role without an agent whose tasks are among the latest. */
async function queueOf(control: Control, known: readonly string[]): Promise<FleetStatus['queue']> {
  const { tasks } = await control.tasks.list({ open: true, limit: 200 })
  const roles = [...new Set([...known, ...tasks.map((task: Task) => task.role)])]
  const counted = await Promise.all(roles.map(async (role) => [role, (await control.tasks.list({ role, limit: 1 })).counts] as const))
  return Object.fromEntries(counted)
}

/** Repeats at each event, at most once a second, and at least once a minute, because ages change without events too; ends when `act` returns false. */
async function repeatAtEvents(control: Control, signal: AbortSignal, act: () => Promise<boolean>): Promise<void> {
  const events = control.events.follow({}, signal)
  const waiting = { next: events.next() }
  while (!signal.aborted) {
    const happened = await Promise.race([waiting.next, sleep(60_000, signal)])
    await sleep(1_000, signal)
    if (signal.aborted || happened?.done || !(await act())) return
    if (happened) waiting.next = events.next()
  }
}

export type FleetStatus = {
  readonly url: string
  readonly budget: Budget
  readonly agents: readonly Agent[]
  readonly approvals: readonly Approval[]
  /** Lists tasks in blocked(in_doubt), blocked(operator), dead or failed that need a person. */
  readonly stuck: readonly Task[]
  /** The number of tasks of each role by status. */
  readonly queue: { readonly [role: string]: { readonly [status: string]: number } }
}

/** Limits the lines of each part; the rest is counted. */
const most = 10

export function statusText(status: FleetStatus, now: number, width?: number): string {
  const needs = needed(status, now)
  const parts = [
    head(status, now, width),
    [
      '',
      ...(needs.length === 0
        ? ['nothing needs you']
        : ['needs you', ...table(limited(needs), { width: width && width - 2, most: 48, drop: [1] }).map((line) => `  ${line}`)]),
    ],
    Object.keys(status.queue).length === 0
      ? []
      : ['', ...table(queueRows(status.queue), { heads: queueHeads, right: [1, 2, 3, 4, 5, 6], keep: [], drop: [5, 6, 2], width })],
    status.agents.length === 0
      ? ['', 'no agents yet: braidclaw control agent add NAME --role ROLE']
      : ['', ...agentLines(status.agents, now, width)],
  ]
  return parts
    .flat()
    .map((line) => `${line}\n`)
    .join('')
}

/** Leaves out the address on a narrow terminal, so that each part is one line. */
function head({ url, agents, budget }: FleetStatus, now: number, width?: number): string[] {
  const [about, spent, day] = [fleet(agents), budgetSentence(budget), newDay(budget, now)]
  if (width !== undefined && width < 60) return [about, spent, day].map((line) => shortened(line, width))
  return [`control plane  ${url}: ${about}`, `budget         ${spent}`, `               ${day}`]
}

/** Lists what needs a person, each with the command for it. */
function needed({ approvals, stuck, budget, agents, queue }: FleetStatus, now: number): string[][] {
  return [
    ...approvals.map(({ approval_id: id, agent_id: agent, operation }) => [id, `control approve ${id}`, `${agent} asks: ${operation}`]),
    ...stuck.map((task) => [task.task_id, remedy(task), `${reasonOf(task)}: ${task.title}`]),
    ...(budget.blocked_tasks > 0 ? [['budget', 'control budget set', waitingTasks(budget)]] : []),
    ...Object.entries(queue).flatMap(([role, { pending = 0 }]) => (pending > 0 ? unattended(role, { agents, budget, pending, now }) : [])),
  ]
}

/** A worker asks at least every 25 s. */
const unseenMs = 120_000

/** Lists a role whose tasks no worker will claim: the budget of the day is used up, or no worker asked for tasks lately. */
function unattended(
  role: string,
  { agents, budget, pending, now }: Pick<FleetStatus, 'agents' | 'budget'> & { readonly pending: number; readonly now: number },
): string[][] {
  const waits = `${count(pending, 'task')} ${pending === 1 ? 'waits' : 'wait'}`
  if (isSpent(budget.remaining)) return [[role, 'control budget set --daily …', `${waits}: the budget of all is used up`]]
  if (isSpent(budget.roles[role]?.remaining)) return [[role, `control budget set --role ${role}=…`, `${waits}: its budget is used up`]]
  const ofRole = agents.filter((agent) => agent.role === role)
  const isSeen = ({ last_seen_at: seen, running }: Agent) => running.length > 0 || (seen !== null && now - Date.parse(seen) < unseenMs)
  if (ofRole.some((agent) => agent.paused || isSeen(agent))) return []
  const [first] = ofRole
  return first === undefined
    ? [[role, 'control agent add', `${waits} for a role without an agent`]]
    : [[role, `control worker --agent ${first.id}${first.id === role ? '' : ` -r ${role}`}`, `${waits}: no worker was seen lately`]]
}

function isSpent(remaining: number | null | undefined): boolean {
  return typeof remaining === 'number' && remaining <= 0
}

function remedy({ task_id: id, blocked_reason: reason }: Task): string {
  if (reason === 'in_doubt') return `control task resolve ${id}`
  return reason === 'operator' ? `control task edit ${id} --release` : `control task retry ${id}`
}

function reasonOf({ status, blocked_reason: reason, attempt }: Task): string {
  if (reason === 'in_doubt') return 'an effect is in doubt'
  if (reason === 'operator') return 'blocked by an operator'
  return `${status} after ${count(attempt, 'attempt')}`
}

const queueHeads = ['role', 'pending', 'running', 'waiting', 'blocked', 'done', 'failed']

function queueRows(queue: FleetStatus['queue']): string[][] {
  return Object.entries(queue).map(([role, found]) => {
    const sum = (...statuses: readonly string[]) => grouped(statuses.reduce((total, status) => total + (found[status] ?? 0), 0))
    return [
      role,
      sum('pending'),
      sum('running'),
      sum('awaiting_approval', 'budget_blocked'),
      sum('blocked'),
      sum('completed'),
      sum('failed', 'dead', 'cancelled'),
    ]
  })
}

function fleet(agents: readonly Agent[]): string {
  const working = agents.filter(({ running }) => running.length > 0).length
  const paused = agents.filter((agent) => agent.paused).length
  return `${count(agents.length, 'agent')}, ${working} working${paused > 0 ? `, ${paused} paused` : ''}`
}

function limited(rows: readonly string[][]): string[][] {
  return rows.length <= most ? [...rows] : [...rows.slice(0, most - 1), ['…', '', `and ${rows.length - most + 1} more`]]
}
