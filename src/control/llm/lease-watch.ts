/** Looks, while a model answers, whether the run may still go on: a lost lease, a cancelled task or a revoked key ends the call. */

import type { Caller } from '../contract/caller.ts'
import type { Plane } from '../contract/plane.ts'
import { PlaneRefusal } from '../contract/plane-refusal.ts'

export type RunCaller = Extract<Caller, { readonly kind: 'run' }>

export type WatchDeps = {
  readonly plane: { readonly access: Pick<Plane['access'], 'callerOf'>; readonly tasks: Pick<Plane['tasks'], 'get'> }
  readonly sleep: (ms: number) => Promise<void>
}

export const lookEveryMs = 400
/** How long the control plane may be unable to answer before a call ends. */
const blindMs = 10_000

/** @throws PlaneRefusal when the run of this token may not go on */
export async function assertRuns({ plane }: WatchDeps, secret: string): Promise<RunCaller> {
  const caller = await plane.access.callerOf(secret)
  if (!caller) throw new PlaneRefusal('unauthorized', 'this token is not in force: its lease has ended, or its key was revoked')
  if (caller.kind !== 'run')
    throw new PlaneRefusal('forbidden', 'only the token of a run may ask a model, so that the budget of its task counts it')
  const task = await plane.tasks.get(caller, caller.taskId)
  if (task.cancel_requested) throw new PlaneRefusal('conflict', `${task.task_id} is cancelled; stop and release it`)
  if (task.status === 'budget_blocked') throw new PlaneRefusal('budget_exceeded', `${task.task_id} waits: its budget is used up`)
  if (task.status !== 'running' || task.run_id !== caller.runId)
    throw new PlaneRefusal('lease_lost', `${caller.runId} no longer holds ${task.task_id}`)
  return caller
}

/** Calls `stop` once, with the reason. @returns a function that ends the watch */
export function watchRun(deps: WatchDeps, secret: string, stop: (why: unknown) => void): () => void {
  const state = { over: false, blindSince: 0 }

  async function look(): Promise<void> {
    try {
      await assertRuns(deps, secret)
      state.blindSince = 0
    } catch (error) {
      if (isRefusal(error)) return end(error)
      state.blindSince += lookEveryMs
      if (state.blindSince >= blindMs) end(new PlaneRefusal('unavailable', 'the control plane cannot see whether this run may go on'))
    }
  }

  function end(why: unknown): void {
    if (!state.over) stop(why)
    state.over = true
  }

  async function follow(): Promise<void> {
    while (!state.over) {
      await deps.sleep(lookEveryMs)
      if (!state.over) await look()
    }
  }

  void follow()
  return () => {
    state.over = true
  }
}

function isRefusal(error: unknown): boolean {
  return error instanceof PlaneRefusal && error.code !== 'unavailable' && error.code !== 'too_many'
}
