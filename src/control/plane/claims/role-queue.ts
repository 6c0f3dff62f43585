/** Keeps the waiting workers of one role, first come first served, and tries for as many of them as there are tasks. */

import { PlaneRefusal } from '../../contract/plane-refusal.ts'
import type { Claim } from '../../contract/task-shapes.ts'
import type { PlaneContext } from '../context.ts'
import type { Claiming, ClaimOutcome } from './claim-task.ts'
import type { Ready } from './waiting-tasks.ts'

export type RoleQueue = {
  wait(claiming: Claiming, wakes: number): Promise<Claim | undefined>
  /** Called when something may be claimable. Never rejects. */
  serve(): Promise<void>
  size(): number
  /** Grows with each call of `serve`. */
  announcements(): number
  /** Lets those return without a task whose agent was told to come back. */
  sendBack(wakes: ReadonlyMap<string, number>): void
}

export type RoleQueueOptions = {
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

export function createRoleQueue({ role, attempt, look, log }: RoleQueueOptions): RoleQueue {
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
