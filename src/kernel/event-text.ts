/** Assigns short keys to plain JSON values, so that the checker compares states without serializing them each time. */

import { canonical } from '../kit/json.ts'
import { plain } from './check-program.ts'

/** Gives equal JSON values the same number. A known object costs one lookup, so callers must not mutate it afterwards. */
export function createNumbering(): (value: unknown) => number {
  const byText = new Map<string, number>()
  const byObject = new WeakMap<object, number>()

  function spell(value: unknown): number {
    const text = canonical(value)
    const known = byText.get(text)
    if (known !== undefined) return known
    byText.set(text, byText.size)
    return byText.size - 1
  }

  return (value) => {
    if (typeof value !== 'object' || value === null) return spell(value)
    const known = byObject.get(value)
    if (known !== undefined) return known
    const fresh = spell(value)
    byObject.set(value, fresh)
    return fresh
  }
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
