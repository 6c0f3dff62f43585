/** Writes what changes in the workspace into the view of a command that still runs, so that its watchers notice, and reads what it changed so far. */

import {
  closeSync,
  constants,
  existsSync,
  fchmodSync,
  fstatSync,
  ftruncateSync,
  lstatSync,
  lutimesSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmdirSync,
  statfsSync,
  statSync,
  symlinkSync,
  unlinkSync,
  writeSync,
} from 'node:fs'
import { atEnd, attempt, hasCode, succeeds, unlessCode } from '../../kit/errors.ts'
import { statFields, textIn } from '../../kit/proc.ts'
import { sha256 } from '../../kit/sha256.ts'
import type { Change, EntryState } from '../../runtime/changes.ts'
import { isCacheName } from '../../security/changes/cache-names.ts'
import type { FollowedPath, PrivateView, RunningView } from '../contract.ts'
import type { Libc } from '../libc.ts'
import { type Attributes, bytePath, bytesOf, createAttributes } from './layer-files.ts'
import { isWhiteout, join } from './walk-upper.ts'

type RunningCommand = {
  /** The first process of the command's PID namespace. */
  readonly pid: number
  /** The folder of the transaction, and an empty one for a copy of what it wrote. */
  readonly folder: string
  readonly workspace: string
  readonly libc: Libc
  /** Tells whether commands must not read this absolute path. */
  readonly isHidden: (path: string) => boolean
  /** Creates a folder of a transaction for a copy of the layer, and its view. */
  readonly prepare: () => { readonly folder: string; view(): PrivateView; drop(): void }
}

export type OpenView = RunningView & {
  /** Leaves out of the changes what only followed the workspace. Call it when every process of the command has ended. */
  end(view: PrivateView): PrivateView
  close(): void
}

const { O_CREAT, O_DIRECTORY, O_EXCL, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_WRONLY } = constants
// node:fs does not export these two; the values are those of x86-64, arm64 and riscv64.
const FOLDER = 0o10000000 | O_DIRECTORY | O_NOFOLLOW | 0o2000000
const OVERLAY = 0x794c7630
/** A larger file is not written into views: every layer above would hold a copy of it. */
const LARGEST = 16 * 2 ** 20
/** The most entries that are followed at once; a large file counts as several of this size, because nothing else runs meanwhile. */
const MOST = 2_000
const ENTRY_BYTES = 65_536
const SET_UP_MS = 5_000
/** The longest time until every process of the command must be paused, in milliseconds. */
const PAUSE_MS = 2_000

/** The content of a path in one word, with the digest of a file or the target of a link. */
type PathState = string
const GONE: PathState = 'gone'

/** `written`: the state of each path as we last wrote it; `made`: the folders among them that the view had not. */
type FollowState = { readonly written: Map<string, PathState>; readonly made: Set<string>; readonly attributes: Attributes }
/** `view`, `lower` and `up` are descriptors of folders; `began` is when the command began. */
type FollowContext = RunningCommand &
  FollowState & { readonly view: number; readonly lower: number; readonly up: number; readonly began: bigint }

/**
 * Call it before the command starts: it waits until the sandbox is set up. Every part of a path is opened without following links, so the
 * command cannot lead a write out of its view. @returns why it does not work, as the end of a sentence
 */
export async function openRunningView(running: RunningCommand): Promise<OpenView | string> {
  const { folder, workspace, pid } = running
  const view = await viewRoot(pid, workspace)
  if (view === undefined) return 'its view of the workspace could not be opened'
  const known: FollowState = { written: new Map(), made: new Set(), attributes: createAttributes(running.libc) }
  const began = statSync(`${folder}/start`, { bigint: true }).ctimeNs
  const following = { ...running, ...known, view, lower: openSync(workspace, FOLDER), up: openSync(`${folder}/up`, FOLDER), began }
  // The number of a closed descriptor soon belongs to something else.
  const state = { isOpen: true }
  return {
    follow(changes) {
      if (!state.isOpen) return []
      const left = { entries: MOST }
      const ordered = changes
        .slice(0, MOST)
        .map(({ was, ...change }) => ({ path: rawPath(change), was: was === 'nothing' ? GONE : was && stateOf(was) }))
      const isGone = ({ path }: { readonly path: string }) => attempt(() => lstatAt(following.lower, path)) === undefined
      ordered.sort((a, b) => (a.path < b.path ? -1 : 1))
      // Deletes first and from the depth, so that a folder is empty when it is deleted.
      const all = [...ordered.filter(isGone).reverse(), ...ordered.filter((each) => !isGone(each))]
      return all.flatMap(({ path, was }) => (follow(following, { path, was, left }) ? [] : [bytesOf(path).toString()]))
    },
    async copy() {
      const target = running.prepare()
      try {
        using _ = await pauseProcesses(pid)
        for (const up of existsSync(`${folder}/up.git`) ? ['up', 'up.git'] : ['up']) {
          const words = ['/bin/cp', '-a', '--reflink=auto', `${folder}/${up}/.`, `${target.folder}/${up}`]
          const copied = Bun.spawn(words, { stdio: ['ignore', 'ignore', 'pipe'] })
          if ((await copied.exited) !== 0) throw new Error(`what it wrote could not be copied: ${(await copied.stderr.text()).trim()}`)
        }
        return ownChanges(following, target.view(), target.folder)
      } catch (error) {
        target.drop()
        throw error
      }
    },
    end: (view) => ownChanges(following, view, folder),
    close() {
      state.isOpen = false
      for (const fd of [view, following.lower, following.up]) closeSync(fd)
    },
  }
}

