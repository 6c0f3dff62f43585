/** Checks that threads form a valid program, sorts them by priority, and copies their initial states as plain JSON. */

import type { Json } from '../kit/json.ts'
import { EXTERNAL } from './select.ts'
import type { AnyThread, KernelEvent } from './thread.ts'

/** States by thread name. This form is stored, restored and displayed. */
export type States = { readonly [thread: string]: Json }

/**
 * Sorts the threads by priority; threads of equal priority keep their order in the list.
 * @throws TypeError if a name is empty, duplicated or `external`, or if a priority is not a finite number.
 */
export function arrange<E extends KernelEvent>(threads: readonly AnyThread<E>[]): readonly AnyThread<E>[] {
  const names = new Set<string>()
  for (const thread of threads) {
    checkName(thread.name, names)
    if (!Number.isFinite(thread.priority))
      throw new TypeError(`thread "${thread.name}": priority ${thread.priority} is not a finite number; give a finite one`)
  }
  return threads.toSorted((a, b) => a.priority - b.priority)
}

/** Copies each thread's `init`, so that one definition can serve many engines. @throws TypeError if one is not plain JSON. */
export function initialStates<E extends KernelEvent>(threads: readonly AnyThread<E>[]): Json[] {
  return threads.map((thread) => plain(thread.init, stateOf(thread)))
}

export function named<E extends KernelEvent>(threads: readonly AnyThread<E>[], states: readonly Json[]): States {
  return Object.fromEntries(threads.map((thread, place) => [thread.name, states[place] ?? null]))
}

/**
 * Converts stored states back to a list; the reverse of `named`.
 * @throws TypeError unless `states` has exactly these threads, each with plain JSON.
 */
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

/** Names a thread's state in messages. */
export function stateOf(thread: { readonly name: string }): string {
  return `thread "${thread.name}": state`
}

/**
 * Deep-copies a value. It omits members that are `undefined`, as JSON does. @throws TypeError naming the path of the value that is not
 * JSON.
 */
export function plain(value: unknown, where: string): Json {
  return copy(value, { where, trail: [], above: [] })
}

/** @throws RangeError unless the limit is 1 or more; Infinity is allowed. */
export function checkLimit(name: string, limit: number): number {
  if (!(limit >= 1)) throw new RangeError(`${name}: ${limit} is not a limit; give a number from 1 up, or omit it`)
  return limit
}

/** `trail` is the path from the root value to the member that is being copied; `above` holds the objects on that path. */
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

function checkName(name: string, names: Set<string>): void {
  if (name === '') throw new TypeError('a thread has an empty name; logs and rejections could not say who it was')
  if (name === EXTERNAL) throw new TypeError(`a thread is called "${EXTERNAL}", the word for the world outside; rename it`)
  if (names.has(name)) throw new TypeError(`two threads are called "${name}"; names tell threads apart in snapshots, rename one`)
  names.add(name)
}

/**
 * Checks that a value is plain JSON and freezes it. It skips a value that is already frozen, because that value and its parts were checked.
 * @throws TypeError naming the path: the checker would treat values with equal canonical JSON as one state.
 */
export function settled<T>(value: T, where: string): T {
  if (!Object.isFrozen(value) || typeof value !== 'object') plain(value, where)
  return deepFreeze(value)
}

function deepFreeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value
  Object.freeze(value)
  for (const member of Object.values(value)) deepFreeze(member)
  return value
}
