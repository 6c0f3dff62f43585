/** Lets claims wait for a task: a new task costs as many tries as workers can get one, not as many as wait. */

import type { Caller } from '../../contract/caller.ts'
import type { Claim } from '../../contract/task-shapes.ts'
import type { PlaneContext } from '../context.ts'
import { readyTopic } from '../tasks/task-change.ts'
import { besideClaims, type Claiming, claimTask } from './claim-task.ts'
import { releaseLease } from './keep-lease.ts'
import { createRoleQueue, type RoleQueue } from './role-queue.ts'
import { sweep } from './sweep.ts'
import { readReady, wakesOf } from './waiting-tasks.ts'

export type WaitingClaims = {
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
