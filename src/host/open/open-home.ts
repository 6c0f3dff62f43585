/**
 * Opens a home once per process: all conversations share its database connection, its only writer and its watcher of the emergency stop.
 */

import { statSync } from 'node:fs'
import { lazy } from '../../kit/lazy.ts'
import { createApprovalRequests } from '../../memory/approval-requests.ts'
import type { Memory } from '../../memory/memory.ts'
import { createRecorder, type OneWriter, type RecordWriter } from '../../memory/record-writer.ts'
import type { AgentEvent } from '../../runtime/event.ts'
import type { Redact, RunIdentity } from '../../runtime/port.ts'
import { createRedactor, nameOfLabel, type Redactor } from '../../security/redaction/redact.ts'
import { readStop } from '../../service/stop-file.ts'
import { createModelWindows, type ModelWindows } from '../access/cost/model-window.ts'
import { createHomePoll, type HomePoll } from '../events/home-poll.ts'
import type { EventHub, HostEvent, Subscription } from '../events/host-event.ts'
import type { Hub, Position } from '../events/hub.ts'
import { FailureError } from '../failure.ts'
import { createPendingApprovals, type PendingApprovals } from '../run/pending-approvals.ts'
import { createTurnQueue, type TurnQueue } from '../run/turns.ts'
import { createProfiles, type Profiles } from '../setup/profile.ts'
import { createSharedProviders, type SharedProviders } from '../setup/provider-pool.ts'
import type { GuestConnections } from '../toolset/contract.ts'
import { createSandboxPool, type SandboxPool } from '../toolset/sandbox/command-sandbox.ts'

/** The files of a home, which the first user opens for all users. */
export type HomeParts = { readonly memory: Memory; readonly record: RecordWriter }

export type HomeOptions = {
  /** The path of the database, which may not exist yet. */
  readonly database: string
  /** The paths of the receipts and the emergency stop: two users share a home only when these are equal too. */
  readonly key: string
  /** The path of the file that sets the emergency stop. */
  readonly estop: string
  /** Knows this user's secrets; the home removes the secrets of every user from everything it stores. */
  readonly redactor: (shared: HomeServices) => Redactor
  /** May throw; nothing is left open then. */
  readonly open: (redact: Redact) => HomeParts
  /** Repairs what dead processes left; called for each user, as at each start of a process. May reject; this user has then not joined. */
  readonly recover: (record: RecordWriter) => Promise<void>
  /** @returns a function that stops the watcher */
  readonly watchStop: (onStop: (reason: string) => void) => () => void
}

/** The services that all users of a home share besides its files. */
export type HomeServices = {
  readonly approvals: PendingApprovals
  readonly events: HomeEvents
  readonly poll: HomePoll
  readonly profiles: Profiles
  readonly sandboxes: SandboxPool
  readonly guests: GuestConnections
  readonly providers: SharedProviders
  readonly turns: TurnQueue
}

export type Home = HomeParts & {
  readonly recorder: OneWriter
  readonly windows: ModelWindows
  readonly services: HomeServices
  /** Calls the listener when the emergency stop is set. @returns a function that removes the listener */
  onStop(listener: (reason: string) => void): () => void
  /** Call once per user; the last one closes the database. */
  release(): void
}

type Shared = Omit<Home, 'onStop' | 'release'> & {
  readonly redactor: ReturnType<typeof createHomeRedactor>
  readonly listeners: Set<(reason: string) => void>
  readonly unwatch: () => void
  users: number
}

/**
 * The registry of this process, which two copies of the package share as well. Homes are identified by the database file itself, because
 * two paths may lead to one file.
 */
const homesKey = Symbol.for('braidclaw.homes')
/** Rejects with the errors of `open` and `recover`. */
export async function openHome(options: HomeOptions): Promise<Home> {
  const homes = homesOf(globalThis)
  const shared = homes.get(identityOf(options) ?? '') ?? openFirst(options)
  homes.set(identityOf(options) ?? '', shared)
  const home = join(shared, homes, options.redactor(shared.services))
  try {
    await options.recover(home.record)
    return home
  } catch (error) {
    home.release()
    throw error
  }
}

function homesOf(holder: typeof globalThis & { [homesKey]?: Map<string, Shared> }): Map<string, Shared> {
  holder[homesKey] ??= new Map()
  return holder[homesKey]
}

/** Identifies the file without opening it: closing any descriptor of it would drop the locks of this process. */
function identityOf({ database, key }: HomeOptions): string | undefined {
  const found = statSync(database, { throwIfNoEntry: false })
  return found ? `${found.dev}:${found.ino} ${key}` : undefined
}