type PathToFollow = { readonly path: string; readonly was: PathState | undefined; readonly left: { entries: number } }

/** @returns false when the command changed the path itself, or it could not be written */
function follow(following: FollowContext, { path, was, left }: PathToFollow): boolean {
  const { lower, up, written } = following
  try {
    if (!isFollowed(following, path) || left.entries-- <= 0) return true
    const now = stateAt(lower, path)
    if (now.startsWith('file ')) left.entries -= Number(lstatAt(lower, path)?.size ?? 0) / ENTRY_BYTES
    const own = ownState(following, up, path)
    if (own !== undefined && own !== now && own !== written.get(path) && own !== was) return false
    if (own !== now) put(following, { path, was: now === 'folder' && isNewFolder(following, path) ? GONE : was, left }, now)
    written.set(path, now)
    return true
  } catch {
    return false
  }
}

function isFollowed({ lower, workspace, isHidden }: FollowContext, path: string): boolean {
  const parts = path.split('/')
  const has = (folder: string) => (sibling: string) => stateAt(lower, join(folder, sibling)) !== GONE
  return (
    parts.every((part) => !['', '.', '..', '.git'].includes(part)) &&
    !parts.some((part, at) => isCacheName(part, parts[at - 1] ?? '', has(parts.slice(0, at).join('/')))) &&
    !isHidden(`${workspace}/${bytesOf(path).toString()}`)
  )
}

function put(following: FollowContext, { path, was, left }: PathToFollow, now: PathState): void {
  const { view, lower, written, made } = following
  const above = foldersAbove(path)
  if (now === GONE) {
    const folder = above.at(-1)
    if (folder === undefined || stateAt(view, folder) === 'folder') within(view, path, (slot) => remove(slot, was))
    return
  }
  const unseen = above.find((folder) => !written.has(folder) && isNewFolder(following, folder))
  if (unseen !== undefined) follow(following, { path: unseen, was: GONE, left })
  const how = within(view, path, (slot) => within(lower, path, (from) => write({ slot, from, now, was })))
  if (how === undefined) return
  if (how === 'made') made.add(path)
  written.set(path, now)
  for (const name of within(lower, path, (from) => readdirSync(from, { encoding: 'buffer' })))
    follow(following, { path: join(path, name.toString('latin1')), was: GONE, left })
}

/** Tells whether the folder is younger than the command: a watcher that knows the folder above does not know it. */
function isNewFolder({ lower, began }: FollowContext, path: string): boolean {
  const stat = lstatAt(lower, path)
  return stat?.isDirectory() === true && stat.birthtimeNs > began
}

