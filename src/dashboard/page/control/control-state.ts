/** Keeps what every page of the control plane shows: what needs the person, the agents, the budget, and the time. */

import { computed, signal } from '@preact/signals'
import type { Approval, ControlEvent } from '../../../control/contract/activity-shapes.ts'
import type { Agent, Budget } from '../../../control/contract/fleet-shapes.ts'
import type { TaskPage } from '../../../control/contract/plane.ts'
import type { Task } from '../../../control/contract/task-shapes.ts'
import { ApiError, stream } from '../net/api.ts'
import { notice, textOf } from '../state.ts'
import { listenToPlane, plane, queryOf, resumed, root } from './net/plane-live.ts'

/** Sorted from the oldest: the approval that waits longest comes first. */
export const pending = signal<{ readonly approvals: readonly Approval[]; readonly more: boolean }>({ approvals: [], more: false })
/** The first tasks of those that only a person brings further, and how many there are of each status. */
export const stuck = signal<{ readonly doubtful: readonly Task[]; readonly dead: readonly Task[]; readonly unpaid: readonly Task[] }>({
  doubtful: [],
  dead: [],
  unpaid: [],
})
export const counts = signal<Readonly<Record<string, number>>>({})
export const agents = signal<readonly Agent[]>([])
export const budget = signal<Budget | undefined>(undefined)
/** Tells whether all of it was loaded once. */
export const isKnown = signal(false)
/** The present by the clock of the server, good to half a minute; that of the browser may be wrong. */
export const clock = signal(Date.now())
const ahead = signal(0)

/** A worker asks for work at least every 25 seconds; one that has not asked for this long is not running. */
const unseenMs = 120_000

export const roles = computed(() =>
  [...new Set([...agents.value.map(({ role }) => role), ...Object.keys(budget.value?.roles ?? {})])].sort(),
)

const most = { approvals: 50, stuck: 30 } as const

const loads = {
  approvals: async () => {
    const { approvals, next } = await plane<{ approvals: readonly Approval[]; next: string | null }>(
      'GET',
      `approvals${queryOf({ view: 'full', state: 'pending', limit: 200 })}`,
    )
    const oldest = approvals.toSorted((a, b) => a.created_at.localeCompare(b.created_at))
    pending.value = { approvals: oldest.slice(0, most.approvals), more: next !== null || oldest.length > most.approvals }
  },
  tasks: async () => {
    const of = (query: object) => plane<TaskPage>('GET', `tasks${queryOf({ view: 'full', brief: true, limit: most.stuck, ...query })}`)
    const [doubtful, dead, unpaid] = await Promise.all([
      of({ status: 'blocked', blocked_reason: 'in_doubt' }),
      of({ status: 'dead' }),
      of({ status: 'budget_blocked' }),
    ])
    stuck.value = {
      doubtful: doubtful.tasks.filter(({ blocked_reason }) => blocked_reason === 'in_doubt'),
      dead: dead.tasks,
      unpaid: unpaid.tasks,
    }
    counts.value = dead.counts
  },
  agents: async () => {
    const answer = await stream('GET', `${root}/agents`, {})
    clock.value = Date.parse(answer.headers.get('date') ?? '') || Date.now()
    ahead.value = clock.value - Date.now()
    agents.value = ((await answer.json()) as { readonly agents: readonly Agent[] }).agents
  },
  budget: async () => {
    budget.value = await plane<Budget>('GET', 'budget')
  },
} as const
type Part = keyof typeof loads

/** Returns the parts of the state that an event may have changed. */
function partsOf({ type }: ControlEvent): readonly Part[] {
  if (type === resumed.type) return ['approvals', 'tasks', 'agents', 'budget']
  const [entity = ''] = type.split('.')
  if (entity === 'approval') return ['approvals', 'tasks']
  if (entity === 'task' || entity === 'run' || entity === 'effect') return ['tasks', 'agents', 'budget']
  if (entity === 'agent' || entity === 'key') return ['agents']
  return entity === 'budget' ? ['budget', 'tasks'] : []
}

/** Loads all of it. When the server does not answer, the live connection says so, and this is called again. */
export async function refreshPlane(): Promise<void> {
  await Promise.all(Object.values(loads).map(quietly))
  isKnown.value = true
}

async function quietly(load: () => Promise<void>): Promise<void> {
  try {
    await load()
  } catch (error) {
    if (!(error instanceof ApiError && error.status === 0)) notice.value = { text: textOf(error), bad: true }
  }
}

/** How long a part rests between two loads, in ms: thousands of events a second must not become thousands of requests. */
const restMs: { readonly [part in Part]: number } = { approvals: 150, tasks: 1_000, agents: 1_000, budget: 2_000 }

/** Loads again what events change. @returns a function that ends it */
export function refreshing(): () => void {
  const due = new Map<Part, ReturnType<typeof setTimeout>>()
  const last = new Map<Part, number>()
  const soon = (part: Part) => {
    if (due.has(part)) return
    const wait = Math.max(60, (last.get(part) ?? 0) + restMs[part] - performance.now())
    const load = async () => {
      last.set(part, performance.now())
      due.delete(part)
      await quietly(loads[part])
    }
    due.set(part, setTimeout(load, wait))
  }
  const end = listenToPlane((event) => partsOf(event).forEach(soon))
  const unseen = new Set<string>()
  const endClock = ticking(() => {
    // When an agent becomes unseen it is asked about once, as not every sign of life is an event.
    const found = agents.value.filter(isUnseen).map(({ id }) => id)
    if (found.some((id) => !unseen.has(id))) soon('agents')
    unseen.clear()
    for (const id of found) unseen.add(id)
  })
  return () => {
    end()
    endClock()
    for (const late of due.values()) clearTimeout(late)
  }
}

function ticking(told: () => void): () => void {
  const timer = setInterval(() => {
    clock.value = Date.now() + ahead.value
    told()
  }, 30_000)
  return () => clearInterval(timer)
}

export function isUnseen({ last_seen_at, heartbeat_enabled, created_at }: Agent): boolean {
  return heartbeat_enabled && clock.value - Date.parse(last_seen_at ?? created_at) > unseenMs
}
