/** Adds, changes, pauses and removes schedules, and says when they are due. */

import { createId } from '../../kit/sha256.ts'
import { didYouMean } from '../../kit/text.ts'
import type { Memory } from '../../memory/memory.ts'
import {
  createScheduleStore,
  type FiredTable,
  type ScheduleDefinition,
  type ScheduleRow,
  type ScheduleStore,
} from '../../memory/schedule-store.ts'
import { autonomyLevels } from '../../security/settings.ts'
import type { Setup } from '../api.ts'
import type { LocalScheduler, NewSchedule, ScheduleChange, ScheduleOptions, Schedules } from '../contract/schedules-api.ts'
import { FailureError } from '../failure.ts'
import { agentProfileOf } from '../setup/agent-profile.ts'
import { readTiming, readZone, wrong } from './read-timing.ts'
import { columnsOf, runViewOf, viewOf } from './schedule-view.ts'

export type SchedulesOptions = {
  readonly setup: Pick<Setup, 'config' | 'paths' | 'redactor' | 'context'>
  readonly store: ScheduleStore
  readonly now: () => number
}

/** Opens the schedules of a home; `committed` is called when a run was written. */
export function openSchedules(setup: SchedulesOptions['setup'], { store }: Pick<Memory, 'store'>, committed = () => {}): Schedules {
  return createSchedules({ setup, store: tellRuns(createScheduleStore(store, Date.now), committed), now: Date.now })
}

export function createSchedules({ setup, store, now }: SchedulesOptions): Schedules {
  const { schedules, fired, lease } = store
  const local: { scheduler?: LocalScheduler | undefined } = {}

  /** @throws FailureError `usage` that names the nearest schedule */
  function rowOf(name: string): ScheduleRow {
    const found = schedules.named(name)
    if (found) return found
    const names = schedules.list().map((each) => each.name)
    const advice = didYouMean(name, names) || (names.length === 0 ? '; there are none yet' : '; see: braidclaw schedule list')
    throw new FailureError('usage', `no schedule "${name}"${advice}`)
  }

  const view = (row: ScheduleRow) => viewOf(row, { now: now(), last: fired.last(row.id, 1)[0] })
  const shown = (name: string) => view(rowOf(name))
  /** Wakes the scheduler, because the database reports only changes of other processes. */
  const changed = (id: string) => {
    local.scheduler?.wake()
    return shown(id)
  }

  /** @throws FailureError `usage` */
  function assertFree(name: string): void {
    if (schedules.named(name))
      throw new FailureError('usage', `there is a schedule "${name}" already; choose another name, or remove it first`)
  }

  return {
    store,
    list: () => schedules.list().map(view),
    show: shown,
    runs: (name, limit) => fired.last(rowOf(name).id, limit).map(runViewOf),
    add(newSchedule, accept) {
      const at = now()
      const definition = definitionOf(newSchedule, { setup, now: at })
      accept?.(definition)
      assertFree(definition.name)
      const id = createId('schedule', crypto.getRandomValues(new Uint8Array(10)))
      if (!schedules.add({ ...definition, id, state: 'active', why: '', checked: at, failures: 0, created: at }))
        assertFree(definition.name)
      return changed(id)
    },
    change(name, change) {
      const row = rowOf(name)
      const at = now()
      const definition = changedDefinition(row, change, { setup, now: at })
      if (definition.name !== row.name) assertFree(definition.name)
      const isRetimed = change.timing !== undefined || change.zone !== undefined
      store.transaction(() => {
        schedules.change(row.id, definition, isRetimed ? at : row.checked)
        if (isRetimed && row.state === 'done') schedules.setState(row.id, 'active', { checked: at })
      })
      return changed(row.id)
    },
    pause(name, why = 'paused by hand') {
      const row = rowOf(name)
      if (row.state === 'done') throw new FailureError('usage', `schedule "${row.name}" is done: its only time has passed`)
      schedules.setState(row.id, 'paused', { why, checked: row.checked })
      return changed(row.id)
    },
    resume(name) {
      const row = rowOf(name)
      if (row.state === 'done')
        throw new FailureError('usage', `schedule "${row.name}" is done: its only time has passed; run it now, or add another`)
      if (row.state === 'paused') schedules.setState(row.id, 'active', { checked: now() })
      return changed(row.id)
    },
    remove(name) {
      const found = shown(name)
      schedules.remove(found.id)
      return found
    },
    runNow(name) {
      const { id } = rowOf(name)
      if (!local.scheduler) throw new FailureError('error', 'this process runs no schedules')
      return local.scheduler.start(id)
    },
    isServed: () => lease.holder(now()) !== undefined,
    attach(scheduler) {
      local.scheduler = scheduler
    },
  }
}

/** Reports the begin and end of a run at once to the followers of a home's events: `committed` reads the journal after the transaction. */
export function tellRuns(store: ScheduleStore, committed: () => void): ScheduleStore {
  const { fired } = store
  const after = <Value>(value: Value): Value => {
    committed()
    return value
  }
  const fire: FiredTable['fire'] = (firing) => after(fired.fire(firing))
  const end: FiredTable['end'] = (key, how) => after(fired.end(key, how))
  return { ...store, fired: { ...fired, fire, end } }
}

