/**
 * Writes a consistent copy of a home while it is in use: the database first, then the receipts and the agents' files as far as it knows
 * them.
 */

import { chmodSync, existsSync, lstatSync, mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, relative } from 'node:path'
import { namesIn } from '../../../kit/proc.ts'
import { realDisk } from '../../../memory/agent-files/disk.ts'
import type { Memory } from '../../../memory/memory.ts'
import { createDatabaseCopies } from '../../../memory/rebuild/database-copy.ts'
import type { Checkpoint } from '../../../receipts/contract.ts'
import { headLine } from '../../../receipts/form/anchor.ts'
import { filesOf } from '../../../receipts/segments.ts'
import { stageOf } from '../../../workspace/changes/set/set-folder.ts'
import type { Setup } from '../../api.ts'
import { FailureError } from '../../failure.ts'
import { copyPieces, digestOf, isBackup, type Manifest, type ManifestFile, manifestName, type Progress } from './manifest.ts'
import { isPartial } from './partial-folder.ts'

/** Opens a copy of the database. */
export type OpenCopy = <T>(path: string, use: (memory: Memory) => T | Promise<T>) => Promise<T>

export type BackupOptions = {
  readonly openCopy: OpenCopy
  readonly setup: Pick<Setup, 'config' | 'paths' | 'log'>
  readonly memory: Memory
  readonly target: string
  /** Includes files with API keys. */
  readonly withKeys: boolean
  readonly progress: Progress
  /** Aborted by Ctrl-C. */
  readonly signal: AbortSignal
}

export type WrittenBackup = { readonly manifest: Manifest; readonly bytes: number }

/** How often the copy starts again when a rotation of the receipts, or a new summary of an agent, comes in between. */
const mostTries = 3

/** The target is an empty folder. @throws FailureError */
export async function writeBackup(options: BackupOptions): Promise<WrittenBackup> {
  const { target } = options
  for (let tries = 1; ; tries += 1) {
    const done = await copyHome(options, target)
    if (done) return done
    if (tries === mostTries) throw new FailureError('error', 'the home changed too much while it was copied; try again')
    rmSync(target, { recursive: true, force: true })
    mkdirSync(target, { mode: 0o700 })
  }
}

/** @returns undefined when something was replaced meanwhile */
async function copyHome(
  { setup, memory, openCopy, withKeys, progress, signal }: BackupOptions,
  folder: string,
): Promise<WrittenBackup | undefined> {
  const { config, paths } = setup
  const names = { database: inHome(paths.home, config.memory.path), log: inHome(paths.home, config.receipts.path) }
  const segments = filesOf(config.receipts.path).join()
  const database = join(folder, names.database)
  mkdirSync(dirname(database), { recursive: true, mode: 0o700 })
  createDatabaseCopies(memory.store).copyTo(database)
  chmodSync(database, 0o600)
  const known = await openCopy(database, async (copy) => {
    const { marks, pointers } = createDatabaseCopies(copy.store)
    return { checkpoint: copy.checkpoint.get(), marks: marks(), pointers: pointers() }
  })
  const made: ManifestFile[] = [recorded(folder, names.database, 0o600)]

  const receipts = receiptFiles(config.receipts.path, known.checkpoint)
  const special = new Set([names.database, `${names.database}-wal`, `${names.database}-shm`, ...['receipts.head', names.log]])
  for (const { from } of receipts) special.add(inHome(paths.home, from))
  // They are rewritten at each turn, so what lies in the home may belong to a later one than the copied database.
  const pointers = known.pointers.map(({ path, due }) => ({ path: relative(dirname(database), path), due }))
  for (const { path } of pointers) special.add(path)
  const marked = new Map(known.marks.map(({ folder: at, file, bytes }) => [join(at, file), bytes]))
  const { files, leftOut } = homeFiles(paths.home, { withKeys, except: special })
  const requests: readonly CopyRequest[] = [
    ...receipts.map(({ from, most }) => ({ from, to: join(dirname(names.log), basename(from)), mode: 0o600, exact: true, most })),
    ...files.map(({ path, mode }) => wantedFile(join(paths.home, path), path, { mode, bytes: marked.get(join(paths.home, path)) })),
  ]
  for (const [at, each] of requests.entries()) {
    signal.throwIfAborted()
    const file = copyFile(folder, each)
    if (file === 'short') return undefined
    if (file) made.push(file)
    progress(at / requests.length)
    await Bun.sleep(0)
  }
  if (filesOf(config.receipts.path).join() !== segments) return undefined
  for (const { path, due } of pointers) if (due !== undefined) made.push(written(folder, path, `${due}\n`))
  if (known.checkpoint) made.push(written(folder, 'receipts.head', `${headLine(known.checkpoint)}\n`))
  const manifest: Manifest = {
    ...{
      format: 1,
      made: new Date().toISOString(),
      home: paths.home,
      with_keys: withKeys,
      database: names.database,
      files: made,
      left_out: [...leftOut],
    },
    receipts: known.checkpoint ? { log_id: known.checkpoint.logId, count: known.checkpoint.count, head: known.checkpoint.head } : null,
  }
  signal.throwIfAborted()
  written(folder, manifestName, `${JSON.stringify(manifest, undefined, 1)}\n`)
  realDisk.syncFolder(folder)
  progress(1)
  return { manifest, bytes: made.reduce((sum, { size }) => sum + size, 0) }
}

