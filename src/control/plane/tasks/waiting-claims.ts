/** Lets claims wait for a task: a new task costs as many tries as workers can get one, not as many as wait. */

import type { Caller } from '../../contract/caller.ts'
import { PlaneRefusal } from '../../contract/plane-refusal.ts'
import type { Command } from '../../contract/store-port.ts'
import type { Claim } from '../../contract/task-shapes.ts'
import { amount, int, type PlaneContext, text } from '../command.ts'
import { besideClaims, type Claiming, type ClaimOutcome, claimTask, releaseLease, sweep } from './claim-task.ts'
import { readyTopic } from './task-change.ts'

type WaitingClaims = {
  /** Resolves with undefined after `wait_ms`, when the agent is woken, and for a caller that has gone. */
  claim(claiming: Claiming): Promise<Claim | undefined>
}

/** Announcements may be lost, and tasks of other daemons may be unlocked without one. */
const lookAgainMs = 1_000
/** How often an attempt is made anew because something was announced meanwhile; after that the next look finds it. */
const mostAttempts = 3

export function createWaitingClaims(context: PlaneContext): WaitingClaims {
  const { store } = context
  const roles = new Map<string, Role>()
  let isPlanned = false

  const attempt = (claiming: Claiming) => store.write(() => claimTask(context, claiming), besideClaims())
  const serveAll = () => {
    for (const { queue } of roles.values()) void queue.serve()
  }

  function openRole(name: string): Role {
    const queue = createRoleQueue({ role: name, attempt, look: () => store.read(() => readReady(name)), log: context.options.log })
    const role = { queue, close: store.listen(readyTopic(name), () => void queue.serve()), claims: 0 }
    roles.set(name, role)
    return role
  }

  /** The last claim removes its role: anybody may name any, and each would stay in memory. */
  async function inRole<T>(name: string, work: (queue: RoleQueue) => Promise<T>): Promise<T> {
    const role = roles.get(name) ?? openRole(name)
    role.claims += 1
    try {
      return await work(role.queue)
    } finally {
      role.claims -= 1
      if (role.claims === 0) {
        role.close()
        roles.delete(name)
      }
    }
  }

  async function checkWakes(): Promise<void> {
    const wakes = await store.read(wakesOf)
    for (const { queue } of roles.values()) queue.sendBack(wakes)
    serveAll()
  }

  /** Runs only while somebody waits. */
  function lookAgain(ms: number): void {
    if (isPlanned) return
    isPlanned = true
    setTimeout(() => void look(), Math.min(lookAgainMs, Math.max(10, ms)))
  }

  async function look(): Promise<void> {
    isPlanned = false
    if (![...roles.values()].some(({ queue }) => queue.size() > 0)) return
    const swept = await store.write(() => sweep(context)).catch(() => undefined)
    serveAll()
    lookAgain(swept?.nextAt ? swept.nextAt - context.now() : lookAgainMs)
  }

  async function claimNow(claiming: Claiming): Promise<Claim | undefined> {
    const outcome = await attempt(claiming)
    return 'claim' in outcome ? await deliver(context, outcome.claim, claiming) : undefined
  }

  async function claimIn(queue: RoleQueue, claiming: Claiming): Promise<Claim | undefined> {
    const { gone } = claiming
    const wakes: number[] = []
    for (let tries = 1; ; tries += 1) {
      const before = queue.announcements()
      const outcome = await attempt(claiming)
      if ('claim' in outcome) return await deliver(context, outcome.claim, claiming)
      if (outcome.none === 'gone' || gone.aborted) return undefined
      wakes.push(outcome.wakes)
      // What was announced while this attempt was under way may have come after its look.
      if (queue.announcements() === before || tries === mostAttempts) break
    }
    lookAgain(lookAgainMs)
    const granted = await queue.wait(claiming, wakes[0] ?? 0)
    return granted && (await deliver(context, granted, claiming))
  }

  store.listen('tasks', serveAll)
  store.listen('agents', () => void checkWakes().catch(() => undefined))
  return {
    claim: (claiming) =>
      claiming.request.wait_ms === 0 ? claimNow(claiming) : inRole(claiming.request.role, (queue) => claimIn(queue, claiming)),
  }
}

type Role = { readonly queue: RoleQueue; readonly close: () => void; claims: number }

/** A lease that nobody will receive goes back at once, and the attempt does not count. */
async function deliver(context: PlaneContext, claim: Claim, { request, gone }: Claiming): Promise<Claim | undefined> {
  if (!gone.aborted) return claim
  const { task, run_id: runId, attempt } = claim
  const caller: Caller = { kind: 'run', id: request.agent_id, role: request.role, taskId: task.task_id, runId, attempt }
  await context.store.write(() => releaseLease(context, { caller, id: task.task_id, request: { outcome: 'now' } }))
  return undefined
}

/** Keeps the waiting workers of one role, first come first served, and tries for as many of them as there are tasks. */
type RoleQueue = {
  wait(claiming: Claiming, wakes: number): Promise<Claim | undefined>
  /** Called when something may be claimable. Never rejects. */
  serve(): Promise<void>
  size(): number
  /** Grows with each call of `serve`. */
  announcements(): number
  /** Lets those return without a task whose agent was told to come back. */
  sendBack(wakes: ReadonlyMap<string, number>): void
}

