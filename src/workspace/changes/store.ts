/** Opens the store of change sets: what commands and file tools changed in the workspace, what waits for a decision, and how to undo it. */

import { existsSync, lstatSync, mkdirSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import type { Change } from '../../runtime/changes.ts'
import type { By, Originals } from '../contract.ts'
import { explain, flags, hold } from '../descriptor.ts'
import { compareAgain } from './apply/back-and-forth.ts'
import { compare } from './apply/conflicts.ts'
import { flush } from './apply/durable.ts'
import { isSameIndex } from './apply/git-index.ts'
import { readHeldLocks } from './apply/held-locks.ts'
import { openWorkspaceTree, perform, takeBack } from './apply/perform.ts'
import type { About, Applied, Conflict, Held, Log, Recovered, SetSummary, Shown, Side, StoreLimits, ToApply } from './contract.ts'
import { keepOriginal, planDeletion } from './file-changes.ts'
import { discard, flushFile, headerOf, type Plan, readPlan, renamePlan, writePlan } from './set/plan.ts'
import { expired } from './set/retention.ts'
import { chosen } from './set/selection.ts'
import { adopt, finishedIn, goneIn, idsIn, pathsOf, removeSet, setFolder, stageOf, summaryOf } from './set/set-folder.ts'
import { showSet } from './set/show.ts'
import { triedIn } from './set/tried.ts'
import { restoreModes } from './set/widened.ts'
import { type Found, look } from './tree/identity.ts'
import { type Libc, openLibc } from './tree/libc.ts'
import type { RawName } from './tree/names.ts'
import { createPace, type Pace } from './tree/pace.ts'
import { removeTree } from './tree/remove-tree.ts'
import { openTree } from './tree/tree.ts'
import { createTurns } from './turns.ts'

export type ChangeStoreOptions = {
  /** Absolute path of the store; it is made when it is needed. */
  readonly folder: string
  /** Absolute path of the workspace. */
  readonly workspace: string
  readonly log: Log
  /** Milliseconds since 1970. */
  readonly now: () => number
  readonly limits: StoreLimits
  /** Whether a living process still uses the private view of this id; without it no view counts as an orphan. */
  readonly isInUse?: (id: string) => boolean
  /** Called before each change on disk, for tests that stop there. */
  readonly onStep?: () => void
}

export type ChangeStore = {
  /** Applies a whole change set or nothing of it. Never rejects. */
  apply(set: ToApply): Promise<Applied>
  /** Takes a change set back, exactly; refused when a path of it changed since, unless `force`. Never rejects. */
  undo(id: string, options?: { readonly force?: boolean }): Promise<Applied>
  /** Applies a change set again that was undone, or partly. Never rejects. */
  redo(id: string, options?: { readonly force?: boolean }): Promise<Applied>
  /** Takes some paths of a change set back, with everything below them. Never rejects. */
  restore(id: string, paths: readonly string[], options?: { readonly force?: boolean }): Promise<Applied>
  /** The newest first. A damaged set is logged and left out. */
  list(): SetSummary[]
  /** @returns undefined when there is no such set @throws when its files are damaged */
  show(id: string): Shown | undefined
  /** Keeps a change set on disk until somebody decides. @throws the system's error */
  hold(id: string, set: Held): Promise<void>
  /** Forgets a change set that was not applied. @throws when it was applied, or the system's error */
  drop(id: string): Promise<void>
  /** Finishes what a dead process began. Call it when the store is opened and nothing runs yet. */
  recover(): Promise<Recovered>
  /** What the file tools of one conversation need of the store. */
  originals(whose: { readonly conversation: string; run(): string }): Originals
  /** Forgets what is beyond the limits. @returns how many sets it forgot */
  prune(): Promise<number>
}

/** Opens nothing before the first call. */
export function openChangeStore(options: ChangeStoreOptions): ChangeStore {
  const { folder: store, log, onStep } = options
  const state: { libc?: Libc } = {}
  const libc = () => (state.libc ??= openLibc())
  const turns = createTurns(store, libc)

  /** Every failure becomes an answer. */
  async function answered(work: () => Promise<Applied>): Promise<Applied> {
    try {
      return await turns.take(work)
    } catch (error) {
      return { ok: false, conflicts: [], message: `nothing was changed: ${explain(error)}` }
    }
  }

  const write = async (folder: string, plan: Plan, pace: Pace, bytes: number) => {
    const path = await writePlan(folder, plan, pace)
    await flush(libc(), folder, bytes)
    return path
  }

  async function start(folder: string, plan: Plan, pace: Pace, signal?: AbortSignal): Promise<Applied> {
    const path = await write(
      folder,
      plan,
      pace,
      plan.items.reduce((sum, { after }) => sum + (after?.size ?? 0), plan.items.length * 512),
    )
    if (signal?.aborted) {
      discard(path)
      return cancelled
    }
    onStep?.()
    renamePlan(folder, 'plan.tmp', 'plan')
    return await perform({ folder, plan, again: false, libc: libc(), log, pace, onStep })
  }

  async function apply({ id, folder: elsewhere, signal, ...given }: ToApply): Promise<Applied> {
    const folder = adopt(store, id, elsewhere ?? join(store, id))
    const stage = stageOf(folder)
    if (stage !== undefined && stage.state !== 'pending') return refused(`the change set ${id} is ${stage.state} already`)
    const held = stage === undefined ? undefined : readPlan(join(folder, 'pending'))
    const changes = given.changes ?? held?.items
    const about = given.about ?? held?.header.about
    const review = given.review ?? held?.header.review
    if (changes === undefined || about === undefined) return refused(`there is no change set ${id}`)
    const pace = createPace()
    const root = held?.header.workspace ?? realpathSync(options.workspace)
    const compared = await compareWith(folder, { root, changes, pace })
    if (compared.conflicts.length > 0) return conflicting(compared.conflicts)
    if (signal?.aborted) return cancelled
    const { items, bytes } = compared
    const header = headerOf({ workspace: root, about, review, items: items.length, count: items.length, changed: items.length, bytes })
    return await start(folder, { header, items }, pace, signal)
  }

  async function compareWith(folder: string, { root, changes, pace }: { root: string; changes: readonly Change[]; pace: Pace }) {
    using workspace = openWorkspaceTree(folder, root)
    mkdirSync(join(folder, 'up'), { recursive: true, mode: 0o700 })
    using view = openTree({ root: join(folder, 'up') })
    try {
      using top = hold(folder, flags.folder)
      const start = look(top, 'start')
      if (start === undefined) throw new Error(`${folder} has no mark of when it began`)
      const tried = triedIn(folder)
      const isSameAnyway = (raw: RawName, now: Found) => tried(raw, now) || isSameIndex(workspace, folder, raw)
      return await compare({
        changes,
        workspace,
        view,
        start,
        locks: readHeldLocks(),
        isSameAnyway,
        pace,
      })
    } finally {
      restoreModes(folder, workspace)
    }
  }

  type Moving = { readonly id: string; readonly side: Side; readonly paths?: readonly string[]; readonly force?: boolean }

  async function moveTo({ id, side, paths: wanted, force = false }: Moving): Promise<Applied> {
    const folder = setFolder(store, id)
    const stage = stageOf(folder)
    if (stage === undefined) return refused(`there is no change set ${id}`)
    if (!['applied', 'partly undone', 'undone'].includes(stage.state)) return refused(`the change set ${id} is ${stage.state}`)
    const all = pathsOf(folder)
    const paths = chosen(all, side, wanted)
    if (paths.length === 0) return refused(`there is nothing to ${side === 'before' ? 'undo' : 'redo'} in the change set ${id}`)
    const pace = createPace()
    const { workspace: root, about, review, count, bytes } = stage.header
    const from = join(folder, side === 'before' ? 'undo' : 'up')
    mkdirSync(from, { recursive: true, mode: 0o700 })
    const since = String(lstatSync(join(folder, finishedIn(folder).at(-1) ?? ''), { bigint: true }).ctimeNs)
    using workspace = openWorkspaceTree(folder, root)
    using waiting = openTree({ root: from })
    const { items, conflicts } = await compareAgain({ paths, side, workspace, from: waiting, since, force, pace })
    restoreModes(folder, workspace)
    if (conflicts.length > 0) return conflicting(conflicts)
    const left = all.filter(({ isChanged }) => isChanged).length + (side === 'before' ? -paths.length : paths.length)
    const header = headerOf({ workspace: root, about, review, to: side, items: items.length, count, changed: left, bytes })
    return await start(folder, { header, items }, pace)
  }

  function summaries(): SetSummary[] {
    return idsIn(store).flatMap((id) => {
      try {
        const stage = stageOf(setFolder(store, id))
        return stage === undefined ? [] : [summaryOf(id, stage)]
      } catch (error) {
        log('warn', 'a change set cannot be read', { id, error: explain(error) })
        return []
      }
    })
  }

  async function keep(id: string, { changes, review, about, folder: elsewhere }: Held): Promise<void> {
    const folder = adopt(store, id, elsewhere ?? join(store, id))
    const header = headerOf({
      workspace: realpathSync(options.workspace),
      about,
      review,
      items: changes.length,
      count: changes.length,
      changed: 0,
      bytes: 0,
    })
    flushFile(await writePlan(folder, { header, items: changes }, createPace()))
    renamePlan(folder, 'plan.tmp', 'pending')
  }

  async function drop(id: string): Promise<void> {
    const stage = stageOf(setFolder(store, id))
    if (stage !== undefined && stage.state !== 'pending') throw new Error(`the change set ${id} is ${stage.state}; undo it instead`)
    await removeSet(store, id)
  }

  async function recover(): Promise<Recovered> {
    const finished: string[] = []
    const takenBack: string[] = []
    const orphans: string[] = []
    for (const gone of goneIn(store)) await removeTree(join(store, gone))
    for (const id of idsIn(store)) {
      const folder = setFolder(store, id)
      discard(join(folder, 'plan.tmp'))
      if (existsSync(join(folder, 'plan'))) (await resumed(id, folder)) ? finished.push(id) : takenBack.push(id)
      else if (existsSync(join(folder, 'stuck'))) await unstuck(id, folder)
      else if (existsSync(join(folder, 'widened'))) widenedBack(folder)
      else if (stageOf(folder) === undefined && options.isInUse?.(id) === false) orphans.push(id)
    }
    return { finished, takenBack, orphans }
  }

  async function resumed(id: string, folder: string): Promise<boolean> {
    const plan = readPlan(join(folder, 'plan'))
    const done = await perform({ folder, plan, again: true, libc: libc(), log, pace: createPace(), onStep })
    log(done.ok ? 'info' : 'warn', done.ok ? 'an interrupted change set was finished' : 'an interrupted change set was taken back', {
      id,
      ...(!done.ok && { why: done.message }),
    })
    return done.ok
  }

  /** What could not be put back may be possible now. */
  async function unstuck(id: string, folder: string): Promise<void> {
    renamePlan(folder, 'stuck', 'plan')
    const plan = readPlan(join(folder, 'plan'))
    const done = await takeBack({ folder, plan, again: true, libc: libc(), log, pace: createPace(), onStep }, new Error('it was stuck'))
    log('warn', 'a change set that was stuck was tried once more', { id, result: done.ok ? '' : done.message })
  }

  function widenedBack(folder: string): void {
    using workspace = openTree({ root: options.workspace })
    restoreModes(folder, workspace)
  }

  async function prune(): Promise<number> {
    const ids = expired(summaries(), options.limits, options.now())
    for (const id of ids) await removeSet(store, id)
    return ids.length
  }

  function originals({ conversation, run }: Parameters<ChangeStore['originals']>[0]): Originals {
    const aboutOf = (by?: By): About => ({ run: run(), call: by?.call ?? '', conversation, tool: by?.tool ?? '', at: options.now() })
    return {
      keep: (write) => keepOriginal({ store, workspace: realpathSync(options.workspace), about: aboutOf(write.by), write }),
      async delete(paths, by) {
        const about = aboutOf(by)
        const planned = await planDeletion({ store, workspace: realpathSync(options.workspace), about, paths })
        const done = await answered(() => apply({ ...planned, about }))
        if (!done.ok) await removeSet(store, planned.id)
        return done
      },
    }
  }

  return {
    apply: (set) => answered(() => apply(set)),
    undo: (id, { force } = {}) => answered(() => moveTo({ id, side: 'before', force })),
    redo: (id, { force } = {}) => answered(() => moveTo({ id, side: 'after', force })),
    restore: (id, paths, { force } = {}) => answered(() => moveTo({ id, side: 'before', paths, force })),
    list: () => summaries().sort((a, b) => b.about.at - a.about.at || (a.id < b.id ? 1 : -1)),
    show: (id) => showSet(setFolder(store, id), id),
    hold: keep,
    drop,
    originals,
    recover: () => turns.take(recover),
    prune: () => turns.take(prune),
  }
}

const cancelled: Applied = { ok: false, conflicts: [], message: 'cancelled before anything was changed' }

function refused(message: string): Applied {
  return { ok: false, conflicts: [], message }
}

function conflicting(conflicts: readonly Conflict[]): Applied {
  const named = conflicts.slice(0, 5).map(({ path, reason }) => `${JSON.stringify(path)} ${reason}`)
  const more = conflicts.length > named.length ? `, and ${conflicts.length - named.length} more` : ''
  return { ok: false, conflicts, message: `nothing was changed: ${named.join('; ')}${more}` }
}
