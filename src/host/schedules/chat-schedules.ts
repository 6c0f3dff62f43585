/**
 * Adds, lists and removes the schedules that a chat made for itself. Their answers go to that chat alone; they are bounded in number and
 * rate, and they run unattended, at the level `readonly` and with what the channel permits.
 */

import { didYouMean } from '../../kit/text.ts'
import type { ScheduleRow } from '../../memory/schedule-store.ts'
import type { ScheduleInChat, ScheduleInput } from '../../tools/builtin/schedule.ts'
import { done, fail } from '../../tools/tool-kind.ts'
import type { Schedule, Schedules } from '../contract/schedules-api.ts'
import { FailureError } from '../failure.ts'
import { wrong } from './read-timing.ts'
import { timeText, timingOf } from './schedule-view.ts'
import { nextDues } from './timing.ts'

/** A place where people talk with the agent. `recipient`: its address, or the id of a conversation there. */
export type ChatPlace = { readonly channel: string; readonly recipient: string }

const mostActive = 10
const mostInAnHour = 20
const hourMs = 3_600_000
const leastApartMs = 900_000
/** How many due times in a row are compared. */
const compared = 100

export function scheduleInChat(schedules: Schedules, chat: ChatPlace): ScheduleInChat {
  return async (input) => {
    try {
      if (input.remove !== undefined) return done(removeIn(schedules, chat, input.remove))
      if (Object.keys(input).length === 0) return done(listIn(schedules, chat))
      return done(addIn(schedules, chat, input))
    } catch (error) {
      // The flags of the command line are the parameters of the tool.
      if (error instanceof FailureError)
        return fail(error.message.replaceAll(/--(?=(at|every|cron|message)\b)/g, '').replaceAll('--tz', 'zone'))
      throw error
    }
  }
}

/** Answers `/schedules` in a chat. @returns undefined when the text is something else */
export async function schedulesCommand(text: string, schedules: () => Promise<Schedules>, chat: ChatPlace): Promise<string | undefined> {
  const [command, verb, name, ...more] = text.trim().split(/\s+/)
  if (command !== '/schedules') return undefined
  if (verb === undefined) return listIn(await schedules(), chat)
  if (verb !== 'remove' || name === undefined || more.length > 0) return 'usage: /schedules, or /schedules remove NAME'
  const removed = await scheduleInChat(await schedules(), chat)({ remove: name })
  return removed.error ?? removed.output
}

/** Returns what this chat made, whichever of its conversations did. */
function rowsIn({ store }: Schedules, { channel, recipient }: ChatPlace): readonly ScheduleRow[] {
  const addressOf = (id: string | null) => (id === null ? undefined : (store.addresses.of(channel, id) ?? id))
  const here = addressOf(recipient)
  return store.schedules.list().filter((row) => row.madeInChat === 1 && row.channel === channel && addressOf(row.recipient) === here)
}

function addIn(schedules: Schedules, chat: ChatPlace, { message = '', at, every, cron, zone }: ScheduleInput): string {
  const rows = rowsIn(schedules, chat)
  const now = Date.now()
  for (const { id, state, created } of rows) if (state === 'done' && now - created > hourMs) schedules.remove(id)
  const active = rows.filter(({ state }) => state !== 'done')
  if (active.length >= mostActive)
    throw wrong(
      `this chat has ${active.length} schedules and ${mostActive} are the limit; remove one first: ${active.map(({ name }) => name).join(', ')}`,
    )
  if (rows.filter(({ created }) => now - created < hourMs).length >= mostInAnHour)
    throw wrong(`this chat made ${mostInAnHour} schedules within an hour, and that is the limit; try again later`)
  const name = `chat-${crypto.randomUUID().slice(0, 8)}`
  const added = schedules.add(
    {
      ...{ name, timing: { at, every, cron }, zone, message },
      ...{ channel: chat.channel, to: chat.recipient, autonomy: 'readonly', madeInChat: true },
    },
    assertApart,
  )
  return `added ${lineOf(added)}\nThe person can list and remove it here: /schedules, /schedules remove ${name}`
}

/** @throws FailureError `usage` for due times that follow each other too closely */
function assertApart(row: Parameters<typeof timingOf>[0]): void {
  const dues = nextDues(timingOf(row), Date.now(), compared)
  if (dues.some((due, at) => at > 0 && due - (dues[at - 1] ?? due) < leastApartMs))
    throw wrong('in a chat 15 minutes are the shortest time between two runs of a schedule; choose a longer one')
}

function removeIn(schedules: Schedules, chat: ChatPlace, name: string): string {
  const names = rowsIn(schedules, chat).map((row) => row.name)
  if (!names.includes(name)) throw wrong(`this chat has no schedule "${name}"${didYouMean(name, names) || '; list them first'}`)
  schedules.remove(name)
  return `removed ${name}`
}

function listIn(schedules: Schedules, chat: ChatPlace): string {
  const shown = rowsIn(schedules, chat).filter(({ state }) => state !== 'done')
  if (shown.length === 0) return 'this chat has no schedules'
  return shown.map(({ id }) => lineOf(schedules.show(id))).join('\n')
}

function lineOf({ name, when, state, zone, next: [next], message }: Schedule): string {
  return `${name}: ${next === undefined ? state : `next ${timeText(next, zone)}`} (${when}): ${message}`
}
