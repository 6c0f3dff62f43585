/** Opens the store of change sets: what commands and file tools changed in the workspace, what waits for a decision, and how to undo it. */

import { existsSync, lstatSync, realpathSync, unlinkSync } from 'node:fs'
import { join } from 'node:path'
import { attempt } from '../../kit/errors.ts'
import { sha256 } from '../../kit/sha256.ts'
import type { Change, EntryState } from '../../runtime/changes.ts'
import type { Log } from '../../runtime/port.ts'
import type { By, Originals } from '../contract.ts'
import { explain } from '../descriptor.ts'
import { createTransfer } from './apply/transfer.ts'
import type { About, Admit, Applied, HeldChanges, Recovered, SetSummary, ShownSet, Side, StoreLimits, ToApply } from './contract.ts'
import { keepOriginal, planDeletion } from './file-changes.ts'
import { flushFile, headerOf, type Item, readPlan, renamePlan, writePlan } from './set/plan.ts'
import { adopt, markOf, outsideOf, pathsOf, removeSet, setFolder, stageOf, summaryOf } from './set/set-folder.ts'
import { folderOf, lastOf, namesOf, type RawName, rawName } from './tree/entry.ts'
import { type Libc, openLibc } from './tree/libc.ts'
import { createPace, gitBeside, gitInPlace, openTree, startAt } from './tree/tree.ts'
import { createTurns, lockWorkspace } from './turns.ts'
import { createUpkeep } from './upkeep.ts'

export type ChangeStoreOptions = {
  /** Absolute path of the store; it is made when it is needed. */
  readonly folder: string
  /** Absolute path of the workspace. */
  readonly workspace: string
  readonly log: Log
  /** Milliseconds since 1970. */
  readonly now: () => number
  readonly limits: StoreLimits
  /** Judges each set again when it is applied, undone or redone; absent: sets are not judged, as in tests. */
  readonly admit?: Admit
  /** Tells whether a living process still uses the private view of this id; without it no view counts as an orphan. */
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
  show(id: string): ShownSet | undefined
  /** Keeps a change set on disk until somebody decides. @throws the system's error */
  hold(id: string, set: HeldChanges): Promise<void>
  /** Forgets a change set that was not applied. @throws when it was applied, or the system's error */
  drop(id: string): Promise<void>
  /** Forgets a change set that waits; the folder that was given to `hold` stays, with its mark of the beginning. @throws as drop */
  release(id: string): Promise<void>
  /** Finishes what a dead process began. Call it when the store is opened and nothing runs yet. */
  recover(): Promise<Recovered>
  /** Does the work while no change set enters the workspace, or leaves it. @throws what the work throws, or that the workspace is busy */
  alone<T>(work: () => Promise<T>): Promise<T>
  /** Returns what the file tools of one conversation need of the store. */
  originals(whose: { readonly conversation: string; run(): string }): Originals
  /** Removes the sets that exceed the limits. @returns how many sets it removed */
  prune(): Promise<number>
  /** Removes every set of a workspace that was only a copy and no longer exists. */
  forgetWorkspace(workspace: string): Promise<void>
}