type Defining = { readonly setup: Pick<Setup, 'config' | 'paths' | 'redactor' | 'context'>; readonly now: number }

const usualPauseAfter = 5

/** @throws FailureError `usage` that says what is wrong and what is allowed */
function definitionOf({ name, timing, madeInChat, ...options }: NewSchedule, { setup, now }: Defining): ScheduleDefinition {
  const zone = readZone(options.zone ?? systemZone(setup))
  return checked(
    {
      name,
      ...columnsOf(readTiming(timing, { now, zone }), now),
      zone,
      ...{ message: '', workspace: setup.config.workspaceDir, agent: null, autonomy: null, conversation: 'new' },
      ...{ channel: null, recipient: null, checkCommand: null, missed: 'run-once', pauseAfter: usualPauseAfter },
      madeInChat: madeInChat ? 1 : 0,
      overlap: options.missed === 'run-all' ? 'wait' : 'skip',
    },
    options,
    setup,
  )
}

/** Absent fields keep their value; an empty text takes a channel, a check, an agent or a level away. @throws FailureError `usage` */
function changedDefinition(
  row: ScheduleRow,
  { name = row.name, timing, ...options }: ScheduleChange,
  { setup, now }: Defining,
): ScheduleDefinition {
  const zone = options.zone === undefined ? row.zone : readZone(options.zone)
  const columns = timing ? columnsOf(readTiming(timing, { now, zone }), now) : {}
  const { id: _id, state: _state, why: _why, checked: _checked, failures: _failures, created: _created, ...before } = row
  return checked({ ...before, ...columns, name, zone }, options, setup)
}

function checked(before: ScheduleDefinition, options: ScheduleOptions, setup: Defining['setup']): ScheduleDefinition {
  const { agent, autonomy, channel, to, check, message } = options
  const definition: ScheduleDefinition = {
    ...before,
    message: message === undefined ? before.message : setup.redactor.text(message.trim()),
    workspace: options.workspace ?? before.workspace,
    agent: chosen(agent, before.agent),
    autonomy: chosen(autonomy, before.autonomy),
    conversation: options.conversation ?? before.conversation,
    channel: chosen(channel, before.channel),
    recipient: channel === '' ? null : chosen(to, before.recipient),
    checkCommand: chosen(check, before.checkCommand),
    missed: options.missed ?? before.missed,
    overlap: options.overlap ?? before.overlap,
    pauseAfter: options.pauseAfter ?? before.pauseAfter,
  }
  assertUsable(definition, setup)
  return definition
}

function chosen(options: string | undefined, before: string | null): string | null {
  if (options === undefined) return before
  return options.trim() === '' ? null : options.trim()
}

function assertUsable(definition: ScheduleDefinition, setup: Defining['setup']): void {
  const { name, message, agent, autonomy, channel, recipient, missed, overlap, pauseAfter } = definition
  if (!/^[a-z0-9][a-z0-9_-]{0,63}$/i.test(name))
    throw wrong(`the name "${name}" is not usable: write up to 64 letters, digits, "-" and "_", a letter or digit first`)
  if (name.startsWith('schedule_')) throw wrong(`the name "${name}" looks like an id; choose one that does not begin with "schedule_"`)
  if (message === '') throw wrong('a schedule needs a message for the agent: --message "…"')
  if (agent !== null) agentProfileOf({ config: { ...setup.config, defaultAgent: agent }, paths: setup.paths })
  if (autonomy !== null && !autonomyLevels.some((level) => level === autonomy))
    throw wrong(`--autonomy "${autonomy}" is not a level; there are ${autonomyLevels.join(', ')}`)
  if (channel !== null) assertChannel(channel, setup)
  if ((channel === null) !== (recipient === null))
    throw wrong(
      channel === null ? '--to needs --channel' : `--channel ${channel} needs --to: a conversation id, or an address on that channel`,
    )
  if (missed === 'run-all' && overlap === 'skip')
    throw wrong('--missed run-all and --overlap skip contradict each other: due times that are made up for follow one another')
  if (!Number.isSafeInteger(pauseAfter) || pauseAfter < 0) throw wrong('--pause-after is a number of failures, 0 for never')
}

/** Channels on which no one listens without asking. */
const unsendable = ['cli', 'http']

function assertChannel(channel: string, { context }: Defining['setup']): void {
  const names = context.channels.map(({ name }) => name).filter((name) => !unsendable.includes(name))
  if (names.includes(channel)) return
  throw wrong(`no channel "${channel}"${didYouMean(channel, names) || `; there are: ${names.join(', ')}`}`)
}

/** The zone that this process has, unless the user's own differs. */
function systemZone({ context }: Defining['setup']): string {
  return context.env.TZ || Intl.DateTimeFormat().resolvedOptions().timeZone
}
