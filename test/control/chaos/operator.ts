/** The operator of the chaos runs: creates the tasks, answers questions, settles effects in doubt, raises the budget, follows the events. */

import { dice } from '../../support/dice.ts'
import { operatorToken } from '../support/control-server.ts'
import { type Answered, type Asking, askOf, untilAnswered } from './asking.ts'
import { only, openWorld, readWorld, type World } from './world.ts'

export type OperatorOptions = {
  readonly urls: readonly string[]
  readonly folder: string
  readonly seed: number
  /** The first so many tasks are for real workers. */
  readonly realTasks: number
  /** How long a stopped worker may still act on what it began. */
  readonly longestStopMs: number
}

export type Operator = {
  setUp(agents: readonly { readonly id: string; readonly role: string }[]): Promise<ReadonlyMap<string, string>>
  /** Creates the tasks with these numbers, `end` excluded. */
  createTasks(from: number, end: number): Promise<void>
  /** One look at everything that waits for an operator. @returns how many tasks have ended */
  lookAfter(): Promise<number>
  follow(signal: AbortSignal): Promise<void>
  /** Until the follower has all that happened, for 30 s at most. */
  untilFollowed(): Promise<void>
}

export function createOperator({ urls, folder, seed, longestStopMs, realTasks }: OperatorOptions): Operator {
  const roll = dice(seed)
  const world = openWorld(folder, 'operator')
  const followed = { last: 0 }
  const ids: string[] = []
  const any = askOf(urls, roll)
  const surely: Asking = (token, path, request) => untilAnswered(() => any(token, path, request))
  const ask = (path: string, request?: Parameters<Asking>[2]) => surely(operatorToken, path, request)

  async function setUp(agents: readonly { readonly id: string; readonly role: string }[]): Promise<ReadonlyMap<string, string>> {
    await ask('budget', { method: 'PUT', body: { daily_tokens: 500 } })
    const keys = new Map<string, string>()
    for (const agent of agents) {
      await ask('agents', { body: agent })
      keys.set(agent.id, (await ask(`agents/${agent.id}/keys`, { body: {} })).body.key)
    }
    return keys
  }

  /** Each with a key, and each twice as soon as there was no answer to the first. */
  async function createTasks(from: number, end: number): Promise<void> {
    const create = async (at: number) => {
      const needs = at % 10 === 9 && ids.length > 0 ? [ids[roll(ids.length)]] : []
      const kind =
        at < realTasks ? { role: 'real', context: { isLong: at % 3 === 0 } } : { role: 'chaos', context: { asks: at % 12 === 5 } }
      const body = { title: `task ${at}`, max_attempts: 100, depends_on: needs, ...kind }
      const headers = { 'idempotency-key': `create-${at}` }
      const first = await ask('tasks', { body, headers })
      const second = at % 7 === 0 ? await ask('tasks', { body, headers }) : first
      if (first.status !== 201 || JSON.stringify(first.body) !== JSON.stringify(second.body))
        world.happen({
          kind: 'wrong',
          what: `creation ${at}: ${first.status} ${JSON.stringify(first.body)}, then ${JSON.stringify(second.body)}`,
        })
      ids.push(first.body?.task_id)
    }
    for (let at = from; at < end; at += 8) await Promise.all(Array.from({ length: Math.min(8, end - at) }, (_, more) => create(at + more)))
  }

  async function lookAfter(): Promise<number> {
    const { status, body } = await ask('tasks?view=full&status=blocked&limit=200')
    if (status !== 200) throw new Error(`the list of blocked tasks was answered with ${status} ${JSON.stringify(body)}`)
    await Promise.all([settleDoubts(body.tasks), answerQuestions(), raiseBudget(), hurry()])
    const { completed = 0, failed = 0, dead = 0, cancelled = 0 } = body.counts as Record<string, number>
    return completed + failed + dead + cancelled
  }

  async function settleDoubts(blocked: readonly { readonly task_id: string; readonly blocked_reason: string }[]): Promise<void> {
    const inDoubt = blocked.filter((task) => task.blocked_reason === 'in_doubt')
    const happened = inDoubt.length === 0 ? new Set<string>() : effectsThatHappened(folder)
    for (const { task_id } of inDoubt) await settleDoubt(ask, { task: task_id, happened, world, longestStopMs })
  }

  /** Always too little for long, and enough for all that wait: otherwise most of them are claimed only to wait again. */
  async function raiseBudget(): Promise<void> {
    const { blocked_tasks, remaining, daily_tokens } = (await ask('budget')).body
    if (blocked_tasks === 0 && remaining >= 100) return
    world.happen({ kind: 'count', what: 'budget raised' })
    await ask('budget', { method: 'PUT', body: { daily_tokens: daily_tokens + 1_000 + 40 * blocked_tasks } })
  }

  /** Tasks that failed often would wait for minutes. */
  async function hurry(): Promise<void> {
    const { body } = await ask('tasks?view=full&status=pending&limit=200')
    const late = (body?.tasks ?? []).filter((task: { available_at: string }) => Date.parse(task.available_at) > Date.now() + 5_000)
    for (const { task_id } of late) await ask(`tasks/${task_id}/retry`, { body: {} })
  }

  /** Each is decided, and then decided otherwise, which must be refused. */
  async function answerQuestions(): Promise<void> {
    const { body } = await ask('approvals?state=pending')
    for (const { approval_id } of body?.approvals ?? []) {
      await ask(`approvals/${approval_id}/decision`, { body: { decision: 'approve', note: 'chaos' } })
      const second = await ask(`approvals/${approval_id}/decision`, { body: { decision: 'reject', note: 'again' } })
      if (second.status !== 409) world.happen({ kind: 'wrong', what: `a second decision of ${approval_id} got ${second.status}` })
    }
  }

  async function follow(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await followOnce(urls[roll(urls.length)] ?? '', { state: followed, signal, world }).catch(() => undefined)
      if (!signal.aborted) await Bun.sleep(50)
    }
  }

  async function untilFollowed(): Promise<void> {
    const { body } = await ask('activity?limit=1')
    for (const end = performance.now() + 30_000; performance.now() < end && followed.last < body.events[0].id; await Bun.sleep(20));
  }

  return { setUp, createTasks, lookAfter, follow, untilFollowed }
}

