/**
 * Brings the result of a wiggum run into the user's folder: one change set from beginning to end, or one commit on a branch, judged like every
 * other. It is applied only when all checks passed on exactly this tree.
 */

import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { count, quote, visible } from '../../../kit/text.ts'
import type { Change, ChangeReview, ChangeSet } from '../../../runtime/changes.ts'
import type { Ending, Usage } from '../../../runtime/event.ts'
import { externalOf, type ReplayEntry } from '../../../runtime/replay/external-entry.ts'
import { createLook } from '../../../workspace/changes/look.ts'
import type { Host, Setup } from '../../api.ts'
import { type KeptCopy, keepCopy, type Manifest, takeChanges } from '../../changes/workspace-copy.ts'
import { withMemory } from '../../open/open-records.ts'
import { policyOf } from '../../setup/effective-policy.ts'
import { changeJudge } from '../../transactions/reviewed-views.ts'
import { commitChanges } from './branch-commit.ts'
import { foldersOf, type WiggumRecord } from './run-copy.ts'

/** How a run ended for the person. `set`: the change set of its result, by the name that `changes` takes. */
export type WiggumEnd = {
  readonly ending: Ending
  readonly notes: readonly string[]
  readonly set?: { readonly name: string; readonly summary: string; readonly state: 'applied' | 'pending' }
  readonly iterations?: number
  readonly usage?: Usage | undefined
}

export type Applying = {
  readonly host: Pick<Host, 'changes'>
  readonly setup: Setup
  readonly record: WiggumRecord
  readonly before: Manifest
  readonly digest: () => Promise<string>
  /** Asks a person about changes that need a yes; absent: they wait. */
  readonly confirm?: ((set: ChangeSet, review: ChangeReview) => Promise<boolean>) | undefined
}

/** The call that the change set of a result names: RUN/result. */
const call = 'result'
const nameOf = (runId: string) => `${runId}/${call}`
const idOf = (runId: string) => `wiggum-${runId}`
const runOf = ({ runs }: WiggumRecord) => runs.at(-1) ?? ''

/** Applies the result of a run whose checks passed. A second call after a crash finishes what the first one began. */
export async function applyResult(applying: Applying): Promise<WiggumEnd> {
  const { host, setup, record, digest } = applying
  const runId = runOf(record)
  const { store } = await host.changes()
  await store.recover()
  const earlier = store.list().find(({ id }) => id === idOf(runId))
  if (earlier && earlier.state !== 'pending') return applied(record, nameOf(runId), earlier.review?.summary ?? '')
  const entries = await withMemory(setup, ({ journal }) => journal.events(runId))
  const tree = passedTree(entries, record.checks.length)
  if (tree === undefined || tree !== (await digest()))
    return failed('checks_failed', 'the files are not those on which the checks passed; nothing was applied')
  const made = await hold(applying)
  if (tree !== (await digest())) return failed('checks_failed', 'the files changed while the result was taken; nothing was applied')
  if (made === undefined) return { ending: answered, notes: ['the checks pass, and no file differs from the beginning'] }
  return await enter(applying, made)
}

const answered: Ending = { stop: 'end_turn', code: 'answered', message: '' }

function failed(code: Ending['code'], message: string, notes: readonly string[] = []): WiggumEnd {
  return { ending: { stop: 'error', code, message }, notes }
}

function applied({ branch }: WiggumRecord, name: string, summary: string): WiggumEnd {
  const where = branch === undefined ? '' : ` as a commit on the branch ${branch}; your checkout is untouched`
  return { ending: answered, notes: [`applied${where}: ${summary}`], set: { name, summary, state: 'applied' } }
}

/** Returns the tree on which all checks passed one after the other, after the model's last reply; undefined when they did not. */
export function passedTree(entries: readonly ReplayEntry[], checks: number): string | undefined {
  const events = entries.flatMap((entry) => externalOf(entry) ?? [])
  const last = events.slice(events.findLastIndex(({ type }) => type !== 'check.done' && type !== 'clock') + 1)
  const done = last.flatMap((event) => (event.type === 'check.done' ? [event] : []))
  const [tree, ...others] = new Set(done.map((each) => each.tree))
  const isWhole = done.length === checks && checks > 0 && done.every(({ pass }) => pass)
  return isWhole && others.length === 0 ? tree : undefined
}