/** A file that the configuration puts elsewhere gets a place in the copy under its own name. */
function inHome(home: string, path: string): string {
  return path.startsWith(`${home}/`) ? path.slice(home.length + 1) : basename(path)
}

/** Closed segments are whole; of the log only what the copied database knows. */
function receiptFiles(log: string, checkpoint: Checkpoint | undefined): readonly { readonly from: string; readonly most?: number }[] {
  if (!checkpoint) return []
  return filesOf(log).map((from) => (from === log ? { from, most: checkpoint.size } : { from }))
}

type CopyRequest = {
  readonly from: string
  readonly to: string
  readonly mode: number
  /** Copies only so many bytes. */
  readonly most?: number
  /** The file must have that many bytes, and must exist. */
  readonly exact: boolean
}

function wantedFile(from: string, to: string, { mode, bytes }: { readonly mode: number; readonly bytes: number | undefined }): CopyRequest {
  return { from, to, mode, exact: bytes !== undefined, most: bytes }
}

/** @returns `short` when it has fewer bytes than the database knows; undefined when it is gone */
function copyFile(folder: string, { from, to, mode, most, exact }: CopyRequest): ManifestFile | 'short' | undefined {
  const path = join(folder, to)
  // A file that grows while it is copied is cut where it was.
  const size = most ?? statSync(from, { throwIfNoEntry: false })?.size ?? 0
  const digest = copyPieces(from, path, mode, size)
  if (digest && (!exact || digest.size === size)) return { path: to, mode, ...digest }
  rmSync(path)
  // A file that is gone by now does not belong to the home any more; one that cannot be read would be missed.
  if (!digest && existsSync(from)) throw new FailureError('error', `${from} cannot be read, so nothing was backed up; check who owns it`)
  return exact ? 'short' : undefined
}

function written(folder: string, path: string, text: string): ManifestFile {
  mkdirSync(dirname(join(folder, path)), { recursive: true, mode: 0o700 })
  writeFileSync(join(folder, path), text, { mode: 0o600, flush: true })
  return recorded(folder, path, 0o600)
}

function recorded(folder: string, path: string, mode: number): ManifestFile {
  const digest = digestOf(join(folder, path))
  if (!digest) throw new FailureError('error', `${join(folder, path)} cannot be read again`)
  return { path, mode, ...digest }
}

type HomeFiles = {
  readonly files: readonly { readonly path: string; readonly mode: number }[]
  /** Links, sockets, FIFOs and devices, and backups, which would otherwise hold all backups before them. */
  readonly leftOut: readonly string[]
}

/** Folders of the home that are made again by themselves, or belong to the running processes. */
const transient = new Set(['run', 'logs', 'caches', 'tmp', 'telegram'])
/** Tells whether a folder is the view of a command that runs; a change set of the same name, which is kept, has a stage. */
const isRunningView = (home: string, path: string) => /^changes\/tx-[^/]+$/.test(path) && stageOf(join(home, path)) === undefined
/** Files with API keys, tokens and passwords. */
const secret = /^(keys\.env|config\.env|config\/[^/]*\.env)$/

/** Lists the files of a home that belong into a backup. `except`: paths below the home that are copied in another way. */
function homeFiles(home: string, { withKeys, except }: { readonly withKeys: boolean; readonly except: ReadonlySet<string> }): HomeFiles {
  const files: { path: string; mode: number }[] = []
  const leftOut: string[] = []

  function walk(folder: string): void {
    for (const name of namesIn(join(home, folder)).sort()) {
      const path = folder === '' ? name : `${folder}/${name}`
      const found = lstatSync(join(home, path), { throwIfNoEntry: false })
      if (!found || except.has(path) || (folder === '' && transient.has(name)) || isRunningView(home, path) || isPartial(name)) continue
      if (!withKeys && secret.test(path)) continue
      if ((found.isDirectory() || found.isFile()) && isBackup(home, path, found.isDirectory())) leftOut.push(path)
      else if (found.isDirectory()) walk(path)
      else if (found.isFile()) files.push({ path, mode: found.mode & 0o777 })
      else leftOut.push(path)
    }
  }

  walk('')
  return { files, leftOut }
}
