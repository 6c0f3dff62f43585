/** Lists, shows and undoes change sets for a person at a terminal. */

import { type ShownLine, setLines, unfolded } from '../../../host/changes/change-lines.ts'
import { changeSetOf, findKept, latestToUndo, nameOf } from '../../../host/changes/kept-changes.ts'
import { count, cut, visible } from '../../../kit/text.ts'
import type { ChangeSet } from '../../../runtime/changes.ts'
import type { Applied, Conflict, SetSummary } from '../../../workspace/changes/contract.ts'
import { type AskPerson, readAnswer } from '../approval-prompt.ts'
import { coloured, type Printed, wantsColor } from '../printer.ts'
import type { Slash } from './contract.ts'

/** Formats lines such as `   1  run_x/call_1  applied  3 changes  2026-11-23 04:20  shell: make`. */
export function keptLines(sets: readonly SetSummary[], workspace: string): readonly string[] {
  const widest = Math.max(0, ...sets.map((set) => nameOf(set).length))
  return sets.map((set, at) => {
    const where = set.workspace === workspace ? '' : `  (in ${visible(set.workspace)})`
    const what = `${String(at + 1).padStart(4)}  ${nameOf(set).padEnd(widest)}  ${set.state.padEnd(13)}  ${count(set.count, 'change').padEnd(12)}`
    return `${what}  ${whenOf(set)}  ${whatOf(set)}${where}`
  })
}

/** Returns the tool, and the command that it ran. */
export function whatOf({ about: { tool, command } }: Pick<SetSummary, 'about'>): string {
  return command === undefined ? visible(tool) : `${visible(tool)}: ${cut(visible(command), 80)}`
}

function whenOf({ about: { at } }: Pick<SetSummary, 'about'>): string {
  return new Date(at).toISOString().slice(0, 16).replace('T', ' ')
}

export function headingOf(set: SetSummary): string {
  const reason = set.review && set.state === 'pending' ? `\n${visible(set.review.reason)}` : ''
  return `${nameOf(set)} · ${set.state} · ${whenOf(set)} · ${whatOf(set)} · ${visible(set.workspace)}${reason}`
}

export function differenceLines(set: ChangeSet, fold = unfolded): readonly ShownLine[] {
  return setLines(set, fold)
}

/** Formats lines such as `  a.txt was changed by someone else`. */
export function conflictLines(conflicts: readonly Conflict[]): string {
  const shown = conflicts.slice(0, 20).map(({ path, reason }) => `  ${visible(path)} ${visible(reason)}\n`)
  const more = conflicts.length - shown.length
  return `${shown.join('')}${more > 0 ? `  … and ${count(more, 'path')} more\n` : ''}`
}

export type Undoing = {
  readonly set: SetSummary
  /** `force`: overwrite what was changed since. */
  readonly apply: (force: boolean) => Promise<Applied>
  /** Names what happened, such as "undone". */
  readonly done: string
  /** Absent when nobody can be asked. */
  readonly ask?: AskPerson | undefined
  readonly force?: boolean | undefined
}

/** `line` says what was done; `message` why nothing was done, with each conflict on a line. */
export type Undone =
  | { readonly ok: true; readonly line: string; readonly count: number }
  | { readonly ok: false; readonly message: string; readonly conflicts: readonly { readonly path: string; readonly reason: string }[] }

/** Undoes a change set, or some of its paths, and asks before it overwrites what somebody else changed since. */
export async function undoChanges({ set, apply, done, ask, force = false }: Undoing): Promise<Undone> {
  const first = await apply(force)
  if (first.ok) return succeeded(first.count, set, done)
  if (first.conflicts.length === 0 || force) return { ok: false, message: first.message, conflicts: first.conflicts }
  const conflicts = `${count(first.conflicts.length, 'path')} of ${nameOf(set)} changed since:\n${conflictLines(first.conflicts)}`
  if (readAnswer(await ask?.(`${conflicts}Overwrite what was changed since? [y/N] `)).kind === 'yes') {
    const second = await apply(true)
    return second.ok ? succeeded(second.count, set, done) : { ok: false, message: second.message, conflicts: second.conflicts }
  }
  const listed = ask ? '' : conflicts
  return { ok: false, message: `${listed}nothing was changed; --force overwrites what was changed since`, conflicts: first.conflicts }
}

function succeeded(changed: number, set: SetSummary, done: string): Undone {
  return { ok: true, count: changed, line: `${done}: ${count(changed, 'path')} of ${nameOf(set)} (${whatOf(set)})` }
}

/** Answers /changes, /diff and /undo in a conversation. @throws FailureError when there is no such change set */
export const pastChanges = { list, diff, undo }

async function list({ host, conversation }: Slash): Promise<string> {
  const lines = keptLines((await host.changes()).store.list().slice(0, 20), conversation.workspace)
  return lines.length === 0 ? 'no change sets are kept\n' : `${lines.join('\n')}\n`
}

async function undo({ host, ask, conversation: { workspace } }: Slash, which: string): Promise<string> {
  const { store, withReceipt } = await host.changes()
  const set = which === '' ? latestToUndo(store.list(), workspace) : findKept(store.list(), which)
  const undone = await withReceipt({ tool: 'changes.undo', set }, () =>
    undoChanges({ set, ask, done: 'undone', apply: (force) => store.undo(set.id, { force }) }),
  )
  return `${undone.ok ? undone.line : undone.message}\n`
}

async function diff({ host, setup }: Slash, which: string): Promise<Printed> {
  const { store } = await host.changes()
  const set = findKept(store.list(), which || 'last')
  const shown = store.show(set.id)
  if (!shown) return 'the change set was forgotten meanwhile\n'
  return [`${headingOf(set)}\n`, ...coloured(differenceLines(changeSetOf(shown)), wantsColor(setup.context.env))]
}
