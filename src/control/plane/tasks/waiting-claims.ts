/** Lets claims wait for a task: a new task costs as many tries as workers can get one, not as many as wait. */

import { atEnd } from '../../../kit/errors.ts'
import type { Caller } from '../../contract/caller.ts'
import { PlaneRefusal } from '../../contract/plane-refusal.ts'
import type { Command } from '../../contract/store-port.ts'
import type { Claim } from '../../contract/task-shapes.ts'
import { int, type PlaneContext, queryNumber, text } from '../command.ts'
import { type ClaimCall, type ClaimOutcome, claimBatchKey, claimTask, releaseLease, sweep } from './claim-task.ts'
import { readyTopic } from './task-change.ts'

/** Resolves with undefined after `wait_ms`, when an operator wakes the agent, and when the caller disconnects. */
type WaitingClaims = (call: ClaimCall) => Promise<Claim | undefined>

/** The queue is checked this often, because announcements may be lost and other daemons may unlock tasks without one. */
const checkEveryMs = 1_000
/** An attempt repeats this often because of announcements meanwhile; after that the next check finds the task. */
const mostAttempts = 3

export function createWaitingClaims(context: PlaneContext): WaitingClaims {
  const { store } = context
  const roles = new Map<string, WaitingRole>()
  let isPlanned = false

  const attempt = (call: ClaimCall) => store.write(() => claimTask(context, call), claimBatchKey())
  const serveAll = () => {
    for (const { queue } of roles.values()) void queue.serve()
  }

  function openRole(name: string): WaitingRole {
    const queue = createRoleQueue({ role: name, attempt, readReady: () => store.read(() => readyOf(name)), log: context.options.log })
    const role = { queue, close: store.listen(readyTopic(name), () => void queue.serve()), claims: 0 }
    roles.set(name, role)
    return role
  }

  /** Runs work in the queue of a role. The last claim removes the queue: clients may name any role, and each would stay in memory. */
  async function inRole<T>(name: string, work: (queue: RoleQueue) => Promise<T>): Promise<T> {
    const role = roles.get(name) ?? openRole(name)
    role.claims += 1
    using _end = atEnd(() => {
      role.claims -= 1
      if (role.claims === 0) {
        role.close()
        roles.delete(name)
      }
    })
    return await work(role.queue)
  }

  async function checkWakes(): Promise<void> {
    const wakes = await store.read(wakesOf)
    for (const { queue } of roles.values()) queue.sendBack(wakes)
    serveAll()
  }

  function checkLater(ms: number): void {
    if (isPlanned) return
    isPlanned = true
    setTimeout(() => void sweepAndServe(), Math.min(checkEveryMs, Math.max(10, ms)))
  }

  async function sweepAndServe(): Promise<void> {
    isPlanned = false
    if (![...roles.values()].some(({ queue }) => queue.size() > 0)) return
    const nextAt = await store.write(() => sweep(context)).catch(() => null)
    serveAll()
    checkLater(nextAt ? nextAt - context.now() : checkEveryMs)
  }

  async function claimNow(call: ClaimCall): Promise<Claim | undefined> {
    const outcome = await attempt(call)
    return 'claim' in outcome ? await deliver(context, outcome.claim, call) : undefined
  }

  async function claimIn(queue: RoleQueue, call: ClaimCall): Promise<Claim | undefined> {
    const { disconnected } = call
    const wakes: number[] = []
    for (let tries = 1; ; tries += 1) {
      const before = queue.announcements()
      const outcome = await attempt(call)
      if ('claim' in outcome) return await deliver(context, outcome.claim, call)
      if (outcome.none === 'disconnected' || disconnected.aborted) return undefined
      wakes.push(outcome.wakes)
      // An announcement during this attempt may have come after it read the queue.
      if (queue.announcements() === before || tries === mostAttempts) break
    }
    checkLater(checkEveryMs)
    const granted = await queue.wait(call, wakes[0] ?? 0)
    return granted && (await deliver(context, granted, call))
  }

  store.listen('tasks', serveAll)
  store.listen('agents', () => void checkWakes().catch(() => undefined))
  return (call) => (call.request.wait_ms === 0 ? claimNow(call) : inRole(call.request.role, (queue) => claimIn(queue, call)))
}

type WaitingRole = { readonly queue: RoleQueue; readonly close: () => void; claims: number }

/** Releases the lease at once when its client has left, without counting the attempt. */
async function deliver(context: PlaneContext, claim: Claim, { request, disconnected }: ClaimCall): Promise<Claim | undefined> {
  if (!disconnected.aborted) return claim
  const { task, run_id: runId, attempt } = claim
  const caller: Caller = { kind: 'run', id: request.agent_id, role: request.role, taskId: task.task_id, runId, attempt }
  await context.store.write(() => releaseLease(context, { caller, id: task.task_id, request: { outcome: 'now' } }))
  return undefined
}

