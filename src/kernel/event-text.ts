/** Short names for plain JSON values, so that the checker can tell states apart without spelling them again and again. */

import { canonical } from '../kit/json.ts'
import { plain } from './check-program.ts'

/** Gives equal JSON values the same number. An object seen before costs one look-up; it must not change afterwards. */
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
 * Makes sure that a value is plain JSON and freezes it; one that is frozen has been here before, and so have the parts that it shares.
 * @throws TypeError naming the place: what canonical JSON does not tell apart, a checker would take for one state.
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
