/** A program: threads that fit together, in the order in which they are asked, with initial states of plain JSON. */

import type { Json } from '../kit/json.ts'
import { EXTERNAL } from './select.ts'
import type { AnyThread, KernelEvent } from './thread.ts'

/** States by thread name: what is stored, restored and shown. */
export type States = { readonly [thread: string]: Json }

/**
 * The threads by priority, and among equals by their place in the list.
 * @throws TypeError on a name that is empty, taken or `external`, and on a priority that is no finite number.
 */
export function arrange<E extends KernelEvent>(threads: readonly AnyThread<E>[]): readonly AnyThread<E>[] {
  const names = new Set<string>()
  for (const thread of threads) {
    checkName(thread.name, names)
    if (!Number.isFinite(thread.priority)) throw new TypeError(`thread "${thread.name}": priority ${thread.priority} is no finite number`)
  }
  return threads.toSorted((a, b) => a.priority - b.priority)
}

/** A private copy of each thread's `init`: one definition serves many engines. @throws TypeError where it is not plain JSON. */
export function initialStates<E extends KernelEvent>(threads: readonly AnyThread<E>[]): Json[] {
  return threads.map((thread) => plain(thread.init, stateOf(thread)))
}

export function named<E extends KernelEvent>(threads: readonly AnyThread<E>[], states: readonly Json[]): States {
  return Object.fromEntries(threads.map((thread, place) => [thread.name, states[place] ?? null]))
}

/** The reverse of `named`, for what comes back from disk. @throws TypeError unless it has exactly these threads, each in plain JSON. */
export function unnamed<E extends KernelEvent>(threads: readonly AnyThread<E>[], states: States): Json[] {
  const known = new Set(threads.map((thread) => thread.name))
  const extra = Object.keys(states).filter((name) => !known.has(name))
  const missing = [...known].filter((name) => !Object.hasOwn(states, name))
  if (extra.length + missing.length > 0) {
    const parts = [...extra.map((name) => `no thread is called "${name}"`), ...missing.map((name) => `no state for thread "${name}"`)]
    throw new TypeError(`cannot restore: ${parts.join(', ')}; the snapshot is of another program`)
  }
  return threads.map((thread) => plain(states[thread.name], stateOf(thread)))
}

/** How a thread's state is called in messages. */
export function stateOf(thread: { readonly name: string }): string {
  return `thread "${thread.name}": state`
}

/** A copy that shares nothing with the value. Members that are `undefined` are left out, as JSON does. @throws TypeError naming the place. */
export function plain(value: unknown, where: string): Json {
  return copy(value, { where, trail: [], above: [] })
}

/** @throws RangeError unless the bound is 1 or more; Infinity is one. */
export function checkLimit(name: string, limit: number): number {
  if (!(limit >= 1)) throw new RangeError(`${name}: ${limit} is no bound; give a number from 1 up, or leave it out`)
  return limit
}

/** `trail` leads from the value to the member that is being copied, `above` are the objects on the way. */
type Path = { readonly where: string; readonly trail: (string | number)[]; readonly above: object[] }

function copy(value: unknown, path: Path): Json {
  if (value === null || typeof value === 'boolean' || typeof value === 'string') return value
  if (typeof value === 'number' && Number.isFinite(value)) return value
  if (typeof value !== 'object') return refuse(`${typeof value === 'number' ? value : typeof value}`, path)
  if (path.above.includes(value)) return refuse('a cycle', path)
  path.above.push(value)
  const copied = Array.isArray(value) ? list(value, path) : record(value, path)
  path.above.pop()
  return copied
}

function list(value: readonly unknown[], path: Path): Json {
  const copied: Json[] = []
  for (let at = 0; at < value.length; at++) copied.push(member(at, value[at], path))
  return copied
}

function record(value: object, path: Path): Json {
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype !== Object.prototype && prototype !== null) return refuse(`a ${value.constructor?.name ?? 'class instance'}`, path)
  const members: [string, Json][] = []
  for (const [key, each] of Object.entries(value)) if (each !== undefined) members.push([key, member(key, each, path)])
  return Object.fromEntries(members)
}

function member(key: string | number, value: unknown, path: Path): Json {
  path.trail.push(key)
  const copied = copy(value, path)
  path.trail.pop()
  return copied
}

function refuse(what: string, { where, trail }: Path): never {
  const place = where + trail.map((key) => (typeof key === 'number' ? `[${key}]` : `.${key}`)).join('')
  throw new TypeError(`${place} is ${what}; keep null, booleans, finite numbers, strings, arrays and plain objects only`)
}

function checkName(name: string, taken: Set<string>): void {
  if (name === '') throw new TypeError('a thread has an empty name; logs and rejections could not say who it was')
  if (name === EXTERNAL) throw new TypeError(`a thread is called "${EXTERNAL}", the word for the world outside; rename it`)
  if (taken.has(name)) throw new TypeError(`two threads are called "${name}"; names tell threads apart in snapshots, rename one`)
  taken.add(name)
}
