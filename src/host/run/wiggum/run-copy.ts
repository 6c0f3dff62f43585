/**
 * Keeps the copy of the workspace in which a wiggum run works, and the record of the run. Both survive a crash and a power cut: the record
 * lies in our home, which tools cannot reach, and the copy elsewhere, where they can work.
 */

import { spawnSync } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { errorText, unlessMissing } from '../../../kit/errors.ts'
import { replaceFile } from '../../../kit/files.ts'
import { createId } from '../../../kit/sha256.ts'
import { quote } from '../../../kit/text.ts'
import { isOwned, takeOwnership } from '../../../memory/recovery/owner-file.ts'
import { discard } from '../../../workspace/changes/set/plan.ts'
import { removeTree } from '../../../workspace/changes/tree/tree.ts'
import type { Host, Setup } from '../../api.ts'
import { attemptFolders, copyWorkspace, type Manifest, manifestText, readManifest } from '../../changes/workspace-copy.ts'
import { FailureError } from '../../failure.ts'

const tier = z.union([z.literal(0), z.literal(1), z.literal(2), z.literal(3)])
const text = z.optional(z.string())
const amount = z.optional(z.number())

const checkSpec = z.strictObject({
  ...{ name: z.string(), tier, command: text, stories: text, criteria: text },
  ...{ runs: amount, pass: amount, timeoutMs: amount },
})

/** A check as it was at the beginning. `tests`: how many it said to have run before the model began. */
const frozenCheck = z.strictObject({
  spec: checkSpec,
  frozen: z.strictObject({ name: z.string(), tier, digest: z.string(), files: z.optional(z.record(z.string(), z.string())) }),
  tests: z.int(),
})

const wiggumRecord = z.strictObject({
  id: z.string(),
  /** The user's folder, as a real path. */
  workspace: z.string(),
  /** The folder of the copy. */
  base: z.string(),
  prompt: z.string(),
  checks: z.array(frozenCheck),
  /** Rules of this run, in the format of the rule files. */
  rules: z.array(z.looseObject({ name: z.string() })),
  tests: z.array(z.string()),
  protectTests: z.boolean(),
  maxIterations: z.int(),
  maxSame: amount,
  /** The run ends then, in milliseconds since 1970. */
  until: amount,
  /** The result becomes a commit on this branch, whose parent is `head`. */
  branch: text,
  head: text,
  /** The data set whose rollout it is: its result is never applied. */
  rollout: text,
  /** The settings of the command line, for a process that goes on. */
  settings: z.record(z.string(), z.union([z.string(), z.number(), z.boolean()])),
  channel: z.string(),
  started: z.number(),
  conversation: text,
  /** The journalled runs, the first one first: one that goes on after a crash adds another. */
  runs: z.array(z.string()),
  /** `running`: a process works on it, or died. `waiting`: it ended without success and can go on. `done`: it ended for good. */
  state: z.enum(['running', 'waiting', 'done']),
  /** How it ended. `at` is in milliseconds since 1970. */
  ended: z.optional(z.strictObject({ code: z.string(), message: z.string(), at: z.number(), notes: z.array(z.string()) })),
})

export type WiggumRecord = z.infer<typeof wiggumRecord>

/** Returns the folders of a run. */
export function foldersOf(record: Pick<WiggumRecord, 'base'>) {
  return attemptFolders(record.base, 1)
}

const recordsIn = ({ paths }: Pick<Setup, 'paths'>) => join(paths.home, 'wiggum')
const folderOf = (setup: Pick<Setup, 'paths'>, id: string) => join(recordsIn(setup), id)

type NewCopy = {
  readonly host: Pick<Host, 'setup' | 'changes'>
  readonly setup: Setup
  readonly workspace: string
  readonly signal?: AbortSignal | undefined
}

/**
 * Copies the workspace. The copy is not registered before `writeRecord`; one without a record is removed by `removeLost`. @throws
 * FailureError `error` when the workspace is too large or cannot be copied
 */
export async function createCopy({ host, setup, workspace, signal }: NewCopy) {
  const { env, home } = setup.context
  const id = createId('wiggum', crypto.getRandomValues(new Uint8Array(8)))
  const state = join(env.XDG_STATE_HOME || join(env.HOME ?? home, '.local/state'), 'braidclaw', 'wiggum')
  mkdirSync(state, { recursive: true, mode: 0o700 })
  await removeLost(host, state)
  mkdirSync(folderOf(setup, id), { recursive: true, mode: 0o700 })
  if (!own(setup, id)) throw new FailureError('error', `the record of the run cannot be written in ${recordsIn(setup)}`)
  const base = join(realpathSync(state), id)
  const { copy, set, upper } = attemptFolders(base, 1)
  try {
    for (const folder of [copy, upper]) mkdirSync(folder, { recursive: true, mode: 0o700 })
    // A change in the workspace from now on was made by somebody else.
    writeFileSync(join(set, 'start'), '')
    // A `git status` meanwhile refreshes times in the index, which must not count as a conflict.
    unlessMissing(() => copyFileSync(join(workspace, '.git/index'), join(set, 'index')))
    const before = await copyWorkspace(workspace, copy, { signal })
    // After a power cut an unwritten file would look like one that the model emptied.
    spawnSync('sync', ['-f', copy])
    replaceFile(join(folderOf(setup, id), 'before.json'), manifestText(before))
    return { id, base, before }
  } catch (error) {
    await removeRun(setup, { id, base })
    throw error
  }
}