/** Keeps what the run changed so far as a set that waits; a person may apply it by hand. */
export async function holdResult(applying: Applying, ending: Ending): Promise<WiggumEnd> {
  const made = await hold(applying).catch(() => undefined)
  const conversation = applying.record.conversation ?? ''
  const more = `to go on: braidclaw agent --wiggum --resume ${conversation}`
  if (made === undefined) return { ending, notes: ['nothing was changed', more] }
  const { name, summary, review } = made
  const way =
    review.verdict === 'deny' ? `it cannot be applied: ${review.reason}` : `to apply it all the same: braidclaw changes apply ${name}`
  return { ending, notes: [`the result so far: ${summary}`, more, way], set: { name, summary, state: 'pending' } }
}

type Made = KeptCopy & { readonly name: string; readonly summary: string; readonly asks: ChangeReview }

/** Takes the difference between the beginning and now out of the copy, which stays whole, and keeps it as one set. */
async function hold({ host, setup, record, before }: Applying): Promise<Made | undefined> {
  const { copy, set, upper } = foldersOf(record)
  const { workspace, conversation = '', prompt, rules } = record
  const runId = runOf(record)
  const id = idOf(runId)
  const { store } = await host.changes()
  for (const other of store.list().filter((each) => record.runs.some((run) => each.id === idOf(run)))) await store.release(other.id)
  for (const name of ['up', 'pending']) rmSync(join(set, name), { recursive: true, force: true })
  mkdirSync(upper, { recursive: true, mode: 0o700 })
  const taken = withoutIndex(await takeChanges({ workspace, copy, before, upper, leave: true }))
  const changes = record.branch === undefined || taken.length === 0 ? taken : await commitChanges({ setup, record, changes: taken, upper })
  if (changes.length === 0) return undefined
  const ruled = { ...setup, ownRules: [...(setup.ownRules ?? []), ...rules] }
  const asks = await review({ setup: ruled, workspace, changes, upper })
  const about = { run: runId, call, conversation, tool: 'wiggum', command: prompt }
  const kept = await keepCopy({ host, setup: ruled, id, about, workspace, changes, set })
  return { ...kept, name: nameOf(runId), summary: kept.review.summary, asks }
}

/** The index of git has the times of the files in the copy. Alone it says nothing. */
function withoutIndex(changes: readonly Change[]): readonly Change[] {
  const own = changes.filter(({ path, after }) => /^\.git(\/|$)/.test(path) && after?.kind !== 'folder')
  return own.every(({ path }) => path === '.git/index') ? changes.filter(({ path }) => !/^\.git(\/|$)/.test(path)) : changes
}

type Reviewing = { readonly setup: Setup; readonly workspace: string; readonly changes: readonly Change[]; readonly upper: string }

/** Judges the changes as those of a command are judged where harmless changes need no question: the person asked for this run. */
async function review({ setup, workspace, changes, upper }: Reviewing): Promise<ChangeReview> {
  const policy = { ...policyOf(setup.config, setup.paths, setup.context.env), approveAllMedium: true }
  using look = createLook({ workspace, upper, changes })
  const gate = () => Promise.reject(new Error('a result has no command'))
  return await changeJudge({ setup, policy, gate })(undefined).review({ changes, look, upper })
}

async function enter({ host, record, confirm }: Applying, made: Made): Promise<WiggumEnd> {
  const { id, name, summary, asks, set } = made
  const waits = { name, summary, state: 'pending' } as const
  const way = `to apply it: braidclaw changes apply ${name}`
  if (made.review.verdict === 'deny' || asks.verdict === 'deny') {
    const { reason } = asks.verdict === 'deny' ? asks : made.review
    return {
      ...failed('denied', `the checks pass, and the result may not be applied: ${reason}`, [
        `to look at it: braidclaw changes show ${name}`,
      ]),
      set: waits,
    }
  }
  if (asks.verdict === 'ask' && !(await confirm?.(set, asks)))
    return { ...failed('approval_needed', `the checks pass, and the result needs a yes: ${asks.reason}`, [way]), set: waits }
  const { store, withReceipt } = await host.changes()
  const summaryOfSet = store.list().find((each) => each.id === id)
  const act = () => store.apply({ id })
  const done = await (summaryOfSet ? withReceipt({ tool: 'changes.apply', set: summaryOfSet }, act) : act())
  if (done.ok) return applied(record, name, summary)
  const paths = done.conflicts.map(({ path, reason }) => `${visible(quote(path))} ${reason}`)
  const why = paths.length === 0 ? visible(done.message) : `you changed ${count(paths.length, 'path')} meanwhile, so nothing was applied`
  return { ...failed('error', `the checks pass, but the result was not applied: ${why}`, [...paths, way]), set: waits }
}
