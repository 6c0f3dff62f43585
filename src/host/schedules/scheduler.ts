/**
 * Starts what is due in a process that stays. Of several processes of a home one does so; a run has its row before it begins, so that
 * neither a restart nor a second process starts it again.
 */

import { errorText } from '../../kit/errors.ts'
import type { FiredEnd, FiredKey, FiredRow, ScheduleRow, ScheduleStore } from '../../memory/schedule-store.ts'
import type { Log } from '../../runtime/port.ts'
import type { StartedRun } from '../contract/schedules-api.ts'
import type { RunProgress } from './run-schedule.ts'
import { both, interruptedReport, pausedReport } from './run-schedule.ts'
import { iso, runViewOf, timingOf } from './schedule-view.ts'
import { nextDue, planStep } from './timing.ts'

export type SchedulerOptions = {
  readonly store: ScheduleStore
  readonly log: Log
  readonly now: () => number
  /** Identifies this process. */
  readonly owner: string
  readonly isAlive: (owner: string) => boolean
  readonly run: (row: ScheduleRow, progress: RunProgress) => Promise<Omit<FiredEnd, 'ended'>>
  /** Tells whether a run that had begun when its process ended continues. */
  readonly continueRuns?: boolean
  /** Called when a run has ended and its text may be sent. */
  readonly ended?: () => void
}

export type Scheduler = ReturnType<typeof createScheduler>

type Started = FiredKey & Pick<FiredRow, 'startedBy'>

/** A jump of the clock is noticed at the latest after this time. */
const longestMs = 60_000
/** How often a process that holds no lease looks whether it can have it. */
const followMs = 5_000
/** The most times that a run whose process ended is started again or continues. */
const mostTimes = 3

