/** Sends the answers of scheduled runs through the channels of this process; what cannot be sent yet stays in the database. */

import type { Unsent } from '../../memory/schedules/fired-table.ts'
import type { FiredKey } from '../../memory/schedules/schedule-row.ts'
import type { ScheduleStore } from '../../memory/schedules/schedule-store.ts'
import type { Log } from '../../runtime/port.ts'

export type SendingChannel = { send(to: string, text: string): Promise<void> }

export type DeliveryOptions = {
  readonly store: ScheduleStore
  /** The channels that are listening in this process. */
  readonly channels: ReadonlyMap<string, SendingChannel>
  readonly log: Log
  readonly now: () => number
  readonly owner: string
  readonly isAlive: (owner: string) => boolean
}

export type Delivery = {
  /** Sends what waits. Never rejects. */
  deliver(): void
  settled(): Promise<void>
}

/** After so many attempts, at least so many milliseconds apart, a text counts as not sent. */
const mostTries = 5
const againMs = 60_000
/** How long the process that ran a schedule may take to send the answer before another one does. */
const othersMs = 15_000

export function createDelivery({ store, channels, log, now, owner, isAlive }: DeliveryOptions): Delivery {
  const state: { sending: Promise<void>; busy: boolean } = { sending: Promise.resolve(), busy: false }
  const names = [...channels.keys()]
  const retryAt = new Map<string, number>()

  async function sendAll(): Promise<void> {
    const claim = { owner, wants: (text: Unsent) => isMine(text) && (retryAt.get(nameOf(text)) ?? 0) <= now() }
    for (let next = store.fired.claimUnsent(names, claim); next; next = store.fired.claimUnsent(names, claim)) await sendOne(next)
  }

  /** The process that ran it comes first, because its channels may be the ones that people listen to. */
  function isMine(text: Unsent): boolean {
    return text.owner === owner || !isAlive(text.owner) || now() - text.ended > othersMs
  }

  async function sendOne(text: Unsent): Promise<void> {
    const { channel, recipient, unsent, tries } = text
    try {
      await channels.get(channel)?.send(recipient, unsent)
      retryAt.delete(nameOf(text))
      store.fired.setSent(text, new Date(now()).toISOString(), false)
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error)
      const again = tries + 1 < mostTries
      retryAt.set(nameOf(text), now() + againMs)
      store.fired.setSent(text, `not sent: ${why}`, again)
      log('warn', 'answer not delivered', { channel, to: recipient, why, ...(again ? { again } : {}) })
    }
  }

  return {
    deliver() {
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

function nameOf({ scheduleId, due, attempt }: FiredKey): string {
  return `${scheduleId} ${due} ${attempt}`
}
