/** A home is opened once a process: all conversations share its database connection, its one writer and its watch on the emergency stop. */

import { statSync } from 'node:fs'
import type { Memory } from '../memory/memory.ts'
import type { RecordWriter } from '../memory/record-writer.ts'
import { createRecorder, type OneWriter } from '../memory/recorder.ts'
import type { Redact } from '../runtime/port.ts'
import type { Redactor } from '../security/redaction/redact.ts'
import { createHomeRedactor, type HomeRedactor } from './home-redactor.ts'
import { answersIn } from './integrity/recovery.ts'
import { createPendingApprovals, type PendingApprovals } from './run/pending-approvals.ts'
import { createTurnQueue, type TurnQueue } from './run/turn-queue.ts'
import { createProfiles, type Profiles } from './setup/profile.ts'
import { createSharedProviders } from './setup/provider-pool.ts'
import { createSandboxPool, type SandboxPool } from './toolset/command-sandbox.ts'

/** What a first user opens for all. */
export type HomeParts = { readonly memory: Memory; readonly record: RecordWriter }

export type HomeOptions = {
  /** Where the database is or will be. */
  readonly database: string
  /** What must be equal besides for a home to be the same: where its receipts and its emergency stop are. */
  readonly key: string
  /** Knows this user's secrets; those of any user of the home are taken out of all that is stored. */
  readonly redactor: (shared: HomeServices) => Redactor
  /** May throw; then nothing is left open. */
  readonly open: (redact: Redact) => HomeParts
  /** Puts right what dead processes left; called for each user, as at each start of a process. May throw; then this user has not joined. */
  readonly recover: (record: RecordWriter) => void
  /** @returns a function that ends the watch */
  readonly watchStop: (onStop: (reason: string) => void) => () => void
}

/** What all users of a home share besides its files. */
export type HomeServices = {
  readonly approvals: PendingApprovals
  readonly profiles: Profiles
  readonly sandboxes: SandboxPool
  readonly turns: TurnQueue
}

export type Home = HomeParts & {
  readonly recorder: OneWriter
  readonly services: HomeServices
  /** Called when the emergency stop is set. @returns a function that ends that */
  onStop(listener: (reason: string) => void): () => void
  /** Once a user; the last one closes the database. */
  release(): void
}

type Shared = HomeParts & {
  readonly recorder: OneWriter
  readonly services: HomeServices
  readonly redactor: HomeRedactor
  readonly listeners: Set<(reason: string) => void>
  readonly unwatch: () => void
  users: number
}

/** The one list of this process, found by two copies of the package too. By the file itself: two paths may lead to one database. */
const homesKey = Symbol.for('braidclaw.homes')
type WithHomes = typeof globalThis & { [homesKey]?: Map<string, Shared> }

/** Throws what `open` and `recover` throw. */
export function openHome(options: HomeOptions): Home {
  const homes = homesOf(globalThis)
  const shared = homes.get(identityOf(options) ?? '') ?? openFirst(options)
  homes.set(identityOf(options) ?? '', shared)
  const home = join(shared, homes, options.redactor(shared.services))
  try {
    options.recover(home.record)
    return home
  } catch (error) {
    home.release()
    throw error
  }
}

function homesOf(holder: WithHomes): Map<string, Shared> {
  holder[homesKey] ??= new Map()
  return holder[homesKey]
}

/** Without opening it: closing any descriptor of the file would drop the locks of this process. */
function identityOf({ database, key }: HomeOptions): string | undefined {
  const found = statSync(database, { throwIfNoEntry: false })
  return found ? `${found.dev}:${found.ino} ${key}` : undefined
}

function openFirst({ open, watchStop }: HomeOptions): Shared {
  const redactor = createHomeRedactor()
  const listeners = new Set<(reason: string) => void>()
  const parts = open(redactor.redact)
  const unwatch = watchStop((reason) => {
    for (const listener of listeners) listener(reason)
  })
  return {
    ...parts,
    recorder: createRecorder(parts.record, parts.memory.lockWait),
    services: servicesOver(parts),
    redactor,
    listeners,
    unwatch,
    users: 0,
  }
}

function servicesOver({ memory }: HomeParts): HomeServices {
  return {
    approvals: createPendingApprovals(answersIn(memory)),
    profiles: createProfiles(createSharedProviders()),
    sandboxes: createSandboxPool(),
    turns: createTurnQueue(),
  }
}

function join(shared: Shared, homes: Map<string, Shared>, redactor: Redactor): Home {
  const { memory, record, recorder, services, listeners } = shared
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
    services.sandboxes.close()
    memory.close()
  }

  return {
    memory,
    record,
    recorder,
    services,
    onStop(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    release,
  }
}
