/**
 * Stores in a file which messages are not answered yet, and the first update that was not taken: Telegram forgets all before it, so
 * a crash neither loses a message nor has one answered twice.
 */

import { closeSync, fsyncSync, mkdirSync, openSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { atEnd, errorText, hasCode } from '../../kit/errors.ts'
import { isObject } from '../../kit/json.ts'
import type { Log } from '../../runtime/port.ts'
import type { TelegramMessage } from './inbound.ts'

/** `isBegun`: its turn had begun, so its effects may have happened. */
export type OpenMessage = { readonly message: TelegramMessage; readonly isBegun: boolean }

export type Ledger = {
  /** Returns the first update that was not taken yet; undefined: no update was ever taken. */
  offset(): number | undefined
  open(): readonly OpenMessage[]
  /** Passes messages to `receive`, and has them on disk, with the new offset, before it returns. Skips messages that are open already. */
  take(offset: number, messages: readonly TelegramMessage[], receive: (message: TelegramMessage) => void): void
  begin(updateId: number): void
  end(updateId: number): void
  /** Returns the number of the conversation in that place; undefined is the first. */
  topic(address: string): number | undefined
  newTopic(address: string): void
  /** Notes that a chat has another id: its conversation stays the same. */
  move(from: string, to: string): void
  /** Returns the first id that the chat had. */
  origin(address: string): string
}

type LedgerState = {
  offset?: number
  readonly open: Map<number, OpenMessage>
  readonly topics: Map<string, number>
  readonly moved: Map<string, string>
}

/** Never throws: it starts empty when the file cannot be read, and logs what cannot be written. */
export function openLedger(path: string, log: Log): Ledger {
  const state = read(path, log)
  const taking = { now: false }

  function save(): void {
    if (taking.now) return
    const { offset, open, topics, moved } = state
    try {
      write(
        path,
        JSON.stringify({ v: 1, offset, open: [...open.values()], topics: Object.fromEntries(topics), moved: Object.fromEntries(moved) }),
      )
    } catch (error) {
      log('error', 'telegram messages not kept', { path, why: errorText(error) })
    }
  }

  return {
    offset: () => state.offset,
    open: () => [...state.open.values()],
    take(offset, messages, receive) {
      taking.now = true
      try {
        for (const message of messages) {
          if (state.open.has(message.updateId)) continue
          state.open.set(message.updateId, { message, isBegun: false })
          receive(message)
        }
      } finally {
        taking.now = false
      }
      state.offset = offset
      save()
    },
    begin(updateId) {
      const found = state.open.get(updateId)
      if (!found) return
      state.open.set(updateId, { ...found, isBegun: true })
      save()
    },
    end(updateId) {
      if (state.open.delete(updateId)) save()
    },
    origin: (address) => state.moved.get(address) ?? address,
    move(from, to) {
      if (state.moved.has(to) || from === to) return
      state.moved.set(to, state.moved.get(from) ?? from)
      save()
    },
    topic: (address) => state.topics.get(address),
    newTopic(address) {
      state.topics.set(address, (state.topics.get(address) ?? 1) + 1)
      save()
    },
  }
}

function read(path: string, log: Log): LedgerState {
  const nothing = (): LedgerState => ({ open: new Map(), topics: new Map(), moved: new Map() })
  try {
    const found: unknown = JSON.parse(readFileSync(path, 'utf8'))
    if (!isObject(found) || found.v !== 1 || !Array.isArray(found.open) || !found.open.every(isOpen))
      throw new Error('it is not what was written')
    const topics = Object.entries(isObject(found.topics) ? found.topics : {})
    const moved = Object.entries(isObject(found.moved) ? found.moved : {})
    return {
      offset: typeof found.offset === 'number' ? found.offset : undefined,
      open: new Map(found.open.map((each) => [each.message.updateId, each])),
      topics: new Map(topics.flatMap(([address, number]): [string, number][] => (typeof number === 'number' ? [[address, number]] : []))),
      moved: new Map(moved.flatMap(([to, from]): [string, string][] => (typeof from === 'string' ? [[to, from]] : []))),
    }
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return nothing()
    log('warn', 'telegram messages of an earlier start are not known', { path, why: errorText(error) })
    return nothing()
  }
}

function isOpen(value: unknown): value is OpenMessage {
  const message = isObject(value) ? value.message : undefined
  return (
    isObject(message) &&
    ['updateId', 'messageId'].every((key) => typeof message[key] === 'number') &&
    ['chat', 'person', 'text'].every((key) => typeof message[key] === 'string') &&
    Array.isArray(message.photos)
  )
}

function write(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  const draft = `${path}.new`
  writeFileSync(draft, text, { mode: 0o600, flush: true })
  renameSync(draft, path)
  const folder = openSync(dirname(path), 'r')
  using _end = atEnd(() => closeSync(folder))
  fsyncSync(folder)
}