/** Removes the copies that a process left which died before it wrote the record, or when its run was over. */
async function removeLost(host: NewCopy['host'], state: string): Promise<void> {
  const { setup } = host
  for (const record of listRecords(setup)) if (record.state === 'done' && existsSync(foldersOf(record).copy)) await removeCopy(host, record)
  for (const id of unlessMissing(() => readdirSync(recordsIn(setup))) ?? [])
    if (!existsSync(join(folderOf(setup, id), 'run.json')) && !isOwned(ownerFile(setup, id)))
      await removeRun(setup, { id, base: join(state, id) })
}

/** Writes the record whole or not at all. @throws the system's error */
export function writeRecord(setup: Pick<Setup, 'paths'>, record: WiggumRecord): WiggumRecord {
  replaceFile(join(folderOf(setup, record.id), 'run.json'), JSON.stringify(record))
  return record
}

/** Returns the state of the copy at the beginning. @throws FailureError `error` when it cannot be read */
export function manifestOf(setup: Pick<Setup, 'paths'>, { id }: Pick<WiggumRecord, 'id'>): Manifest {
  const path = join(folderOf(setup, id), 'before.json')
  try {
    return readManifest(readFileSync(path, 'utf8'))
  } catch (error) {
    throw new FailureError('error', `${path} cannot be read (${errorText(error)}), so the run cannot go on; begin it again`)
  }
}

/** Returns the records of all runs, the latest first. A damaged record is logged and left out. */
export function listRecords(setup: Pick<Setup, 'paths' | 'log'>): readonly WiggumRecord[] {
  const names = unlessMissing(() => readdirSync(recordsIn(setup))) ?? []
  const found = names.flatMap((id): WiggumRecord[] => {
    try {
      const content = unlessMissing(() => readFileSync(join(folderOf(setup, id), 'run.json'), 'utf8'))
      return content === undefined ? [] : [wiggumRecord.parse(JSON.parse(content))]
    } catch (error) {
      setup.log('warn', 'the record of a wiggum run cannot be read', { id, error: errorText(error) })
      return []
    }
  })
  return found.toSorted((a, b) => b.started - a.started)
}

/** Tells whether the process that works on the run has died. */
export function isInterrupted(setup: Pick<Setup, 'paths'>, { id, state }: Pick<WiggumRecord, 'id' | 'state'>): boolean {
  return state === 'running' && !isOwned(ownerFile(setup, id))
}

const ownerFile = (setup: Pick<Setup, 'paths'>, id: string) => join(folderOf(setup, id), 'owner')

/** Makes this process the one that works on the run. @returns false while another living process does */
export function own(setup: Pick<Setup, 'paths'>, id: string): boolean {
  return takeOwnership(ownerFile(setup, id))
}

/** Lets another process work on the run. */
export function disown(setup: Pick<Setup, 'paths'>, id: string): void {
  discard(ownerFile(setup, id))
}

/** Removes the copy of a run, and the change sets that its calls made there; the record and the result stay. */
export async function removeCopy({ setup, changes }: Pick<Host, 'setup' | 'changes'>, record: WiggumRecord): Promise<void> {
  const { copy } = foldersOf(record)
  await removeTree(copy).catch(() => undefined)
  discard(join(folderOf(setup, record.id), 'before.json'))
  const { store } = await changes()
  await store.forgetWorkspace(copy).catch(() => undefined)
}

/** Removes the copies of runs that nobody works on and that began before this time, in milliseconds since 1970. @returns how many */
export async function pruneRuns(host: Pick<Host, 'setup' | 'changes'>, before: number): Promise<number> {
  const { setup } = host
  const old = listRecords(setup).filter(({ id, started, ended }) => (ended?.at ?? started) < before && !isOwned(ownerFile(setup, id)))
  const { store } = await host.changes()
  for (const record of old) {
    const sets = store.list().filter(({ about }) => record.runs.includes(about.run) && about.tool === 'wiggum')
    for (const { id, state } of sets) if (state === 'pending') await store.drop(id)
    await removeCopy(host, record)
    // What undoes an applied result lies beside the copy as long as the store keeps it.
    if (sets.every(({ state }) => state === 'pending')) await removeRun(setup, record)
  }
  return old.length
}

/** Removes everything of a run. */
export async function removeRun(setup: Pick<Setup, 'paths'>, { id, base }: Pick<WiggumRecord, 'id' | 'base'>): Promise<void> {
  await removeTree(base).catch(() => undefined)
  rmSync(folderOf(setup, id), { recursive: true, force: true })
}

/**
 * Finds the run that goes on: that of a run id or a conversation, or, without `ref`, the latest of the folder. @throws FailureError `error` when
 * there is none, or it is over
 */
export function findRecord(setup: Pick<Setup, 'paths' | 'log'>, ref: string | undefined, workspace: string): WiggumRecord {
  const records = listRecords(setup)
  const isIt = ({ id, conversation, runs }: WiggumRecord) => ref === id || ref === conversation || runs.some((run) => run === ref)
  const found = ref === undefined ? records.find((each) => each.workspace === workspace && each.state !== 'done') : records.find(isIt)
  if (found === undefined)
    throw new FailureError('error', ref === undefined ? `no wiggum run waits in ${workspace}` : `${quote(ref)} is not a wiggum run`)
  if (found.state === 'done')
    throw new FailureError('error', `the run ${found.runs.at(-1)} is over; see: braidclaw run report ${found.runs.at(-1)}`)
  return found
}
