/** Copies the workspace for one attempt, and finds afterwards what the attempt changed in its copy. */

import { spawn } from 'node:child_process'
import {
  type BigIntStats,
  chmodSync,
  constants,
  copyFileSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  symlinkSync,
  utimesSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { z } from 'zod'
import { attempt } from '../../kit/errors.ts'
import { sha256 } from '../../kit/sha256.ts'
import type { Change, ChangeReview, ChangeSet, EntryState } from '../../runtime/changes.ts'
import { reviewChanges } from '../../security/changes/review-changes.ts'
import type { About } from '../../workspace/changes/contract.ts'
import { createLook } from '../../workspace/changes/look.ts'
import type { Identity } from '../../workspace/changes/tree/entry.ts'
import { bytesAt, namesOf } from '../../workspace/changes/tree/entry.ts'
import { createPace, type Pace } from '../../workspace/changes/tree/tree.ts'
import { readMoves } from '../../workspace/git/read-moves.ts'
import type { Host, Setup } from '../api.ts'
import { FailureError } from '../failure.ts'
import { policyOf } from '../setup/effective-policy.ts'
import { createChangeRules } from '../transactions/reviewed-views.ts'
import { changeSetOf } from './kept-changes.ts'

/** The state of an entry; `inode` and `changed`, in ns, tell whether somebody touched it. */
type CopiedEntry = Pick<Identity, 'kind' | 'mode' | 'size' | 'inode' | 'changed'>

/** The state of a copy before the attempt; names are bytes as latin1, because not every name is UTF-8. */
export type Manifest = ReadonlyMap<string, CopiedEntry>

/** A larger workspace is not copied. */
const mostBytes = 2 * 1024 ** 3

type Copying = {
  /** Aborted: the copy ends soon and is not whole. */
  readonly signal?: AbortSignal
  /** Called with the number of the process that copies. */
  readonly started?: (pid: number) => void
}

/** @throws FailureError `error` when the workspace is too large or cannot be copied, and the reason of the signal */
export async function copyWorkspace(workspace: string, copy: string, { signal, started }: Copying = {}): Promise<Manifest> {
  const bytes = await bytesOf(workspace, signal)
  if (bytes > mostBytes)
    throw new FailureError(
      'error',
      `the workspace has ${Math.ceil(bytes / 1e6)} MB, too much to copy for each attempt; name a smaller folder with -C`,
    )
  const child = spawn('cp', ['-a', '--reflink=auto', '--', `${workspace}/.`, `${copy}/`], { stdio: ['ignore', 'ignore', 'pipe'] })
  if (child.pid !== undefined) started?.(child.pid)
  const end = () => void child.kill('SIGKILL')
  signal?.addEventListener('abort', end, { once: true })
  const errors: string[] = []
  child.stderr.on('data', (piece: Buffer) => errors.push(piece.toString()))
  const code = await new Promise((resolve) => child.once('close', resolve).once('error', resolve))
  signal?.removeEventListener('abort', end)
  signal?.throwIfAborted()
  if (code !== 0) throw new FailureError('error', `the workspace could not be copied for an attempt: ${errors.join('').trim() || code}`)
  return await manifestOf(copy, signal)
}

/** Returns the space that it takes on the disk. */
async function bytesOf(root: string, signal: AbortSignal | undefined): Promise<number> {
  const sum = { blocks: 0 }
  const visit = (_: string, { blocks }: BigIntStats) => {
    sum.blocks += Number(blocks)
  }
  await walk(root, { signal, pace: createPace(), visit })
  return sum.blocks * 512
}

async function manifestOf(root: string, signal?: AbortSignal): Promise<Map<string, CopiedEntry>> {
  const found = new Map<string, CopiedEntry>()
  await walk(root, { signal, pace: createPace(), visit: (raw, stat) => void found.set(raw, entryOf(stat)) })
  return found
}

/** Runs `cp` without blocking, because the process keeps a lease meanwhile and may have to stop. @throws the reason of the signal */
async function walk(
  root: string,
  options: { readonly signal: AbortSignal | undefined; readonly pace: Pace; readonly visit: (raw: string, stat: BigIntStats) => void },
  below = '',
): Promise<void> {
  for (const name of readdirSync(bytesAt(root, below), { encoding: 'buffer' })) {
    await options.pace()
    options.signal?.throwIfAborted()
    const raw = below === '' ? name.toString('latin1') : `${below}/${name.toString('latin1')}`
    const stat = lstatSync(bytesAt(root, raw), { bigint: true })
    options.visit(raw, stat)
    if (stat.isDirectory()) await walk(root, options, raw)
  }
}

function entryOf(stat: BigIntStats): CopiedEntry {
  const kind = stat.isDirectory() ? 'folder' : stat.isSymbolicLink() ? 'link' : stat.isFile() ? 'file' : 'other'
  const { mode, size, ino, ctimeNs } = stat
  return { kind, mode: Number(mode & 0o7777n), size: Number(size), inode: String(ino), changed: String(ctimeNs) }
}

type Copied = {
  readonly workspace: string
  readonly copy: string
  readonly before: Manifest
  /** The new files are moved there; the folder exists and is empty. */
  readonly upper: string
  /** Leaves the copy whole: the new files are copied, and pipes, sockets and devices are left out. */
  readonly leave?: true
}

/** Call it when nothing writes into the copy any more. The copy lacks the changed files afterwards, unless `leave`. */
export async function takeChanges({ workspace, copy, before, upper, leave }: Copied): Promise<readonly Change[]> {
  const now = await manifestOf(copy)
  const names = [...new Set([...before.keys(), ...now.keys()])].sort()
  return names.flatMap((raw): Change[] => {
    const [old, fresh] = [before.get(raw), now.get(raw)]
    if (old && fresh && isUntouched(old, fresh)) return []
    const [was, is] = [old && stateOf(workspace, raw, old), fresh && stateOf(copy, raw, fresh)]
    if (JSON.stringify(was) === JSON.stringify(is) || (leave && fresh?.kind === 'other')) return []
    if (fresh) give({ copy, upper, raw, isFolder: fresh.kind === 'folder', leave })
    return [{ ...namesOf(raw), before: was, after: is }]
  })
}

/** A folder is touched by what happens in it; its own permissions are compared in any case. */
function isUntouched(old: CopiedEntry, fresh: CopiedEntry): boolean {
  return fresh.kind !== 'folder' && old.inode === fresh.inode && old.changed === fresh.changed
}

/** The content before comes from the workspace; where somebody changed it meanwhile, applying refuses it. */
function stateOf(root: string, raw: string, { kind, mode, size }: CopiedEntry): EntryState {
  if (kind === 'folder' || kind === 'other') return { kind, mode }
  if (kind === 'link') return { kind, mode: 0o777, target: linkAt(root, raw) }
  const content = contentAt(root, raw)
  return { kind, mode, size, ...(content?.length === size ? { sha256: sha256(content) } : {}) }
}

function contentAt(root: string, raw: string): Uint8Array | undefined {
  return attempt(() => (lstatSync(bytesAt(root, raw)).isFile() ? readFileSync(bytesAt(root, raw)) : undefined))
}

function linkAt(root: string, raw: string): string {
  return attempt(() => readlinkSync(bytesAt(root, raw))) ?? ''
}

type Giving = { readonly copy: string; readonly upper: string; readonly raw: string; readonly isFolder: boolean; readonly leave?: true }

function give({ copy, upper, raw, isFolder, leave }: Giving): void {
  const parts = raw.split('/')
  for (let depth = 1; depth < parts.length; depth++) mkdirSync(bytesAt(upper, parts.slice(0, depth).join('/')), { recursive: true })
  const [from, to] = [bytesAt(copy, raw), bytesAt(upper, raw)]
  if (isFolder) mkdirSync(to, { recursive: true })
  else if (leave) copyEntry(from, to)
  else renameSync(from, to)
}

/** Copies a file or a link with its mode and times. */
function copyEntry(from: Buffer, to: Buffer): void {
  const stat = lstatSync(from)
  if (stat.isSymbolicLink()) {
    symlinkSync(readlinkSync(from, { encoding: 'buffer' }), to)
    return
  }
  copyFileSync(from, to, constants.COPYFILE_FICLONE)
  chmodSync(to, stat.mode & 0o7777)
  utimesSync(to, stat.atime, stat.mtime)
}

/**
 * Returns a function that computes the digest of what differs from `before` in a copy: SHA-256, in hex, over path, kind, mode and content of
 * each touched entry. A further call hashes again only what changed since. It rejects with the system's error.
 */
export function createTreeDigest(copy: string, before: Manifest): () => Promise<string> {
  const known = new Map<string, { readonly entry: CopiedEntry; readonly line: string }>()
  const lineOf = (raw: string, entry: CopiedEntry): string => {
    const last = known.get(raw)
    if (last && isUntouched(last.entry, entry) && last.entry.mode === entry.mode) return last.line
    const line = JSON.stringify([raw, stateOf(copy, raw, entry)])
    known.set(raw, { entry, line })
    return line
  }
  return async () => {
    const now = await manifestOf(copy)
    const touched = [...now].flatMap(([raw, entry]) => {
      const old = before.get(raw)
      const isSame = entry.kind === 'folder' ? old?.kind === 'folder' && old.mode === entry.mode : old && isUntouched(old, entry)
      return isSame ? [] : [lineOf(raw, entry)]
    })
    const lost = [...before.keys()].flatMap((raw) => (now.has(raw) ? [] : [JSON.stringify([raw])]))
    return sha256([...touched, ...lost].sort().join('\n'))
  }
}

const manifestLine = z.tuple([z.string(), z.enum(['file', 'folder', 'link', 'other']), z.int(), z.number(), z.string(), z.string()])

/** Returns the manifest as JSON, for `readManifest`. */
export function manifestText(before: Manifest): string {
  return JSON.stringify([...before].map(([raw, { kind, mode, size, inode, changed }]) => [raw, kind, mode, size, inode, changed]))
}

/** @throws when the text is not of `manifestText` */
export function readManifest(text: string): Manifest {
  const lines = z.array(manifestLine).parse(JSON.parse(text))
  return new Map(lines.map(([raw, kind, mode, size, inode, changed]) => [raw, { kind, mode, size, inode, changed }]))
}

/** The folders of one attempt. */
export function attemptFolders(base: string, number: number) {
  const folder = join(base, String(number))
  return { copy: join(folder, 'workspace'), set: join(folder, 'set'), upper: join(folder, 'set', 'up') }
}

export type CopyChanges = {
  readonly host: Pick<Host, 'changes'>
  readonly setup: Setup
  /** The id of the change set in the store. */
  readonly id: string
  readonly about: Omit<About, 'at'>
  readonly workspace: string
  readonly changes: readonly Change[]
  /** The folder with the new files in `up` and the mark `start` of the beginning. */
  readonly set: string
  /** The folder of the copies; `set` is moved beside it. Absent: `set` stays where it is. */
  readonly base?: string
}

export type KeptCopy = { readonly id: string; readonly set: ChangeSet; readonly review: ChangeReview }

/**
 * Judges what was changed in a copy of the workspace, as if one command had made it, and keeps it as one change set that waits for a decision.
 * @throws the system's error */
export async function keepCopy({ host, setup, id, about, workspace, changes, set, base }: CopyChanges): Promise<KeptCopy> {
  const { config, paths, context } = setup
  const policy = policyOf(config, paths, context.env)
  const upper = join(set, 'up')
  using look = createLook({ workspace, upper, changes })
  const ruled = await createChangeRules(setup)(changes, look)
  const judged = { policy, level: 'supervised', approved: false, look, ruled } as const
  const review = reviewChanges(changes, { ...judged, git: readMoves({ upper, changes, context: judged }) })
  const { store } = await host.changes()
  // Renamed within its file system, so that the mark of the beginning keeps its time; the store links to it.
  const folder = base === undefined ? set : join(dirname(base), id)
  if (base !== undefined) renameSync(set, folder)
  await store.hold(id, { changes, review, about: { ...about, at: Date.now() }, folder })
  const shown = store.show(id)
  return { id, review, set: shown ? changeSetOf(shown) : { stage: 'made', changes, content: () => undefined } }
}