type RoleQueueOptions = {
  readonly role: string
  readonly attempt: (claiming: Claiming) => Promise<ClaimOutcome>
  readonly look: () => Promise<Ready>
  readonly log: PlaneContext['options']['log']
}

type Waiter = {
  readonly claiming: Claiming
  readonly wakes: number
  readonly settle: (claim: Claim | undefined) => void
  readonly fail: (error: unknown) => void
  /** While a try is under way, the try decides. */
  isTrying: boolean
  isLeaving: boolean
}

/** Tries that share a commit. */
const atOnce = 32

function createRoleQueue({ role, attempt, look, log }: RoleQueueOptions): RoleQueue {
  const waiters = new Set<Waiter>()
  const state = { announced: 0, isServing: false }

  async function wait(claiming: Claiming, wakes: number): Promise<Claim | undefined> {
    const { promise, resolve, reject } = Promise.withResolvers<Claim | undefined>()
    const waiter: Waiter = { claiming, wakes, settle: resolve, fail: reject, isTrying: false, isLeaving: false }
    const leave = () => leaveEmpty(waiter)
    const timer = setTimeout(leave, claiming.request.wait_ms)
    claiming.gone.addEventListener('abort', leave)
    waiters.add(waiter)
    try {
      return await promise
    } finally {
      waiters.delete(waiter)
      clearTimeout(timer)
      claiming.gone.removeEventListener('abort', leave)
    }
  }

  function leaveEmpty(waiter: Waiter): void {
    waiter.isLeaving = true
    if (!waiter.isTrying) waiter.settle(undefined)
  }

  async function serve(): Promise<void> {
    state.announced += 1
    if (state.isServing || waiters.size === 0) return
    state.isServing = true
    try {
      for (let seen = -1; seen !== state.announced && waiters.size > 0; ) {
        seen = state.announced
        await serveOnce(await look())
      }
    } catch (error) {
      log('warn', 'waiting claims could not be served; they are tried again', { role, error: String(error) })
    } finally {
      state.isServing = false
    }
  }

  async function serveOnce({ ready, own }: Ready): Promise<void> {
    await Promise.all([...waiters].filter(({ claiming }) => own.has(claiming.request.agent_id)).map(tryFor))
    const inOrder = [...waiters]
    for (let left = ready, at = 0; left > 0 && at < inOrder.length; ) {
      const group = inOrder.slice(at, at + Math.min(left, atOnce))
      at += group.length
      const outcomes = await Promise.all(group.map(tryFor))
      left -= outcomes.filter((outcome) => outcome === 'granted').length
      // One that takes any task of the role found none, so nobody else will.
      if (outcomes.includes('none for all')) return
    }
  }

  async function tryFor(waiter: Waiter): Promise<'granted' | 'none' | 'none for all'> {
    if (waiter.isLeaving || !waiters.has(waiter)) return 'none'
    waiter.isTrying = true
    const outcome = await attempt(waiter.claiming).catch((error: unknown) => ({ error }))
    waiter.isTrying = false
    if ('claim' in outcome) {
      waiter.settle(outcome.claim)
      return 'granted'
    }
    if ('error' in outcome && !isOutage(outcome.error)) waiter.fail(outcome.error)
    if (waiter.isLeaving) waiter.settle(undefined)
    const isPlain = waiter.claiming.request.labels.length === 0
    return 'none' in outcome && outcome.none === 'empty' && isPlain ? 'none for all' : 'none'
  }

  function sendBack(wakes: ReadonlyMap<string, number>): void {
    for (const waiter of waiters) {
      const now = wakes.get(waiter.claiming.request.agent_id)
      if (now !== undefined && now !== waiter.wakes) leaveEmpty(waiter)
    }
  }

  return { wait, serve, size: () => waiters.size, announcements: () => state.announced, sendBack }
}

/** The database is away for a moment: those who wait go on waiting. */
function isOutage(error: unknown): boolean {
  return error instanceof PlaneRefusal && error.code === 'unavailable'
}

type Ready = {
  /** Tasks that anyone of the role may take; counted no further than `most`. */
  readonly ready: number
  /** Agents for whom alone a task waits. */
  readonly own: ReadonlySet<string>
}

const most = 512

function* readReady(role: string): Command<Ready> {
  const ready = yield* amount(
    `SELECT count(*) AS value FROM
      (SELECT 1 FROM tasks WHERE status = 'pending' AND role = ? AND agent_id IS NULL AND queue_at < 1000000000000000 LIMIT ${most}) AS ready`,
    [role],
  )
  const rows = yield [
    "SELECT DISTINCT agent_id FROM tasks WHERE status = 'pending' AND agent_id IS NOT NULL AND role = ? AND queue_at < 1000000000000000",
    [role],
  ]
  return { ready, own: new Set(rows.map((row) => text(row, 'agent_id'))) }
}

/** How often each agent was told to come back. */
function* wakesOf(): Command<ReadonlyMap<string, number>> {
  const rows = yield ['SELECT id, wakes FROM agents']
  return new Map(rows.map((row) => [text(row, 'id'), int(row, 'wakes')]))
}