/** Reports only the changes of the command itself. @throws Error when somebody else changed one of these paths too */
function ownChanges({ workspace, began, ...known }: FollowContext, view: PrivateView, folder: string): PrivateView {
  // A copy must not see the paths that are followed later.
  const { written, made } = { written: new Map(known.written), made: new Set(known.made) }
  const isOurs = ({ after, ...change }: Change, up: number) => {
    const path = rawPath(change)
    if (!written.has(path)) return after === undefined && foldersAbove(path).some((above) => made.has(above))
    return ownState({ ...known, made }, up, path) === written.get(path)
  }
  /** Compares with the beginning of the command, or with what it was given since. */
  const isChangedTwice = ({ before, ...change }: Change, lower: number) => {
    if (before === undefined || before.kind === 'folder') return false
    const path = rawPath(change)
    const isOutside = path.startsWith('/')
    const changed = (isOutside ? lstatSync(bytesOf(path), { bigint: true, throwIfNoEntry: false }) : lstatAt(lower, path))?.ctimeNs
    if (isOutside) return changed !== undefined && changed > began
    return changed !== undefined && changed > began && stateAt(lower, path) !== written.get(path)
  }
  return {
    ...view,
    async changes(signal) {
      const all = await view.changes(signal)
      const [up, lower] = [openSync(`${folder}/up`, FOLDER), openSync(workspace, FOLDER)]
      using _end = atEnd(() => {
        for (const fd of [up, lower]) closeSync(fd)
      })
      const changes = all.filter((change) => !isOurs(change, up))
      const twice = changes.filter((change) => isChangedTwice(change, lower)).map(({ path }) => JSON.stringify(path))
      if (twice.length === 0) return changes
      throw new Error(`the command changed ${twice.slice(0, 10).join(', ')}, and so did somebody else meanwhile`)
    },
  }
}

/** Waits for the overlay at the place of the workspace in the sandbox's own mounts. */
async function viewRoot(pid: number, workspace: string): Promise<number | undefined> {
  for (const until = performance.now() + SET_UP_MS; performance.now() < until; await Bun.sleep(1)) {
    try {
      const root = openSync(`/proc/${pid}/root`, 0o10000000 | O_DIRECTORY | 0o2000000)
      using _end = atEnd(() => closeSync(root))
      const fd = within(root, bytePath(workspace).slice(1), (slot) => openSync(slot, FOLDER))
      if (statfsSync(`/proc/self/fd/${fd}`).type === OVERLAY) return fd
      closeSync(fd)
    } catch (error) {
      if (lstatSync(`/proc/${pid}`, { throwIfNoEntry: false }) === undefined) return undefined
      if (!(error instanceof Error)) throw error
    }
  }
}

/** Names the entry through the descriptor of its folder, which no rename or link can redirect. @throws the system's error */
function within<T>(root: number, path: string, work: (slot: Buffer) => T): T {
  const parts = path.split('/')
  const held: number[] = []
  const slot = (name: string) => bytesOf(`/proc/self/fd/${held.at(-1) ?? root}/${name}`)
  using _end = atEnd(() => {
    for (const fd of held) closeSync(fd)
  })
  for (const part of parts.slice(0, -1)) held.push(openSync(slot(part), FOLDER))
  return work(slot(parts.at(-1) ?? ''))
}

function lstatAt(root: number, path: string) {
  return within(root, path, (slot) => lstatSync(slot, { bigint: true, throwIfNoEntry: false }))
}

function stateAt(root: number, path: string): PathState {
  return unlessCode(['ENOENT', 'ENOTDIR'], () => within(root, path, stateIn)) ?? GONE
}

function stateIn(slot: Buffer): PathState {
  const stat = lstatSync(slot, { throwIfNoEntry: false })
  if (stat === undefined || isWhiteout(stat)) return GONE
  const mode = stat.mode & 0o777
  if (stat.isDirectory()) return 'folder'
  if (stat.isSymbolicLink()) return `link ${readlinkSync(slot, { encoding: 'buffer' }).toString('latin1')}`
  return stat.isFile() && stat.size <= LARGEST ? `file ${mode} ${sha256(contentOf(slot))}` : `large ${mode} ${stat.size} ${stat.mtimeMs}`
}

function contentOf(slot: Buffer): Buffer {
  return readFileSync(slot, { flag: O_RDONLY | O_NOFOLLOW | O_NONBLOCK })
}

function stateOf({ kind, mode, sha256, target }: EntryState): PathState | undefined {
  if (kind === 'folder') return kind
  if (kind === 'link') return `link ${bytePath(target ?? '')}`
  return sha256 === undefined ? undefined : `file ${mode & 0o777} ${sha256}`
}

/** @returns undefined when the layer has nothing at the path, so that the view shows the workspace there */
function ownState({ made, attributes }: Pick<FollowState, 'made' | 'attributes'>, up: number, path: string): PathState | undefined {
  let isCovered = false
  for (const above of foldersAbove(path)) {
    const stat = lstatAt(up, above)
    if (stat === undefined) return isCovered ? GONE : undefined
    if (!stat.isDirectory()) return GONE
    isCovered ||= !made.has(above) && attributes.isOpaque(`/proc/self/fd/${up}/${above}`)
  }
  return lstatAt(up, path) !== undefined ? stateAt(up, path) : isCovered ? GONE : undefined
}

