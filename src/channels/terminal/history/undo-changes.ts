/** Undoes a change set, or some of its paths, and asks before it overwrites what somebody else changed since. */

import { nameOf } from '../../../host/changes/kept-changes.ts'
import { count } from '../../../kit/text.ts'
import type { Applied, SetSummary } from '../../../workspace/changes/contract.ts'
import type { AskPerson } from '../questions/approval-prompt.ts'
import { conflictLines, whatOf } from './kept-text.ts'

export type Undoing = {
  readonly set: SetSummary
  /** `force`: overwrite what was changed since. */
  readonly apply: (force: boolean) => Promise<Applied>
  /** What was done, such as "undone". */
  readonly done: string
  /** Absent when nobody can be asked. */
  readonly ask?: AskPerson | undefined
  readonly force?: boolean | undefined
}

/** `line` says what was done; `message` why nothing was done, with each conflict on a line. */
export type Undone =
  | { readonly ok: true; readonly line: string; readonly count: number }
  | { readonly ok: false; readonly message: string; readonly conflicts: readonly { readonly path: string; readonly reason: string }[] }

export async function undoChanges({ set, apply, done, ask, force = false }: Undoing): Promise<Undone> {
  const first = await apply(force)
  if (first.ok) return succeeded(first.count, set, done)
  if (first.conflicts.length === 0 || force) return { ok: false, message: first.message, conflicts: first.conflicts }
  const conflicts = `${count(first.conflicts.length, 'path')} of ${nameOf(set)} changed since:\n${conflictLines(first.conflicts)}`
  const answer = await ask?.(`${conflicts}Overwrite what was changed since? [y/N] `)
  if (/^\s*y(es)?\s*$/i.test(answer ?? '')) {
    const second = await apply(true)
    return second.ok ? succeeded(second.count, set, done) : { ok: false, message: second.message, conflicts: second.conflicts }
  }
  const told = ask ? '' : conflicts
  return { ok: false, message: `${told}nothing was changed; --force overwrites what was changed since`, conflicts: first.conflicts }
}

function succeeded(changed: number, set: SetSummary, done: string): Undone {
  return { ok: true, count: changed, line: `${done}: ${count(changed, 'path')} of ${nameOf(set)} (${whatOf(set)})` }
}
