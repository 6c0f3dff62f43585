/** Maintains the store: finishes what a dead process began, and removes the sets that exceed the limits. */

import { existsSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Log } from '../../runtime/port.ts'
import { explain } from '../descriptor.ts'
import { perform, takeBack } from './apply/perform.ts'
import type { Recovered, SetSummary, StoreLimits } from './contract.ts'
import { discard, loadPlan, renamePlan } from './set/plan.ts'
import {
  busyIn,
  idsIn,
  notBusy,
  outsideOf,
  removeSet,
  restoreModes,
  setFolder,
  stageOf,
  summaryOf,
  tidy,
  trashIn,
  workspaceOfBusy,
} from './set/set-folder.ts'
import type { Libc } from './tree/libc.ts'
import { createPace, gitInPlace, openTree, type Pace, removeTree } from './tree/tree.ts'
import { lockWorkspace, type Turns } from './turns.ts'

type UpkeepOptions = {
  readonly folder: string
  readonly log: Log
  readonly now: () => number
  readonly limits: StoreLimits
  readonly libc: () => Libc
  readonly turns: Turns
  readonly isInUse?: (id: string) => boolean
  readonly onStep?: () => void
}

/** Counting bytes reads every set, so it is not done after each command. */
const PRUNE_MS = 10 * 60 * 1_000
const PRUNED = '.pruned'

export function createUpkeep({ folder: store, log, now, limits, libc, turns, isInUse, onStep }: UpkeepOptions) {
  /** @throws nothing: a damaged set is logged and left out */
  function summary(id: string): SetSummary[] {
    try {
      const stage = stageOf(setFolder(store, id))
      return stage === undefined ? [] : [summaryOf(id, stage)]
    } catch (error) {
      log('warn', 'a change set cannot be read', { id, error: explain(error) })
      return []
    }
  }

  const summaries = () => idsIn(store).flatMap(summary)

  /** Reads only the names in the store and in each set when there is nothing to do, which is the usual case. */
  async function recover(): Promise<Recovered> {
    const ids = idsIn(store)
    const raw = ids.filter((id) => !existsSync(join(store, id, 'done-1')) && summary(id).length === 0)
    const orphans = raw.filter((id) => isInUse?.(id) === false)
    const isQuiet = busyIn(store).length === 0 && trashIn(store).length === 0
    return isQuiet ? { finished: [], takenBack: [], orphans } : { ...(await turns.take(finishAll)), orphans }
  }

  async function finishAll(): Promise<Omit<Recovered, 'orphans'>> {
    const [finished, takenBack]: [string[], string[]] = [[], []]
    for (const name of trashIn(store)) await removeTree(join(store, name))
    for (const id of busyIn(store)) {
      const done = await finish(id, setFolder(store, id))
      notBusy(store, id)
      if (done !== undefined) (done ? finished : takenBack).push(id)
    }
    return { finished, takenBack }
  }

  /** @returns true when it was finished, false when it was taken back, undefined when there was nothing to do */
  async function finish(id: string, folder: string): Promise<boolean | undefined> {
    discard(join(folder, 'plan.tmp'))
    if (existsSync(join(folder, 'plan'))) return await resume(id, folder)
    if (existsSync(join(folder, 'stuck'))) return await unstick(id, folder)
    if (existsSync(join(folder, 'widened'))) widenBack(folder, workspaceOfBusy(store, id))
    if (stageOf(folder)?.state === 'applied') tidy(folder)
    return undefined
  }

  async function resume(id: string, folder: string): Promise<boolean> {
    const pace = createPace()
    const plan = await loadPlan(join(folder, 'plan'), pace)
    // A missing workspace is left to perform, which reports it for each path.
    const [root, git] = [plan.header.workspace, outsideOf(folder)?.common ?? '']
    using _ = existsSync(root) ? await lockWorkspace(libc(), root) : undefined
    using __ = existsSync(git) ? await lockWorkspace(libc(), git) : undefined
    const done = await perform({ folder, plan, again: true, libc: libc(), log, pace, onStep })
    if (done.ok) log('info', 'an interrupted change set was finished', { id })
    else log('warn', 'an interrupted change set was taken back', { id, why: done.message })
    if (done.ok && plan.header.to === 'after') tidy(folder)
    return done.ok
  }

  /** Tries again to put back what could not be put back: it may be possible now. */
  async function unstick(id: string, folder: string): Promise<boolean> {
    const pace = createPace()
    renamePlan(folder, 'stuck', 'plan')
    const plan = await loadPlan(join(folder, 'plan'), pace)
    const { message } = await takeBack({ folder, plan, again: true, libc: libc(), log, pace, onStep }, new Error('it was stuck'))
    log('warn', 'a change set that was stuck was tried once more', { id, result: message })
    return false
  }

  function widenBack(folder: string, workspace: string): void {
    using tree = openTree({ root: workspace, outside: gitInPlace(outsideOf(folder)) })
    restoreModes(folder, tree)
  }

  async function prune(): Promise<number> {
    const ids = idsIn(store)
    const pace = createPace()
    if (ids.length <= limits.keepSets && isRecent(join(store, PRUNED), now())) return 0
    const found = await each(ids, pace)
    const expiredIds = expired(found, limits, now())
    for (const id of expiredIds) await removeSet(store, id)
    if (ids.length > 0) writeFileSync(join(store, PRUNED), '', { mode: 0o600 })
    return expiredIds.length
  }

  async function each(ids: readonly string[], pace: Pace): Promise<SetSummary[]> {
    const found: SetSummary[] = []
    for (const id of ids) {
      found.push(...summary(id))
      await pace()
    }
    return found
  }

  return { summaries, recover, prune: () => turns.take(prune) }
}

function isRecent(path: string, now: number): boolean {
  const stat = statSync(path, { throwIfNoEntry: false })
  return stat !== undefined && now - stat.mtimeMs < PRUNE_MS && now >= stat.mtimeMs
}

const DAY_MS = 24 * 60 * 60 * 1_000

/**
 * Decides which change sets are kept, by number, age and bytes; the newest first. The newest set is kept whatever its size. Sets that
 * wait for a decision or for recovery are never chosen, and what is stuck only by its age.
 * @returns the ids to forget
 */
function expired(
  sets: readonly SetSummary[],
  { keepBytes, keepDays, keepSets, isApart = () => false }: StoreLimits,
  now: number,
): string[] {
  const isOld = ({ about }: SetSummary) => now - about.at > keepDays * DAY_MS
  const byAge = sets
    .filter(({ state }) => !['pending', 'unfinished', 'stuck'].includes(state))
    .sort((a, b) => b.about.at - a.about.at || (a.id < b.id ? 1 : -1))
  const groups = Map.groupBy(byAge, ({ workspace }) => isApart(workspace))
  const beyond = [...groups.values()].flatMap((group) => {
    let bytes = 0
    return group.filter((set, at) => {
      bytes += set.bytes
      return at >= keepSets || (bytes > keepBytes && at > 0) || isOld(set)
    })
  })
  return [...beyond, ...sets.filter((set) => set.state === 'stuck' && isOld(set))].map(({ id }) => id)
}
