/** Keeps schedules: operators add, change and remove them, and the clock creates their tasks, in one daemon at a time. */

import { FailureError } from '../../host/failure.ts'
import { readTiming, readZone } from '../../host/schedules/read-timing.ts'
import { nextDue, planStep, type ScheduleStep, type Timing } from '../../host/schedules/timing.ts'
import { onlyOperator, signatureOf } from '../contract/caller.ts'
import type { SchedulePlane } from '../contract/plane.ts'
import { PlaneRefusal } from '../contract/plane-refusal.ts'
import type { Command, Row } from '../contract/store-port.ts'
import { type ControlSchedule, type ScheduleDraft, scheduleDraft } from '../contract/task-shapes.ts'
import { flag, idOrNull, int, intOrNull, nextId, numberOf, type PlaneContext, queryOne, text, time, timeOrNull } from './command.ts'
import { recordEvent } from './events.ts'
import { createTask } from './tasks/create-task.ts'

export function createSchedulePlane(context: PlaneContext): SchedulePlane {
  const { store } = context
  return {
    async list(caller) {
      onlyOperator(caller, 'list schedules')
      return await store.read(listSchedules)
    },
    async add(caller, draft) {
      const actor = signatureOf(onlyOperator(caller, 'add schedules'))
      return await store.write(() => addSchedule(context, { draft, actor }))
    },
    async setEnabled(caller, id, enabled) {
      const actor = signatureOf(onlyOperator(caller, 'change schedules'))
      return await store.write(() => enableSchedule(context, { id, actor, enabled }))
    },
    async remove(caller, id) {
      const actor = signatureOf(onlyOperator(caller, 'remove schedules'))
      await store.write(() => removeSchedule(context, { id, actor }))
    },
  }
}

function* listSchedules(): Command<readonly ControlSchedule[]> {
  return (yield ['SELECT * FROM schedules ORDER BY id']).map(scheduleOf)
}

type NewSchedule = { readonly draft: ScheduleDraft; readonly actor: string }

/** @throws PlaneRefusal bad_request for a wrong timing, conflict for a name that another schedule has */
function* addSchedule(context: PlaneContext, { draft, actor }: NewSchedule): Command<ControlSchedule> {
  const now = context.now()
  const next = nextDue(timingOf(draft, now), now)
  const id = yield* nextId('schedules')
  const row = yield* queryOne(
    `INSERT INTO schedules (id, name, draft, enabled, next_at, created_at) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (name) DO NOTHING RETURNING *`,
    [id, draft.name, JSON.stringify(draft), draft.enabled ? 1 : 0, draft.enabled ? (next ?? null) : null, now],
  )
  if (!row) throw new PlaneRefusal('conflict', `there is a schedule "${draft.name}" already`)
  yield* recordSchedule(context, { type: 'schedule.added', actor, row })
  return scheduleOf(row)
}

type ScheduleChange = { readonly id: string; readonly actor: string }

/** Turns a schedule on or off. It skips the times that passed while it was off. */
function* enableSchedule(
  context: PlaneContext,
  { id, actor, enabled }: ScheduleChange & { readonly enabled: boolean },
): Command<ControlSchedule> {
  const row = yield* lockSchedule(context, id)
  if (int(row, 'enabled') === (enabled ? 1 : 0)) return scheduleOf(row)
  const next = enabled ? (nextDue(timingOf(draftOf(row), int(row, 'created_at')), context.now()) ?? null) : null
  const changed = yield* queryOne('UPDATE schedules SET enabled = ?, next_at = ? WHERE id = ? RETURNING *', [
    enabled ? 1 : 0,
    next,
    int(row, 'id'),
  ])
  yield* recordSchedule(context, { type: enabled ? 'schedule.enabled' : 'schedule.disabled', actor, row })
  return scheduleOf(changed ?? row)
}

