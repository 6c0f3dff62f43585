/** Runs the schedules of a home until it is stopped: it sleeps until something is due, or until another process changes something. */

import { within } from '../../kit/abort.ts'
import { errorText } from '../../kit/errors.ts'
import { isAlive, thisProcess } from '../../memory/journal/process-owner.ts'
import type { Unsent } from '../../memory/schedule-store.ts'
import type { Host } from '../api.ts'
import { FailureError } from '../failure.ts'
import { type RunOptions, runSchedule } from './run-schedule.ts'
import { createScheduler, keyName, type Scheduler, type SchedulerOptions } from './scheduler.ts'

export type ServedSchedules = {
  /** Ends the loop, lets runs end for `graceMs`, then cancels them. */
  close(graceMs: number, by: string): Promise<void>
}

type ServeOptions = Omit<RunOptions, 'host'>

/** How often the database is asked whether another process has written to it. */
const lookMs = 1_000
/** How long cancelled runs may take to end, and their answers to be sent. */
const cancelledMs = 1_000
const afterFailureMs = 60_000

/** A scheduler that starts runs and does not look at the clock: for the command that runs a schedule now. */
export async function schedulerFor(host: Host, running: ServeOptions, ended?: () => void): Promise<Scheduler> {
  const { store } = await host.schedules()
  const options: RunOptions = { ...running, host }
  return createScheduler({
    store,
    log: host.setup.log,
    now: Date.now,
    owner: thisProcess(),
    isAlive,
    run: (row, progress) => runSchedule(row, options, progress),
    continueRuns: ['auto', undefined].includes(host.setup.config.continueTurns),
    ended,
  })
}

export async function serveSchedules(
  host: Host,
  { channels, ...running }: ServeOptions & { readonly channels: ReadonlyMap<string, SendingChannel> },
): Promise<ServedSchedules> {
  const { log } = host.setup
  const schedules = await host.schedules()
  const { store } = schedules
  const delivery = createDelivery({ store, channels, log, now: Date.now, owner: thisProcess(), isAlive })
  const state: { closed: boolean; due: number; version: number; wake?: () => void } = { closed: false, due: 0, version: 0 }
  const scheduler = await schedulerFor(host, running, () => soon())
  schedules.attach({ start: (id) => scheduler.runNow(id), wake: soon })

  /** Looks at everything at once. */
  function soon(): void {
    state.due = 0
    state.wake?.()
  }

  function look(): void {
    const version = store.schedules.version()
    const at = Date.now()
    // The clock may have been set back since.
    const isDue = at >= state.due || state.due > at + afterFailureMs || version !== state.version
    if (!isDue) return
    state.version = version
    try {
      state.due = at + scheduler.tick()
      delivery.deliver()
    } catch (error) {
      state.due = at + afterFailureMs
      log('error', 'schedules cannot be read', { why: errorText(error) })
    }
  }

  async function loop(): Promise<void> {
    while (!state.closed) {
      look()
      await rest(Math.max(1, Math.min(lookMs, state.due - Date.now())))
    }
  }

  /** Does not keep the process alive. */
  function rest(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms)
      timer.unref()
      state.wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }

  void loop()
  return {
    async close(graceMs, by) {
      state.closed = true
      schedules.attach(undefined)
      state.wake?.()
      await within(graceMs, scheduler.settled())
      scheduler.cancel(by)
      await within(cancelledMs, scheduler.settled())
      delivery.deliver()
      await within(cancelledMs, delivery.settled())
      scheduler.release()
    },
  }
}

type SendingChannel = { send(to: string, text: string): Promise<void> }

/** `channels`: those that are listening in this process. */
type DeliveryOptions = Pick<SchedulerOptions, 'store' | 'log' | 'now' | 'owner' | 'isAlive'> & {
  readonly channels: ReadonlyMap<string, SendingChannel>
}

/** A text that was not sent is tried again after this time, until it is sent or its channel says that it never can be. */
const againMs = 60_000
/** How long the process that ran a schedule may take to send the answer before another one does. */
const othersMs = 15_000

/** Sends the answers of scheduled runs through the channels of this process; what cannot be sent yet stays in the database. */
function createDelivery({ store, channels, log, now, owner, isAlive }: DeliveryOptions) {
  const state: { sending: Promise<void>; busy: boolean } = { sending: Promise.resolve(), busy: false }
  const names = [...channels.keys()]
  const retryAt = new Map<string, number>()

  async function sendAll(): Promise<void> {
    const claim = { owner, wants: (text: Unsent) => isMine(text) && (retryAt.get(keyName(text)) ?? 0) <= now() }
    for (let next = store.fired.claimUnsent(names, claim); next; next = store.fired.claimUnsent(names, claim)) await sendOne(next)
  }

  /** The process that ran it comes first, because its channels may be the ones that people listen to. */
  function isMine(text: Unsent): boolean {
    return text.owner === owner || !isAlive(text.owner) || now() - text.ended > othersMs
  }

  async function sendOne(text: Unsent): Promise<void> {
    const { channel, recipient, unsent } = text
    try {
      await channels.get(channel)?.send(recipient, unsent)
      retryAt.delete(keyName(text))
      store.fired.setSent(text, new Date(now()).toISOString(), false)
    } catch (error) {
      const why = errorText(error)
      // A FailureError says that it never can be sent.
      const again = !(error instanceof FailureError)
      retryAt.set(keyName(text), now() + againMs)
      store.fired.setSent(text, `not sent: ${why}`, again)
      log(again ? 'warn' : 'error', 'answer not delivered', { channel, to: recipient, why, ...(again ? { again } : {}) })
    }
  }

  return {
    /** Sends what waits. Never rejects. */
    deliver(): void {
      if (state.busy || names.length === 0) return
      state.busy = true
      state.sending = sendAll()
        .catch((error: unknown) => log('error', 'answers not delivered', { why: String(error) }))
        .finally(() => {
          state.busy = false
        })
    },
    settled: () => state.sending,
  }
}
