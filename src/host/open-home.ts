/** A home is opened once a process: all conversations share its database connection, its one writer and its watch on the emergency stop. */

import { statSync } from 'node:fs'
import type { Memory } from '../memory/db.ts'
import type { RecordWriter } from '../memory/record-writer.ts'
import { createRecorder } from '../memory/recorder.ts'
import type { Recorder, Redact } from '../runtime/port.ts'

/** What a first user opens for all. */
export type HomeParts = { readonly memory: Memory; readonly record: RecordWriter }

export type HomeOptions = {
  /** Where the database is or will be. */
  readonly database: string
  /** What must be equal besides for a home to be the same: where its receipts and its emergency stop are. */
  readonly key: string
  /** Takes this user's secrets out; what any user of the home registered is taken out of all that is stored. */
  readonly redact: Redact
  /** May throw; then nothing is left open. */
  readonly open: (redact: Redact) => HomeParts
  /** @returns a function that ends the watch */
  readonly watchStop: (onStop: (reason: string) => void) => () => void
}

export type Home = HomeParts & {
  readonly recorder: Recorder
  /** Called when the emergency stop is set. @returns a function that ends that */
  onStop(listener: (reason: string) => void): () => void
  /** Once a user; the last one closes the database. */
  release(): void
}

type Shared = HomeParts & {
  readonly recorder: Recorder
  readonly redactors: Set<Redact>
  readonly listeners: Set<(reason: string) => void>
  readonly unwatch: () => void
  users: number
}

/** The one list of this process, found by two copies of the package too. By the file itself: two paths may lead to one database. */
const homesKey = Symbol.for('braidclaw.homes')
type WithHomes = typeof globalThis & { [homesKey]?: Map<string, Shared> }

/** Recovers what dead processes left at each call, as each start of a process does. Throws what `open` and recovery throw. */
export function openHome(options: HomeOptions): Home {
  const homes = homesOf(globalThis)
  const known = homes.get(identityOf(options) ?? '')
  if (known) {
    known.redactors.add(options.redact)
    known.record.recover()
    return join(known, homes)
  }
  const opened = openFirst(options)
  homes.set(identityOf(options) ?? '', opened)
  return join(opened, homes)
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

function openFirst({ open, redact, watchStop }: HomeOptions): Shared {
  const redactors = new Set([redact])
  const listeners = new Set<(reason: string) => void>()
  const parts = open((value) => [...redactors].reduce((clean, each) => each(clean), value))
  const unwatch = watchStop((reason) => {
    for (const listener of listeners) listener(reason)
  })
  return { ...parts, recorder: createRecorder(parts.record), redactors, listeners, unwatch, users: 0 }
}

function join(shared: Shared, homes: Map<string, Shared>): Home {
  const { memory, record, recorder, listeners } = shared
  const mine = { open: true }
  shared.users += 1

  function release(): void {
    if (!mine.open) return
    mine.open = false
    shared.users -= 1
    if (shared.users > 0) return
    for (const [identity, each] of homes) if (each === shared) homes.delete(identity)
    shared.unwatch()
    memory.close()
  }

  return {
    memory,
    record,
    recorder,
    onStop(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    release,
  }
}
