/** A task plane over a store, with a clock that the test moves and agents to claim with. */

import type { Caller } from '../../../src/control/contract/caller.ts'
import type { PlaneOptions } from '../../../src/control/contract/plane.ts'
import { PlaneRefusal } from '../../../src/control/contract/plane-refusal.ts'
import type { Command, Param, Row, Store } from '../../../src/control/contract/store-port.ts'
import {
  type Claim,
  claimRequest,
  type TaskDraft,
  type TaskQuery,
  taskDraft,
  taskQuery,
} from '../../../src/control/contract/task-shapes.ts'
import { createContext, numberOf } from '../../../src/control/plane/command.ts'
import { eventsLast } from '../../../src/control/plane/events.ts'
import { completeTask } from '../../../src/control/plane/tasks/end-task.ts'
import { lockTask } from '../../../src/control/plane/tasks/task-change.ts'
import { createTaskPlane } from '../../../src/control/plane/tasks/task-plane.ts'

export const anna: Caller = { kind: 'operator', id: 'op1', name: 'anna' }
export const agentCaller = (id: string, role = 'sysadmin'): Caller => ({ kind: 'agent', id, role })
export const draft = (fields: Partial<TaskDraft> = {}): TaskDraft => taskDraft.parse({ title: 'look', role: 'sysadmin', ...fields })
export const runCaller = ({ task, run_id: runId, attempt }: Claim, id = 'a1'): Caller => ({
  kind: 'run',
  id,
  role: task.role,
  taskId: task.task_id,
  runId,
  attempt,
})

export const query = (fields: Partial<TaskQuery> = {}): TaskQuery => taskQuery.parse(fields)

/** The code of the refusal; anything else is thrown. */
export async function refusalOf(work: Promise<unknown>): Promise<string> {
  try {
    await work
    return 'no refusal'
  } catch (error) {
    if (error instanceof PlaneRefusal) return error.code
    throw error
  }
}

/** All rows of one statement. */
export function* all(sql: string, params: readonly Param[] = []): Command<readonly Row[]> {
  return yield [sql, params]
}

export type TaskPlaneOptions = Partial<Pick<PlaneOptions, 'now' | 'random' | 'openTasksOfAgent' | 'mostTokensOfReport'>>

export async function taskPlane(store: Store, options: TaskPlaneOptions = {}) {
  const clock = { at: Date.parse('2026-04-07T10:30:00Z') }
  const now = options.now ?? (() => clock.at)
  const counted = { writes: 0 }
  const counting: Store = {
    ...store,
    write: (command, beside) => {
      counted.writes += 1
      return store.write(command, beside)
    },
  }
  const context = createContext({
    ...options,
    store: eventsLast(counting),
    now,
    random: options.random ?? (() => 0.5),
    randomBytes: (count) => crypto.getRandomValues(new Uint8Array(count)),
    leaseSeconds: 60,
    approvalHours: 24,
    log: () => {},
  })
  const tasks = createTaskPlane(context)

  async function addAgent(id: string, role = 'sysadmin'): Promise<Caller> {
    await store.write(function* () {
      yield [
        "INSERT INTO agents (id, role, heartbeat_enabled, description, paused, wakes, created_at, place) VALUES (?, ?, 1, '', 0, 0, ?, 0)",
        [id, role, now()],
      ]
    })
    return agentCaller(id, role)
  }

  async function claim(
    id = 'a1',
    fields: { role?: string; wait_ms?: number; lease_s?: number; labels?: string[] } = {},
  ): Promise<Claim | undefined> {
    const request = claimRequest.parse({ role: 'sysadmin', agent_id: id, ...fields })
    return await tasks.claim(agentCaller(id, request.role), request, new AbortController().signal)
  }

  async function mustClaim(id = 'a1', fields: Parameters<typeof claim>[1] = {}): Promise<Claim> {
    const claimed = await claim(id, fields)
    if (!claimed) throw new Error('there was nothing to claim')
    return claimed
  }

  const complete = (caller: Caller, taskId: string, fields: { status?: string; output?: string; tokensUsed?: number } = {}) =>
    context.store.write(function* () {
      const task = yield* lockTask(context, numberOf(taskId))
      return yield* completeTask(context, { caller, task, status: 'success', output: 'ok', tokensUsed: 0, ...fields })
    })

  /** The types of all events, oldest first. */
  async function types(): Promise<string[]> {
    const rows = await store.read(() => all('SELECT type FROM events ORDER BY id'))
    return rows.map((row) => String(row.type))
  }

  const change = (sql: string, params: readonly Param[]) =>
    store.write(function* () {
      yield [sql, params]
      yield* store.announce('agents')
    })

  return {
    clock,
    context,
    tasks,
    addAgent,
    pauseAgent: (id: string, paused: boolean) => change('UPDATE agents SET paused = ? WHERE id = ?', [paused ? 1 : 0, id]),
    wakeAgent: (id: string) => change('UPDATE agents SET wakes = wakes + 1 WHERE id = ?', [id]),
    claim,
    mustClaim,
    complete,
    types,
    all: (sql: string, params?: readonly Param[]) => store.read(() => all(sql, params)),
    /** How many commands were written so far. */
    countWrites: () => () => counted.writes,
  }
}
