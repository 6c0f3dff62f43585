/** The planes of money, people and history over a store, with a clock that the test moves; tasks are claimed through the real task plane. */

import { activityPost } from '../../../src/control/contract/activity-shapes.ts'
import type { Caller } from '../../../src/control/contract/caller.ts'
import { type AgentDraft, agentDraft } from '../../../src/control/contract/fleet-shapes.ts'
import { PlaneRefusal } from '../../../src/control/contract/plane-refusal.ts'
import type { Param, Row, Store } from '../../../src/control/contract/store-port.ts'
import type { Claim, TaskDraft } from '../../../src/control/contract/task-shapes.ts'
import { createAccessPlane } from '../../../src/control/plane/access-plane.ts'
import { createApprovalPlane } from '../../../src/control/plane/approvals.ts'
import { createActivity } from '../../../src/control/plane/clawdie-protocol/activity-posts.ts'
import { createSeedPlane } from '../../../src/control/plane/clawdie-protocol/heartbeat-answers.ts'
import { createEventPlane } from '../../../src/control/plane/events.ts'
import { createFleetPlane } from '../../../src/control/plane/fleet-plane.ts'
import { createRunPlane } from '../../../src/control/plane/runs.ts'
import { createSchedulePlane } from '../../../src/control/plane/schedules.ts'
import { createBudgetPlane } from '../../../src/control/plane/spending.ts'
import { all, anna, draft, runCaller, type TaskPlaneOptions, taskPlane } from './task-plane.ts'

export type MoneyPlane = Awaited<ReturnType<typeof moneyPlane>>
export type RunOf = { readonly claim: Claim; readonly caller: Extract<Caller, { kind: 'run' }> }

export const seedCaller: Caller = { kind: 'seed', id: 'shared-secret' }

export async function moneyPlane(store: Store, options: TaskPlaneOptions = {}) {
  const plane = await taskPlane(store, options)
  const { context } = plane
  const fleet = createFleetPlane(context)
  const post = createActivity(context)

  const addAgent = async (id: string, fields: Partial<AgentDraft> = {}) =>
    await fleet.add(anna, agentDraft.parse({ id, role: 'sysadmin', ...fields }))

  /** Makes a task and claims it. */
  async function startRun(agentId = 'a1', fields: Partial<TaskDraft> = {}): Promise<RunOf> {
    await plane.tasks.create(anna, draft(fields))
    return await claimRun(agentId, fields.role)
  }

  async function claimRun(agentId = 'a1', role = 'sysadmin'): Promise<RunOf> {
    const claim = await plane.mustClaim(agentId, { role })
    const caller = runCaller(claim, agentId)
    if (caller.kind !== 'run') throw new Error('no run')
    return { claim, caller }
  }

  const rows = async (sql: string, params: readonly Param[] = []): Promise<readonly Row[]> => await store.read(() => all(sql, params))

  return {
    ...plane,
    store: context.store,
    fleet,
    access: createAccessPlane(context),
    approvals: createApprovalPlane(context),
    budget: createBudgetPlane(context),
    events: createEventPlane(context),
    runs: createRunPlane(context),
    schedules: createSchedulePlane(context),
    seed: createSeedPlane(context),
    activity: async (caller: Caller, body: unknown) => await post(caller, activityPost.parse(body)),
    addAgent,
    startRun,
    claimRun,
    rows,
  }
}

/** The code of the refusal; `done` when there was none. */
export async function codeOf(work: Promise<unknown>): Promise<string> {
  try {
    await work
    return 'done'
  } catch (error) {
    if (error instanceof PlaneRefusal) return error.code
    throw error
  }
}

export async function refusalOf(work: Promise<unknown>): Promise<PlaneRefusal> {
  try {
    await work
  } catch (error) {
    if (error instanceof PlaneRefusal) return error
    throw error
  }
  throw new Error('it was not refused')
}
