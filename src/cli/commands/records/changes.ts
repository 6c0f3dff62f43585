/** Implements `changes list | show | apply | drop | restore | redo`, and `undo`: what commands and file tools changed, and the way back. */

import { terminalPrompt } from '../../../channels/terminal/audience.ts'
import type { CliContext, CliSetup } from '../../../channels/terminal/context.ts'
import { coloured, wantsColor } from '../../../channels/terminal/printer.ts'
import { differenceLines, headingOf, keptLines, type Undoing, undoChanges, whatOf } from '../../../channels/terminal/slash/past-changes.ts'
import { isTerminal } from '../../../channels/terminal/tty.ts'
import type { ChangeDecision } from '../../../host/api.ts'
import { changeSetOf, findKept, latestToUndo, nameOf, reversed } from '../../../host/changes/kept-changes.ts'
import { patchText } from '../../../host/changes/patch-text.ts'
import { withMemory, withRecords } from '../../../host/open/open-records.ts'
import { openKeptChanges, withReceipt } from '../../../host/records/integrity/open-kept-changes.ts'
import { loadSetup } from '../../../host/setup/setup.ts'
import { realFolder } from '../../../host/setup/workspace-folder.ts'
import { count } from '../../../kit/text.ts'
import type { ChangeSet } from '../../../runtime/changes.ts'
import type { SetSummary, ShownSet } from '../../../workspace/changes/contract.ts'
import type { ChangeStore } from '../../../workspace/changes/store.ts'
import { type Arguments, command, type Flags } from '../../args/command.ts'
import { jsonFlag, limitOf20, workspaceFlag } from '../../args/turn-flags.ts'
import { CliExit, commandError, exitCodes } from '../../exit.ts'
import { printList, printOne } from '../../print-list.ts'
import { decide } from './approvals.ts'

const changeFlags = { force: { type: 'boolean', about: 'Overwrite what was changed since' }, ...jsonFlag } as const satisfies Flags
const about = 'RUN/CALL, its number in "changes list", or "last"'
const wantedSet = { set: { type: 'text', about, complete: 'changes' } } as const satisfies Arguments
const wantedOrLast = {
  set: { type: 'text', optional: true, about: `${about} (default: last)`, complete: 'changes' },
} as const satisfies Arguments

export const list = command({
  flags: { ...limitOf20, ...jsonFlag },
  examples: [['', 'the latest twenty: number, RUN/CALL, state, when, what']],
  async run(context, { limit, json = false }) {
    const { sets, workspace } = await opened(context)
    const shown = sets.slice(0, limit)
    printList(context, { items: shown, json, lines: keptLines(shown, workspace), none: 'no change sets are kept' })
  },
})

export const show = command({
  flags: { patch: { type: 'boolean', about: 'Print a patch for git apply or patch -p1, also at a terminal' }, ...jsonFlag },
  args: wantedOrLast,
  examples: [
    ['', 'what was changed last'],
    ['run_4q2fqk8fd4spk980/call_1 --patch | git apply -R', 'into a pipe it is a patch'],
  ],
  async run(context, { patch = !isTerminal(1), json = false }, { set: wanted = 'last' }) {
    const { store, sets } = await opened(context)
    const shown = mustShow(store.show(findKept(sets, wanted).id))
    const set = changeSetOf(shown)
    const { read: _read, upper: _upper, ...facts } = shown
    if (json) return void context.process.stdout.write(`${JSON.stringify({ ...facts, name: nameOf(shown), patch: patchText(set) })}\n`)
    if (patch) return context.process.stdout.data(patchText(set))
    context.process.stdout.write(`${headingOf(shown)}\n`)
    if (shown.undone.length > 0) context.process.stdout.write(`undone since: ${shown.undone.length} of ${shown.count} paths\n`)
    printDifference(context, set)
  },
})

export const undo = command({
  flags: { dryRun: { type: 'boolean', about: 'Show what would be changed back, and change nothing' }, ...changeFlags, ...workspaceFlag },
  args: wantedOrLast,
  examples: [
    ['', 'takes the latest changes in this folder back'],
    ['--dry-run', 'shows what that would change'],
    ['run_4q2fqk8fd4spk980/call_1', 'takes that one back, whatever came later in other files'],
  ],
  async run(context, { dryRun = false, workspace: given, ...how }, { set: wanted = 'last' }) {
    const { setup, store, sets, workspace } = await opened(context, given)
    const set = wanted === 'last' ? latestToUndo(sets, workspace) : findKept(sets, wanted)
    if (!dryRun) return takeBack(context, 'undo', { setup, store, set, ...how })
    const shown = mustShow(store.show(set.id))
    const back = reversed(changeSetOf(shown), shown.undone)
    const value = { name: nameOf(set), changes: back.changes, patch: patchText(back) }
    if (how.json) return void context.process.stdout.write(`${JSON.stringify(value)}\n`)
    context.process.stderr.write(`would be undone: ${nameOf(set)} (${whatOf(set)})\n`)
    printDifference(context, back)
  },
})

export const restore = command({
  flags: changeFlags,
  args: { ...wantedSet, path: { type: 'text', many: true, about: 'A file or folder, from the workspace' } },
  examples: [['last src/a.ts docs', 'that file, and everything changed in that folder']],
  async run(context, how, { set: wanted, path: paths }) {
    const { setup, store, sets } = await opened(context)
    const plain = paths.map((path) => path.replace(/^(\.\/)+/, '').replace(/\/+$/, ''))
    await takeBack(context, 'restore', { setup, store, set: findKept(sets, wanted), paths: plain, ...how })
  },
})

