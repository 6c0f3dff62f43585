/** Listing a folder, some levels deep, with an exact count of what is not shown. */

import { join } from 'node:path'
import type { Entry, Listing, Refusal } from './contract.ts'
import { explain, flags, type Handle, hold, realPath, slot } from './descriptor.ts'
import { type Locator, quote } from './locate-path.ts'
import { children, sizeOf } from './open-folder.ts'
import { kindOf } from './regular.ts'

/** Beyond this many entries counting stops, and the total is a lower bound. */
const MAX_SEEN = 100_000

const MAX_DEPTH = 16

type Options = { readonly depth?: number; readonly maxEntries: number }

export function list(locator: Locator, given: string, { depth = 1, maxEntries }: Options): Listing | Refusal {
  const found = locator.locate(given, 'read')
  if (!found.ok) return found
  using held = found.held
  if (!found.stat.isDirectory()) return { ok: false, message: `${quote(given)} is ${kindOf(found.stat)}, not a folder` }
  const seen = { entries: [], total: 0, complete: true }
  try {
    visit({ locator, seen, maxEntries }, { folder: held, above: '', depth: Math.min(depth, MAX_DEPTH) })
  } catch (error) {
    return { ok: false, message: `cannot list ${quote(given)}: ${explain(error)}` }
  }
  return { ok: true, path: locator.show(found.real), ...seen }
}

type Seen = { entries: Entry[]; total: number; complete: boolean }
type Survey = { readonly locator: Locator; readonly seen: Seen; readonly maxEntries: number }
type Spot = { readonly folder: Handle; readonly above: string; readonly depth: number }

function visit(survey: Survey, { folder, above, depth }: Spot): void {
  const { seen, maxEntries } = survey
  for (const { name, type } of children(folder)) {
    if (seen.total >= MAX_SEEN) {
      seen.complete = false
      return
    }
    const path = join(above, name)
    if (seen.total++ < maxEntries) seen.entries.push({ path, type, size: type === 'file' ? sizeOf(folder, name) : undefined })
    if (type === 'directory' && depth > 1) enter(survey, { folder, above: path, depth: depth - 1 }, name)
  }
}

/** A folder that may not be entered stays in the list, without its contents. */
function enter(survey: Survey, { folder, above, depth }: Spot, name: string): void {
  try {
    using child = hold(slot(folder, name), flags.childFolder)
    const real = realPath(child)
    if (real !== undefined && survey.locator.check(real, 'read').ok) visit(survey, { folder: child, above, depth })
    else survey.seen.complete = false
  } catch {
    survey.seen.complete = false
  }
}
