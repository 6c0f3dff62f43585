/** Knows the entries that a plan moved and put back: their times changed, but nobody else touched them. */

import { lstatSync } from 'node:fs'
import { join } from 'node:path'
import { type Found, isSame } from '../tree/identity.ts'
import { type RawName, rawName } from '../tree/names.ts'
import { readPlan } from './plan.ts'

/** The name of a plan that was taken back. */
export const TRIED = 'tried'

/** @returns whether an entry is as the plan found it, and changed last when the plan was taken back @throws when the plan is damaged */
export function triedIn(folder: string): (raw: RawName, now: Found) => boolean {
  const path = join(folder, TRIED)
  const mark = lstatSync(path, { bigint: true, throwIfNoEntry: false })
  if (mark === undefined) return () => false
  const bases = new Map(readPlan(path).items.map((item) => [rawName(item), item.base]))
  return (raw, now) => {
    const base = bases.get(raw)
    return base !== undefined && isSame(base, now, { copied: true }) && base.mode === now.mode && BigInt(now.changed) <= mark.ctimeNs
  }
}