/** Opens nothing before the first call. */
export function openChangeStore(options: ChangeStoreOptions): ChangeStore {
  const { folder: store, workspace, log, onStep, admit } = options
  const state: { libc?: Libc; workspace?: string } = {}
  const libc = () => (state.libc ??= openLibc())
  const turns = createTurns(store, libc)
  const { apply, moveTo } = createTransfer({ store, workspace, log, libc, onStep, admit })
  const upkeep = createUpkeep({ ...options, libc, turns })
  const root = () => (state.workspace ??= realpathSync(workspace))

  /** Every failure becomes an answer. */
  async function answered(work: () => Promise<Applied>): Promise<Applied> {
    try {
      return await turns.take(work)
    } catch (error) {
      return { ok: false, conflicts: [], message: `nothing was changed: ${explain(error)}` }
    }
  }

  async function keep(id: string, { changes, review, about, folder: elsewhere }: HeldChanges): Promise<void> {
    const folder = adopt(store, id, elsewhere ?? join(store, id))
    const header = headerOf({
      workspace: root(),
      about,
      review,
      items: changes.length,
      count: changes.length,
      changed: 0,
      bytes: 0,
      place: markOf(folder),
    })
    flushFile(await writePlan(folder, { header, items: changes }, createPace()))
    renamePlan(folder, 'plan.tmp', 'pending')
  }

  function mustWait(id: string): void {
    const stage = stageOf(setFolder(store, id))
    if (stage !== undefined && stage.state !== 'pending') throw new Error(`the change set ${id} is ${stage.state}; undo it instead`)
  }

  async function drop(id: string): Promise<void> {
    mustWait(id)
    await removeSet(store, id)
  }

  async function release(id: string): Promise<void> {
    mustWait(id)
    const path = setFolder(store, id)
    // Without its link the set is not in the store any more.
    if (lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink()) unlinkSync(path)
  }

  function originals({ conversation, run }: Parameters<ChangeStore['originals']>[0]): Originals {
    const aboutOf = (by?: By): About => ({ run: run(), call: by?.call ?? '', conversation, tool: by?.tool ?? '', at: options.now() })
    return {
      keep: (write) => keepOriginal({ store, workspace: root(), about: aboutOf(write.by), write }),
      async delete(paths, by) {
        const about = aboutOf(by)
        const planned = await planDeletion({ store, workspace: root(), about, paths })
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
    list: () => upkeep.summaries().sort((a, b) => b.about.at - a.about.at || (a.id < b.id ? 1 : -1)),
    show: (id) => showSet(setFolder(store, id), id),
    hold: (id, set) => turns.take(() => keep(id, set)),
    drop: (id) => turns.take(() => drop(id)),
    release: (id) => turns.take(() => release(id)),
    alone: (work) =>
      turns.take(async () => {
        using _ = await lockWorkspace(libc(), root())
        return await work()
      }),
    originals,
    recover: upkeep.recover,
    prune: upkeep.prune,
    async forgetWorkspace(workspace) {
      for (const set of upkeep.summaries()) if (set.workspace === workspace) await removeSet(store, set.id)
    },
  }
}

const MOST_HASHED = 64 * 2 ** 20

/**
 * Shows one change set with the content of its files before and after, as long as these are still the same.
 * @returns undefined for an unknown change set @throws when its files are damaged
 */
function showSet(folder: string, id: string): ShownSet | undefined {
  const stage = stageOf(folder)
  if (stage === undefined) return undefined
  const paths = pathsOf(folder)
  const changes = (paths.length > 0 ? paths.map(({ first }) => first) : itemsOf(folder)).map(changeOf)
  const states = new Map(changes.map((change) => [change.path, change]))
  return {
    ...summaryOf(id, stage),
    changes,
    upper: join(folder, 'up'),
    outside: outsideOf(folder),
    undone: paths.filter(({ isChanged }) => !isChanged).map(({ raw }) => namesOf(raw).path),
    read(path, side, maxBytes) {
      const change = states.get(path)
      const state = change?.[side]
      return change === undefined || state?.kind !== 'file'
        ? undefined
        : readSide({ folder, workspace: stage.header.workspace }, { raw: rawName(change), side, state, maxBytes })
    },
  }
}

function itemsOf(folder: string): readonly Item[] {
  const name = ['plan', 'stuck', 'pending'].find((one) => existsSync(join(folder, one)))
  return name === undefined ? [] : readPlan(join(folder, name)).items
}

function changeOf({ path, bytes, before, after }: Item): Change {
  return { path, bytes, before, after }
}

type SideReading = { readonly raw: RawName; readonly side: Side; readonly state: EntryState; readonly maxBytes: number }

/** The content before is in `undo` or still in the workspace; the content after waits in `up` or is in the workspace. */
function readSide(
  { folder, workspace }: { readonly folder: string; readonly workspace: string },
  reading: SideReading,
): Uint8Array | undefined {
  const outside = outsideOf(folder)
  const kept = join(folder, reading.side === 'before' ? 'undo' : 'up')
  for (const place of [
    { root: kept, outside: gitBeside(kept, outside) },
    { root: workspace, outside: gitInPlace(outside) },
  ]) {
    const bytes = readIn(place, reading)
    if (bytes !== undefined) return bytes
  }
  return undefined
}

function readIn(place: Parameters<typeof openTree>[0], { raw, state, maxBytes }: SideReading): Uint8Array | undefined {
  return attempt(() => {
    using tree = openTree({ ...place, asItIs: true })
    const found = tree.lstat(raw)
    if (found?.kind !== 'file' || (state.size !== undefined && found.size !== state.size)) return undefined
    const start = startAt({ folder: tree.folder(folderOf(raw)), name: lastOf(raw) }, found.size > MOST_HASHED ? maxBytes : MOST_HASHED)
    // Only the beginning of a larger file is shown, and hashing all of it would block the process.
    const isSame = state.sha256 === undefined || found.size > MOST_HASHED || state.sha256 === sha256(start)
    return isSame ? start.subarray(0, maxBytes) : undefined
  })
}