type EntryWrite = { readonly slot: Buffer; readonly from: Buffer; readonly now: PathState; readonly was: PathState | undefined }

/** @returns how the command learns of a folder that it did not know: it was made in the view, or only touched for a watcher */
function write({ slot, from, now, was }: EntryWrite): 'made' | 'touched' | undefined {
  const there = lstatSync(slot, { throwIfNoEntry: false })
  if (now === 'folder' && there?.isDirectory()) {
    if (was !== GONE) return
    lutimesSync(slot, there.atime, there.mtime)
    return 'touched'
  }
  if (there?.isDirectory()) rmdirSync(slot)
  else if (there !== undefined && !(there.isFile() && now.startsWith('file ') && was !== GONE)) unlinkSync(slot)
  if (now === 'folder') mkdirSync(slot, lstatSync(from).mode & 0o777)
  else if (now.startsWith('link ')) symlinkSync(bytesOf(now.slice(5)), slot)
  else if (now.startsWith('file ')) writeFile(slot, contentOf(from), Number(now.split(' ')[1]))
  else throw new Error('too large, or not a file')
  return now === 'folder' ? 'made' : undefined
}

/** An event tells a watcher to look at the folder again, also when the view no longer shows the file. */
function remove(slot: Buffer, was: PathState | undefined): void {
  const there = lstatSync(slot, { throwIfNoEntry: false })
  if (there === undefined && (was === undefined || was === 'folder')) return
  if (there === undefined) closeSync(openSync(slot, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW))
  if (there?.isDirectory()) rmdirSync(slot)
  else unlinkSync(slot)
}

/** Writes in place, because a watcher of the file watches its inode; one write keeps a reader from seeing an empty file. */
function writeFile(slot: Buffer, content: Buffer, mode: number): void {
  const fd = openForWriting(slot)
  using _end = atEnd(() => closeSync(fd))
  for (let at = 0; at < content.length; ) at += writeSync(fd, content, at, content.length - at, at)
  ftruncateSync(fd, content.length)
  if ((fstatSync(fd).mode & 0o777) !== mode) fchmodSync(fd, mode)
}

function openForWriting(slot: Buffer): number {
  try {
    return openSync(slot, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0o600)
  } catch (error) {
    if (!hasCode(error, 'EACCES')) throw error
    unlinkSync(slot)
    return openSync(slot, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600)
  }
}

function foldersAbove(path: string): string[] {
  const parts = path.split('/').slice(0, -1)
  return parts.map((_, at) => parts.slice(0, at + 1).join('/'))
}

/** Returns the path with one character per byte. */
function rawPath({ path, bytes }: Pick<FollowedPath, 'path' | 'bytes'>): string {
  return bytes === undefined ? bytePath(path) : Buffer.from(bytes, 'base64').toString('latin1')
}

/**
 * Pauses every process of a sandbox, so that what it wrote can be copied as it is at one moment. All of a PID namespace descend from its
 * first one. None can ignore the signal; new ones are looked for until none runs.
 * @throws Error when that takes too long
 */
async function pauseProcesses(first: number): Promise<Disposable> {
  const paused = new Set<number>()
  const resume = () => {
    for (const pid of paused) signal(pid, 'SIGCONT')
  }
  for (const until = performance.now() + PAUSE_MS; performance.now() < until; await Bun.sleep(1)) {
    const running = descendantsOf(first).filter(([, state]) => !'TtZX'.includes(state))
    if (running.length === 0) return { [Symbol.dispose]: resume }
    for (const [pid] of running) if (signal(pid, 'SIGSTOP')) paused.add(pid)
  }
  resume()
  throw new Error('its processes could not be paused')
}

/** @returns each process with its state */
function descendantsOf(first: number): (readonly [pid: number, state: string])[] {
  const children = Map.groupBy(
    readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .flatMap(processOf),
    ({ parent }) => parent,
  )
  const below = (pid: number): (readonly [number, string])[] =>
    (children.get(pid) ?? []).flatMap((each) => [[each.pid, each.state] as const, ...below(each.pid)])
  return below(first)
}

function processOf(name: string) {
  const stat = textIn(`/proc/${name}/stat`)
  const field = statFields(stat)
  return stat === '' ? [] : [{ pid: Number(name), parent: Number(field(4)), state: field(3) }]
}

function signal(pid: number, name: 'SIGSTOP' | 'SIGCONT'): boolean {
  return succeeds(() => process.kill(pid, name))
}