export const redo = command({
  flags: changeFlags,
  args: wantedOrLast,
  examples: [['last', 'applies again what was undone']],
  async run(context, how, { set: wanted = 'last' }) {
    const { setup, store, sets } = await opened(context)
    await takeBack(context, 'redo', { setup, store, set: findKept(sets, wanted), ...how })
  },
})

export const apply = command({
  flags: { yes: { type: 'boolean', short: 'y', about: 'Apply without asking' }, ...jsonFlag },
  args: wantedSet,
  examples: [['last', 'shows the difference and asks']],
  exits: [9],
  async run(context, { yes = false, json = false }, { set: wanted }) {
    const pending = await openedPending(context, wanted)
    const { setup, store, set, approval } = pending
    if (approval) return decide(context, { id: approval, allowed: true, json })
    if (!yes && !(await confirmed(context, store, set)))
      throw new CliExit(exitCodes.approval_needed, 'error: nothing was applied; --yes applies it without asking')
    const applied = await recorded(setup, { tool: 'changes.apply', set }, () => store.apply({ id: set.id }))
    if (!applied.ok) throw commandError(`${applied.message}`)
    const text = `applied: ${count(applied.count, 'path')} of ${nameOf(set)} (${whatOf(set)})\n`
    printOne(context, { json, value: { name: nameOf(set), ...applied }, text })
  },
})

export const drop = command({
  flags: jsonFlag,
  args: wantedSet,
  examples: [['2', 'the second of "changes list"']],
  exits: [9],
  async run(context, { json = false }, { set: wanted }) {
    const { setup, store, set, approval } = await openedPending(context, wanted)
    if (approval) return decide(context, { id: approval, allowed: false, json })
    await recorded(setup, { tool: 'changes.drop', set }, () => store.drop(set.id).then(() => ({ ok: true })))
    printOne(context, { json, value: { name: nameOf(set), dropped: true }, text: `dropped: ${nameOf(set)} (${whatOf(set)})\n` })
  },
})

/** `approval`: the question that the run asked about it, which must be answered in its place. */
async function openedPending(context: CliContext, wanted: string) {
  const { setup, store, sets } = await opened(context)
  // A run may have one set that waits beside those of its calls.
  const waiting = sets.filter(({ state, about }) => state === 'pending' && about.run === wanted)
  const set = findKept(waiting.length === 1 ? waiting : sets, wanted)
  if (set.state !== 'pending') throw commandError(`${nameOf(set)} waits for no decision: it is ${set.state}`)
  const id = await withMemory(setup, ({ approvals }) => approvals.get(`changes:${nameOf(set)}`)?.id)
  return { setup, store, set, approval: id }
}

async function confirmed(context: CliContext, store: ChangeStore, set: SetSummary): Promise<boolean> {
  const ask = terminalPrompt(context)
  if (!ask) return false
  const lines = coloured(differenceLines(changeSetOf(mustShow(store.show(set.id)))), wantsColor(context.env))
  return /^\s*y(es)?\s*$/i.test((await ask([`${headingOf(set)}\n`, ...lines, 'Apply these changes? [y/N] '])) ?? '')
}

function recorded<Done extends { readonly ok: boolean }>(setup: CliSetup, what: ChangeDecision, act: () => Promise<Done>): Promise<Done> {
  return withRecords(setup, ({ record }) => withReceipt(record, what, act))
}

async function opened(context: CliContext, workspace?: string) {
  const setup = loadSetup(context, { workspace })
  const store = await openKeptChanges(setup, (use) => withMemory(setup, use))
  return { setup, store, sets: store.list(), workspace: realFolder(setup.config.workspaceDir) }
}

function mustShow(shown: ShownSet | undefined): ShownSet {
  if (shown) return shown
  throw commandError('the change set was forgotten meanwhile; see: braidclaw changes list')
}

function printDifference({ process: { stdout, env } }: CliContext, set: ChangeSet): void {
  stdout.write(coloured(differenceLines(set), isTerminal(1) && wantsColor(env)))
}

const done = { undo: 'undone', restore: 'restored', redo: 'done again' } as const

type TakingBack = Pick<Undoing, 'set' | 'force'> & {
  readonly setup: CliSetup
  readonly store: ChangeStore
  /** Those to restore. */
  readonly paths?: readonly string[]
  readonly json?: boolean | undefined
}

async function takeBack(context: CliContext, how: keyof typeof done, { setup, store, json, set, paths, force }: TakingBack): Promise<void> {
  const ask = json ? undefined : terminalPrompt(context)
  const apply = (all: boolean) =>
    how === 'restore' ? store.restore(set.id, paths ?? [], { force: all }) : store[how](set.id, { force: all })
  const act = () => undoChanges({ set, apply, done: done[how], ask, force })
  const undone = await recorded(setup, { tool: `changes.${how}`, set, paths }, act)
  const name = nameOf(set)
  if (json) context.process.stdout.write(`${JSON.stringify({ name, ...undone })}\n`)
  if (!undone.ok) throw new CliExit(exitCodes.error, json ? '' : `error: ${undone.message}`)
  if (!json) context.process.stdout.write(`${undone.line}\n`)
}