function openFirst({ open, watchStop, estop }: HomeOptions): Shared {
  const redactor = createHomeRedactor()
  const listeners = new Set<(reason: string) => void>()
  const parts = open(redactor.redact)
  const services = servicesOver(parts, estop)
  const unwatch = watchStop((reason) => {
    services.events.lookAtStop()
    for (const listener of listeners) listener(reason)
  })
  const recorder = createRecorder(parts.record, { ...parts.memory, committed: services.events.committed })
  const windows = createModelWindows(parts.memory.windows, recorder.add)
  return { ...parts, recorder, windows, services, redactor, listeners, unwatch, users: 0 }
}

function servicesOver({ memory }: HomeParts, estop: string): HomeServices {
  const poll = createHomePoll()
  const providers = createSharedProviders()
  return {
    approvals: createPendingApprovals(createApprovalRequests(memory.approvals, (text) => text).answered, poll),
    events: createHomeEvents({ memory, poll, estop }),
    poll,
    profiles: createProfiles(providers),
    providers,
    sandboxes: createSandboxPool(),
    guests: {},
    turns: createTurnQueue(),
  }
}

function join(shared: Shared, homes: Map<string, Shared>, redactor: Redactor): Home {
  const { memory, record, recorder, windows, services, listeners } = shared
  const forget = shared.redactor.learnFrom(redactor)
  const mine = { open: true }
  shared.users += 1

  function release(): void {
    if (!mine.open) return
    mine.open = false
    forget()
    shared.users -= 1
    if (shared.users > 0) return
    for (const [identity, each] of homes) if (each === shared) homes.delete(identity)
    shared.unwatch()
    void services.guests.mcp?.close()
    services.sandboxes.close()
    services.providers.close()
    windows.flush()
    memory.close()
  }

  return {
    memory,
    record,
    recorder,
    windows,
    services,
    onStop(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    release,
  }
}

type HomeEvents = Pick<Hub, 'committed' | 'piece' | 'lookAtStop'> & {
  /** Returns the hub as one host sees it; `closing` ends its subscriptions. */
  of(closing: AbortSignal): EventHub
}

/** `estop`: the path of the stop file. */
type HomeEventsOptions = { readonly memory: Memory; readonly poll: HomePoll; readonly estop: string }

/** Connects a home to its event hub, which is loaded with the first subscription: without one, each commit costs one comparison. */
function createHomeEvents({ memory, poll, estop }: HomeEventsOptions): HomeEvents {
  const hub = lazy(async () => {
    const { createHub } = await import('../events/hub.ts')
    return createHub({ memory, poll, stopped: () => readStop(estop), now: Date.now })
  })

  async function* subscribe(subscription: Subscription, from: Parameters<Hub['subscribe']>[1]): AsyncGenerator<HostEvent> {
    yield* (await hub.get()).subscribe(subscription, from)
  }

  return {
    committed: () => hub.current()?.committed(),
    piece: (run: RunIdentity, event: AgentEvent) => hub.current()?.piece(run, event),
    lookAtStop: () => hub.current()?.lookAtStop(),
    of: (closing) => ({
      latest: memory.journal.latest,
      subscribe: (subscription, signal = new AbortController().signal) =>
        subscribe(subscription, { position: parsePosition(subscription.after ?? memory.journal.latest()), signal, closing }),
    }),
  }
}

/** @throws FailureError `usage` when it is neither a number nor an id */
function parsePosition(after: number | string): Position {
  const [, seq, part] = /^(\d{1,15})(?:\.(\d{1,9}))?$/.exec(String(after)) ?? []
  if (seq !== undefined) return { seq: Number(seq), ...(part === undefined ? {} : { part: Number(part) }) }
  throw new FailureError(
    'usage',
    `${JSON.stringify(after)} is not an event id; give the id of the last event that was seen, such as "812.1", or 0`,
  )
}

/**
 * Redacts the secrets of every user of a home from everything that any of them stores: it learns from each user and never forgets a secret.
 */
function createHomeRedactor() {
  const all = createRedactor()
  /** Holds for each user redactor how many of its secrets are known here, and how many users share it. */
  const known = new Map<Redactor, { count: number; users: number }>()

  function learn(): void {
    for (const [user, has] of known) {
      if (user.count() === has.count) continue
      for (const [value, label] of user.entries()) all.register(value, nameOfLabel(label))
      has.count = user.count()
    }
  }

  return {
    redact<T>(value: T) {
      learn()
      return all.json(value)
    },
    /** @returns a function to call when this user leaves: the redactor then stops learning from it */
    learnFrom(user: Redactor) {
      const has = known.get(user) ?? { count: 0, users: 0 }
      has.users += 1
      known.set(user, has)
      learn()
      return () => {
        has.users -= 1
        if (has.users === 0) known.delete(user)
      }
    },
  }
}