function effectsThatHappened(folder: string): ReadonlySet<string> {
  return new Set(only(readWorld(folder, 'worker'), 'effect').map(({ task, key }) => `${task} ${key}`))
}

type Doubt = { readonly task: string; readonly happened: ReadonlySet<string>; readonly world: World; readonly longestStopMs: number }

/** Looks outside whether it happened, as a person would. */
async function settleDoubt(ask: (path: string, request?: Parameters<Asking>[2]) => Promise<Answered>, doubt: Doubt): Promise<void> {
  const { body } = await ask(`tasks/${doubt.task}/effects`)
  for (const effect of body?.effects ?? []) {
    if (effect.state !== 'in_doubt' || Date.parse(effect.begun_at) > Date.now() - doubt.longestStopMs) continue
    const outcome = doubt.happened.has(`${doubt.task} ${effect.key}`) ? 'done' : 'redo'
    await ask(`tasks/${doubt.task}/resolve`, { body: { key: effect.key, outcome } })
    doubt.world.happen({ kind: 'count', what: 'effect in doubt resolved' })
  }
}

type Following = { readonly state: { last: number }; readonly signal: AbortSignal; readonly world: World }

async function followOnce(url: string, { state, signal, world }: Following): Promise<void> {
  const response = await fetch(`${url}/api/controlplane/events`, {
    headers: { authorization: `Bearer ${operatorToken}`, 'last-event-id': String(state.last) },
    signal,
  })
  if (!response.body || response.status !== 200) throw new Error(`events: ${response.status}`)
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of response.body) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) {
      const id = /^id: ?(\d+)/.exec(line)?.[1]
      if (id === undefined) continue
      if (Number(id) <= state.last) world.happen({ kind: 'wrong', what: `event ${id} came after ${state.last}` })
      state.last = Number(id)
      world.happen({ kind: 'event', id: state.last })
    }
  }
}