/** Keeps the waiting workers of one role, first come first served, and tries for as many of them as there are tasks. */
type RoleQueue = {
  wait(call: ClaimCall, wakes: number): Promise<Claim | undefined>
  /** Tries the waiting claims after something may have become claimable. Never rejects. */
  serve(): Promise<void>
  size(): number
  /** Counts the calls of `serve`. */
  announcements(): number
  /** Returns the claims of agents that an operator woke, without a task. */
  sendBack(wakes: ReadonlyMap<string, number>): void
}

type RoleQueueOptions = {
  readonly role: string
  readonly attempt: (call: ClaimCall) => Promise<ClaimOutcome>
  readonly readReady: () => Promise<Ready>
  readonly log: PlaneContext['options']['log']
}

type Waiter = {
  readonly call: ClaimCall
  readonly wakes: number
  readonly settle: (claim: Claim | undefined) => void
  readonly fail: (error: unknown) => void
  /** While a try is running, the try decides. */
  isTrying: boolean
  isLeaving: boolean
}

/** This many tries share a commit. */
const atOnce = 32

function createRoleQueue({ role, attempt, readReady, log }: RoleQueueOptions): RoleQueue {
  const waiters = new Set<Waiter>()
  const state = { announced: 0, isServing: false }

  async function wait(call: ClaimCall, wakes: number): Promise<Claim | undefined> {
    const { promise, resolve, reject } = Promise.withResolvers<Claim | undefined>()
    const waiter: Waiter = { call, wakes, settle: resolve, fail: reject, isTrying: false, isLeaving: false }
    const leave = () => leaveEmpty(waiter)
    const timer = setTimeout(leave, call.request.wait_ms)
    call.disconnected.addEventListener('abort', leave)
    waiters.add(waiter)
    using _end = atEnd(() => {
      waiters.delete(waiter)
      clearTimeout(timer)
      call.disconnected.removeEventListener('abort', leave)
    })
    return await promise
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
      for (let served = -1; served !== state.announced && waiters.size > 0; ) {
        served = state.announced
        await serveOnce(await readReady())
      }
    } catch (error) {
      log('warn', 'waiting claims could not be served; they are tried again', { role, error: String(error) })
    } finally {
      state.isServing = false
    }
  }

  async function serveOnce({ ready, own }: Ready): Promise<void> {
    await Promise.all([...waiters].filter(({ call }) => own.has(call.request.agent_id)).map(tryFor))
    const inOrder = [...waiters]
    for (let left = ready, at = 0; left > 0 && at < inOrder.length; ) {
      const group = inOrder.slice(at, at + Math.min(left, atOnce))
      at += group.length
      const outcomes = await Promise.all(group.map(tryFor))
      left -= outcomes.filter((outcome) => outcome === 'granted').length
      // A claim that takes any task of the role found none, so no other will.
      if (outcomes.includes('none for all')) return
    }
  }

  async function tryFor(waiter: Waiter): Promise<'granted' | 'none' | 'none for all'> {
    if (waiter.isLeaving || !waiters.has(waiter)) return 'none'
    waiter.isTrying = true
    const outcome = await attempt(waiter.call).catch((error: unknown) => ({ error }))
    waiter.isTrying = false
    if ('claim' in outcome) {
      waiter.settle(outcome.claim)
      return 'granted'
    }
    // Claims keep waiting through an outage of the database.
    const isOutage = 'error' in outcome && outcome.error instanceof PlaneRefusal && outcome.error.code === 'unavailable'
    if ('error' in outcome && !isOutage) waiter.fail(outcome.error)
    if (waiter.isLeaving) waiter.settle(undefined)
    const isPlain = waiter.call.request.labels.length === 0
    return 'none' in outcome && outcome.none === 'empty' && isPlain ? 'none for all' : 'none'
  }

  function sendBack(wakes: ReadonlyMap<string, number>): void {
    for (const waiter of waiters) {
      const now = wakes.get(waiter.call.request.agent_id)
      if (now !== undefined && now !== waiter.wakes) leaveEmpty(waiter)
    }
  }

  return { wait, serve, size: () => waiters.size, announcements: () => state.announced, sendBack }
}

type Ready = {
  /** Counts, up to `most`, the tasks that anyone of the role may take. */
  readonly ready: number
  /** Names the agents that have a task for them alone. */
  readonly own: ReadonlySet<string>
}

const most = 512

function* readyOf(role: string): Command<Ready> {
  const ready = yield* queryNumber(
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

/** Reads how often operators woke each agent. */
function* wakesOf(): Command<ReadonlyMap<string, number>> {
  const rows = yield ['SELECT id, wakes FROM agents']
  return new Map(rows.map((row) => [text(row, 'id'), int(row, 'wakes')]))
}