export function createScheduler({ store, log, now, owner, isAlive, run, continueRuns = false, ended = () => {} }: SchedulerOptions) {
  const { schedules, fired, lease, transaction, noteFired } = store
  const running = new Map<string, { readonly over: Promise<void>; cancel?: (by?: string) => void }>()

  /** Starts what is due. @returns how many milliseconds may pass before the next call */
  function tick(): number {
    const at = now()
    if (!lease.hold(owner, at)) return followMs
    recover()
    const active = schedules.list().filter(({ state }) => state === 'active')
    for (const row of active) step(row.id)
    const next = schedules
      .list()
      .flatMap((row) => (row.state === 'active' ? (nextDue(timingOf(row), Math.max(row.checked, at)) ?? []) : []))
    return Math.max(0, Math.min(longestMs, ...next.map((due) => due - now())))
  }

  /** Handles the due times of one schedule until nothing more is to be done now. */
  function step(id: string): void {
    for (let steps = 0; steps < 1_000; steps += 1) {
      const at = now()
      const row = schedules.named(id)
      if (row?.state !== 'active') return
      const isRunning = fired.running().some(({ scheduleId }) => scheduleId === id)
      const planned = planStep({ ...row, timing: timingOf(row), isRunning, lastEnded: fired.lastEnded(id) }, at)
      if (planned.do === 'nothing') return
      if (planned.do === 'rewind') {
        schedules.setChecked(id, planned.checked)
        continue
      }
      const { due, passedOver } = planned
      const state = planned.do === 'fire' ? 'running' : planned.state
      const firing = { scheduleId: id, due, attempt: 1, state, fired: at, owner, startedBy: 'timer', passedOver } as const
      const isMine = transaction(() => {
        // Another process may have taken the lease while this one was stopped.
        if (!lease.hold(owner, at)) return undefined
        const isNew = fired.fire({ ...firing, ...(planned.do === 'leave' ? { message: whyLeft(planned.state) } : {}) })
        schedules.setChecked(id, due)
        if (row.kind === 'at') schedules.setState(id, 'done', { checked: due })
        return isNew
      })
      if (isMine === undefined) return
      if (isMine && planned.do === 'leave') log('warn', `schedule ${planned.state}`, { schedule: row.name, due: iso(due), passedOver })
      if (isMine && planned.do === 'fire') dispatch(row, firing)
    }
  }

  function dispatch(row: ScheduleRow, key: Started, progress: Pick<RunProgress, 'show' | 'continues'> = {}): Promise<void> {
    const name = keyName(key)
    log('info', 'schedule started', { schedule: row.name, due: iso(key.due), ...(key.attempt > 1 ? { attempt: key.attempt } : {}) })
    const entry: { over: Promise<void>; conversationId?: string; cancel?: (by?: string) => void } = { over: Promise.resolve() }
    entry.over = run(row, {
      ...progress,
      opened(conversation) {
        if (!entry.cancel) fired.setConversation(key, conversation.id)
        entry.cancel = conversation.cancel
        entry.conversationId = conversation.id
      },
      began: (runId) =>
        transaction(() => {
          fired.setRun(key, runId)
          noteFired({ schedule: row.name, runId, conversationId: entry.conversationId })
        }),
    })
      .then((end) => finish(row, key, end))
      .catch((error: unknown) => log('error', 'schedule not recorded', { schedule: row.name, why: errorText(error) }))
      .finally(() => {
        running.delete(name)
        ended()
      })
    running.set(name, entry)
    return entry.over
  }

  /** Records the end of a run; after too many failures in a row the schedule pauses, and says so. */
  function finish(row: ScheduleRow, key: Started, end: Omit<FiredEnd, 'ended'>): void {
    const { name, id } = row
    const pausing = transaction(() => {
      const current = schedules.named(id)
      const failures = end.state === 'bad' ? (current?.failures ?? 0) + 1 : end.state === 'good' ? 0 : (current?.failures ?? 0)
      const pauses = current?.state === 'active' && current.pauseAfter > 0 && failures >= current.pauseAfter
      const unsent = end.unsent !== null && pauses ? both(end.unsent, pausedReport(name, failures)) : end.unsent
      fired.end(key, { ...end, unsent, ended: now() })
      if (failures !== current?.failures) schedules.setFailures(id, failures)
      if (pauses) schedules.setState(id, 'paused', { why: `${failures} runs in a row failed`, checked: current.checked })
      return pauses
    })
    const why = end.message ?? (end.checked === null || end.checked === 'passed' ? undefined : `check: ${end.checked}`)
    log(end.state === 'good' || key.startedBy === 'hand' ? 'info' : 'warn', 'schedule ended', {
      schedule: name,
      state: end.state,
      ...(why ? { why } : {}),
    })
    if (pausing) log('warn', 'schedule paused', { schedule: name, how: `braidclaw schedule resume ${name}` })
  }

  /** Runs whose process has died: one that had not begun is started again if the schedule makes up for missed due times, others continue. */
  function recover(): void {
    for (const row of fired.running()) if (row.owner !== owner && !isAlive(row.owner)) interrupt(row)
  }

  function interrupt(dead: FiredRow): void {
    const row = schedules.named(dead.scheduleId)
    const runId = dead.runId ?? fired.runOf(dead)
    const isFree = row !== undefined && row.state !== 'paused'
    const continues = runId === undefined ? undefined : (dead.conversationId ?? undefined)
    const isDue = runId === undefined && row?.missed !== 'skip' && dead.attempt < mostTimes
    const begins = isFree && (isDue || (continueRuns && continues !== undefined && dead.attempt <= mostTimes))
    // The time of the first attempt finds the begun run again, whenever the next attempt dies.
    const since = continues === undefined ? now() : dead.fired
    const why = runId === undefined ? 'the process ended before the run began' : `the process ended during the run ${runId}`
    const again = { ...dead, attempt: dead.attempt + 1, state: 'running', fired: since, owner, message: '' } as const
    const isMine = transaction(() => {
      if (!lease.hold(owner, now())) return false
      if (runId !== undefined) fired.setRun(dead, runId)
      const unsent = row && row.channel !== null && !begins ? interruptedReport(row.name, why) : null
      const end = { ending: null, message: why, checked: null, tokens: null, micros: null, unsent }
      if (!fired.end(dead, { state: 'interrupted', ended: now(), ...end })) return false
      const isNew = !begins || fired.fire(again)
      if (begins && continues !== undefined) fired.setConversation(again, continues)
      return isNew
    })
    if (!isMine) return
    log('warn', 'schedule interrupted', { schedule: row?.name ?? dead.scheduleId, due: iso(dead.due), why })
    if (begins) void dispatch(row, again, { continues })
  }

  /** Starts a run now, whatever the schedule says. */
  function runNow(id: string, progress?: Pick<RunProgress, 'show'>): StartedRun {
    const row = schedules.named(id)
    if (!row) throw new Error(`no schedule ${id}`)
    const at = now()
    const firing = { scheduleId: row.id, attempt: 1, state: 'running', fired: at, owner, startedBy: 'hand', passedOver: 0 } as const
    // Two requests may fall into one millisecond.
    const due = Array.from({ length: 1_000 }, (_, each) => at + each).find((each) => fired.fire({ ...firing, due: each })) ?? at
    const over = dispatch(row, { ...firing, due }, progress)
    return { run: viewIn(row.id, due), ended: over.then(() => viewIn(row.id, due)) }
  }

  function viewIn(id: string, due: number): StartedRun['run'] {
    const found = fired.last(id, 1_000).find((each) => each.due === due)
    if (!found) throw new Error(`the schedule ${id} was removed meanwhile`)
    return runViewOf(found)
  }

  return {
    tick,
    runNow,
    /** Cancels the runs of this process. */
    cancel(by: string): void {
      for (const { cancel } of running.values()) cancel?.(by)
    },
    /** Resolves when no run of this process is under way. */
    settled: async () => void (await Promise.all([...running.values()].map(({ over }) => over))),
    release: () => lease.release(owner),
  }
}

export function keyName({ scheduleId, due, attempt }: FiredKey): string {
  return `${scheduleId} ${due} ${attempt}`
}

function whyLeft(state: 'missed' | 'skipped'): string {
  return state === 'missed' ? 'no process ran schedules then' : 'the run before had not ended'
}
