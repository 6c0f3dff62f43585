/** Checks what a person wants of a schedule, and completes it with the defaults. */

import { didYouMean } from '../../kit/text.ts'
import type { ScheduleDefinition } from '../../memory/schedule-store.ts'
import { autonomyLevels } from '../../security/settings.ts'
import type { Setup } from '../api.ts'
import type { NewSchedule, ScheduleChange, ScheduleOptions } from '../contract/schedules-api.ts'
import { agentProfileOf } from '../setup/agent-profile.ts'
import { readTiming, readZone, wrong } from './read-timing.ts'
import { columnsOf } from './schedule-view.ts'

export type Defining = { readonly setup: Pick<Setup, 'config' | 'paths' | 'redactor' | 'context'>; readonly now: number }

const usualPauseAfter = 5

/** @throws FailureError `usage` that says what is wrong and what is allowed */
export function definitionOf({ name, timing, madeInChat, ...options }: NewSchedule, { setup, now }: Defining): ScheduleDefinition {
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
export function changedDefinition(
  row: ScheduleDefinition,
  { name = row.name, timing, ...options }: ScheduleChange,
  { setup, now }: Defining,
): ScheduleDefinition {
  const zone = options.zone === undefined ? row.zone : readZone(options.zone)
  const columns = timing ? columnsOf(readTiming(timing, { now, zone }), now) : {}
  const {
    kind,
    spec,
    anchor,
    message,
    workspace,
    agent,
    autonomy,
    conversation,
    channel,
    recipient,
    checkCommand,
    missed,
    overlap,
    madeInChat,
  } = row
  const before = {
    ...{ kind, spec, anchor, message, workspace, agent, autonomy, conversation, channel },
    ...{ recipient, checkCommand, missed, overlap, madeInChat, pauseAfter: row.pauseAfter, name, zone },
  }
  return checked({ ...before, ...columns }, options, setup)
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