function* removeSchedule(context: PlaneContext, { id, actor }: ScheduleChange): Command<void> {
  const row = yield* lockSchedule(context, id)
  yield ['DELETE FROM fired WHERE schedule_id = ?', [int(row, 'id')]]
  yield ['DELETE FROM schedules WHERE id = ?', [int(row, 'id')]]
  yield* recordSchedule(context, { type: 'schedule.removed', actor, row })
}

/** @param id SCHED-001, or its name. @throws PlaneRefusal not_found */
function* lockSchedule({ dialect }: PlaneContext, id: string): Command<Row> {
  const number = /^SCHED-\d{1,15}$/.test(id) ? numberOf(id) : 0
  const row =
    (yield* queryOne(`SELECT * FROM schedules WHERE id = ?${dialect.forUpdate}`, [number])) ??
    (yield* queryOne(`SELECT * FROM schedules WHERE name = ?${dialect.forUpdate}`, [id]))
  if (!row) throw new PlaneRefusal('not_found', `the schedule "${id}" does not exist`)
  return row
}

type ScheduleEvent = { readonly type: string; readonly actor?: string; readonly row: Row; readonly facts?: object }

function* recordSchedule(context: PlaneContext, { type, row, facts, actor = actorOf(row) }: ScheduleEvent): Command<void> {
  const data = { schedule_id: scheduleId(int(row, 'id')), name: text(row, 'name'), ...facts }
  yield* recordEvent(context, { type, actor, role: draftOf(row).task.role, data })
}

function actorOf(row: Row): string {
  return `schedule ${text(row, 'name')}`
}

/** With `run-all` a schedule that missed more than this in a month skips the oldest. */
const mostAtOnce = 100

export async function fireSchedules(context: PlaneContext): Promise<void> {
  const { store } = context
  const due = await store.read(() => dueSchedules(context))
  if (due.length === 0) return
  await store.withLock('schedules', async () => {
    for (const number of due) await fireOne(context, number)
  })
}

function* dueSchedules(context: PlaneContext): Command<readonly number[]> {
  const rows = yield ['SELECT id FROM schedules WHERE enabled = 1 AND next_at <= ? ORDER BY next_at, id', [context.now()]]
  return rows.map((row) => int(row, 'id'))
}

/** Creates each task in a transaction of its own. A schedule whose task cannot be created logs why, and tries again at its next time. */
async function fireOne(context: PlaneContext, number: number): Promise<void> {
  const { store, options } = context
  for (let count = 0; count < mostAtOnce; count += 1) {
    try {
      if (!(await store.write(() => takeStep(context, number)))) return
    } catch (error) {
      if (!(error instanceof PlaneRefusal) || error.code === 'unavailable') throw error
      options.log('warn', 'a schedule made no task', { schedule: scheduleId(number), error: error.message })
      await store.write(() => passOver(context, { number, error: error.message }))
    }
  }
}

/** @returns whether there may be more to do */
function* takeStep(context: PlaneContext, number: number): Command<boolean> {
  const due = yield* lockDue(context, number)
  if (!due) return false
  const { row, timing } = due
  const step = yield* stepOf(context, due)
  if (step.do === 'nothing') return false
  if (step.do === 'rewind') {
    yield* setNext(number, nextDue(timing, step.checked))
    return false
  }
  const times = { due_at: new Date(step.due).toISOString(), passed_over: step.passedOver }
  if (step.do === 'fire') yield* createDueTask(context, { row, due: step.due, times })
  else yield* recordSchedule(context, { type: `schedule.${step.state}`, row, facts: times })
  yield* setNext(number, nextDue(timing, step.due))
  return true
}

type DueSchedule = { readonly row: Row; readonly timing: Timing }

function* lockDue({ dialect, now }: PlaneContext, number: number): Command<DueSchedule | undefined> {
  const row = yield* queryOne(`SELECT * FROM schedules WHERE id = ? AND enabled = 1 AND next_at <= ?${dialect.forUpdate}`, [number, now()])
  return row && { row, timing: timingOf(draftOf(row), int(row, 'created_at')) }
}

/** Plans the next step; all times before `next_at` are done. With `run-all` each missed time waits for the task of the one before. */
function* stepOf(context: PlaneContext, { row, timing }: DueSchedule): Command<ScheduleStep> {
  const { missed, overlap } = draftOf(row)
  const isRunning = overlap === 'skip' && (yield* isOpen(intOrNull(row, 'last_task_id')))
  return planStep(
    { timing, missed, overlap: missed === 'run-all' ? 'wait' : 'skip', checked: int(row, 'next_at') - 1, isRunning },
    context.now(),
  )
}

function* isOpen(task: number | null): Command<boolean> {
  if (task === null) return false
  const row = yield* queryOne("SELECT id FROM tasks WHERE id = ? AND status NOT IN ('completed', 'failed', 'dead', 'cancelled')", [task])
  return row !== undefined
}

function* setNext(number: number, next: number | undefined): Command<void> {
  yield ['UPDATE schedules SET next_at = ? WHERE id = ?', [next ?? null, number]]
}

type DueTask = { readonly row: Row; readonly due: number; readonly times: object }

/** Creates the task of a due time. It writes the row in `fired` first, so that no daemon or clock fires that time again. */
function* createDueTask(context: PlaneContext, { row, due, times }: DueTask): Command<void> {
  const [id, now, actor] = [int(row, 'id'), context.now(), actorOf(row)]
  const isNew = yield* queryOne(
    'INSERT INTO fired (schedule_id, due_at, at) VALUES (?, ?, ?) ON CONFLICT (schedule_id, due_at) DO NOTHING RETURNING due_at',
    [id, due, now],
  )
  if (!isNew) return
  const { task } = draftOf(row)
  const schedule = { schedule_id: scheduleId(id), name: text(row, 'name'), ...times }
  const draft = { ...task, context: { ...task.context, schedule } }
  const created = yield* createTask(context, { kind: 'operator', id: 'schedules', name: 'schedules' }, draft, actor)
  const taskId = numberOf(created.task_id)
  yield ['UPDATE fired SET task_id = ? WHERE schedule_id = ? AND due_at = ?', [taskId, id, due]]
  yield ['UPDATE schedules SET last_fired_at = ?, last_task_id = ? WHERE id = ?', [now, taskId, id]]
  yield* recordEvent(context, { type: 'schedule.fired', actor, taskId, role: task.role, data: schedule })
}

function* passOver(context: PlaneContext, { number, error }: { readonly number: number; readonly error: string }): Command<void> {
  const due = yield* lockDue(context, number)
  if (!due) return
  yield* setNext(number, nextDue(due.timing, context.now()))
  yield* recordSchedule(context, { type: 'schedule.failed', row: due.row, facts: { error } })
}

function scheduleId(number: number): string {
  return `SCHED-${String(number).padStart(3, '0')}`
}

function draftOf(row: Row): ScheduleDraft {
  return scheduleDraft.parse(JSON.parse(text(row, 'draft')))
}

function scheduleOf(row: Row): ControlSchedule {
  return {
    ...draftOf(row),
    enabled: flag(row, 'enabled'),
    schedule_id: scheduleId(int(row, 'id')),
    next_at: timeOrNull(row, 'next_at'),
    last_fired_at: timeOrNull(row, 'last_fired_at'),
    last_task_id: idOrNull('TASK', intOrNull(row, 'last_task_id')),
    created_at: time(row, 'created_at'),
  }
}

/** Parses the timing. An interval counts from `anchor`, the creation of the schedule. @throws PlaneRefusal bad_request */
function timingOf({ cron, every, timezone }: ScheduleDraft, anchor: number): Timing {
  try {
    const zone = readZone(timezone)
    if ((cron === undefined) === (every === undefined)) throw new FailureError('usage', 'give exactly one of "cron" and "every"')
    return readTiming({ cron, every }, { now: anchor, zone })
  } catch (error) {
    if (error instanceof FailureError)
      throw new PlaneRefusal('bad_request', error.message.replaceAll('--tz', 'timezone').replaceAll('--', ''))
    throw error
  }
}
