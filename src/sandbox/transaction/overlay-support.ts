/** Finds out by a trial, which takes some 10 ms, whether an overlay of the workspace works here and how it is mounted, and keeps the result. */

import { existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { atEnd, attempt, errorText } from '../../kit/errors.ts'
import { hasOption } from '../install.ts'
import type { Libc } from '../libc.ts'
import { isWithin, type Places } from '../protect/places.ts'
import { fixedPath, trialKey } from '../trial-key.ts'
import { bytePath, createAttributes, lookAt } from './layer-files.ts'
import { createTransaction } from './transaction-folder.ts'
import { isWhiteout } from './walk-upper.ts'

/** `base` holds the folders of the transactions, `caches` those of the caches, both on the same file system. */
export type OverlaySupport =
  | { readonly ok: true; readonly way: OverlayWay; readonly programs: Programs; readonly base: string; readonly caches: string }
  | { readonly ok: false; readonly why: string }

type Trying = { readonly places: Places; readonly bubblewrap: string; readonly libc: Libc }

/** Ends a mount that hangs; no other takes this long. */
const TRIAL_MS = 10_000

export async function tryOverlay({ places, bubblewrap, libc }: Trying): Promise<OverlaySupport> {
  const [unshare, mount] = ['unshare', 'mount'].map((name) => Bun.which(name, { PATH: fixedPath }))
  const way = hasOption('--overlay-src', bubblewrap) ? 'bubblewrap' : 'unshare'
  if (!unshare || !mount) return { ok: false, why: 'the programs unshare and mount (package util-linux) are not installed' }
  const programs = { unshare, mount }
  const failures: string[] = []
  for (const root of candidates(places)) {
    const { base, caches } = { base: join(root, 'changes'), caches: join(root, 'caches') }
    if (root !== places.stateHome && !isOurs(root)) continue
    const why = await tryIn({ base, caches, way, programs, places, bubblewrap, libc }).catch(errorText)
    if (why === undefined) return { ok: true, way, programs, base, caches }
    failures.push(`${base}: ${why}`)
  }
  return { ok: false, why: failures[0] ?? 'no folder can hold what a command writes' }
}

/** Returns our own state first: its files survive a restart, and are mostly on the file system of the workspace. */
function candidates({ stateHome, workspace }: Places): string[] {
  const user = `braidclaw-${process.geteuid?.() ?? 0}`
  return [stateHome, join(tmpdir(), user), join('/dev/shm', user)].filter((root) => !isWithin(root, workspace))
}

/** Everybody may write to the folders for temporary files, so a folder there must belong to us alone. */
function isOurs(folder: string): boolean {
  const stat = attempt(() => {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    return lstatSync(folder)
  })
  return stat?.isDirectory() === true && stat.uid === process.geteuid?.() && (stat.mode & 0o077) === 0
}

type Trial = Trying & { readonly base: string; readonly caches: string; readonly way: OverlayWay; readonly programs: Programs }

const PROBE = '.braidclaw-overlay-trial'

/** Copies a file up, removes a file, and replaces a folder, as commands do. The workspace lies below, but nothing in it is touched. */
const trialScript = `cd -- "$1/${PROBE}" && echo b >> file && rm gone && rm -r folder && mkdir folder && echo c > folder/new && rmdir empty`

/** @returns why it does not work @throws the system's error */
async function tryIn({ base, caches, way, programs, places, bubblewrap, libc }: Trial): Promise<string | undefined> {
  const { workspace } = places
  for (const folder of [base, caches]) mkdirSync(folder, { recursive: true, mode: 0o700 })
  const { folder, drop } = createTransaction(base, { workspace, cache: 'trial' })
  using _end = atEnd(drop)
  const layer = join(folder, 'trial', PROBE)
  for (const name of ['folder', 'empty']) mkdirSync(join(layer, name), { recursive: true })
  for (const name of ['file', 'gone', 'folder/old']) writeFileSync(join(layer, name), 'a\n')
  const { before, mounts } = overlayLaunch({ way, folder, workspace, programs })
  const inside = ['--', '/bin/sh', '-c', trialScript, 'sh', workspace]
  const argv = [...before, bubblewrap, '--unshare-user', '--ro-bind', '/', '/', ...mounts, ...inside]
  const child = Bun.spawn(argv, { cwd: '/', env: {}, stdio: ['ignore', 'ignore', 'pipe'], timeout: TRIAL_MS, killSignal: 'SIGKILL' })
  const [complaint, code] = await Promise.all([child.stderr.text(), child.exited])
  if (code !== 0) return complaint.trim().split('\n').at(-1) || `a trial ended with ${child.signalCode ?? code}`
  return unexpected(libc, join(folder, 'up', PROBE))
}

/** @returns what the upper layer does not have as it should */
function unexpected(libc: Libc, up: string): string | undefined {
  const at = (name: string) => bytePath(join(up, name))
  if (!existsSync(join(up, 'file')) || readdirSync(join(up, 'folder')).join() !== 'new') return 'the layer does not hold what was written'
  const marks = ['gone', 'empty'].map((name) => lookAt(at(name)))
  if (!marks.every((stat) => stat !== undefined && isWhiteout(stat))) return 'the layer does not tell what was removed'
  return createAttributes(libc).isOpaque(at('folder')) ? undefined : 'the layer does not tell what was replaced'
}

/** `bubblewrap`: it mounts the overlay itself, from version 0.11 on. `unshare`: a shell mounts it before bubblewrap starts. */
type OverlayWay = 'bubblewrap' | 'unshare'

export type OverlayLaunch = {
  /** Words that stand before the name of bubblewrap. */
  readonly before: readonly string[]
  /** bubblewrap's own arguments. */
  readonly mounts: readonly string[]
}

type Launching = {
  readonly way: OverlayWay
  /** The folder of the transaction. */
  readonly folder: string
  readonly workspace: string
  readonly programs: Programs
  /** The command cannot write to the view. */
  readonly readOnly?: boolean
  /** A git directory outside the workspace that gets an overlay of its own. */
  readonly outside?: string | undefined
}

/** Absolute paths. */
type Programs = { readonly unshare: string; readonly mount: string }

/**
 * Relative names need no escaping and keep our paths out of the command's /proc/self/mountinfo. Without `userxattr` removing a folder ends
 * in an input/output error. `volatile` leaves out a flush to the disk for each file that is copied.
 */
const overlayOf = (lower: string, of = '') =>
  `"$2" -i -n -t overlay overlay -o lowerdir=${lower},upperdir=up${of},workdir=work${of},userxattr,volatile mnt${of}`
const script = `cd -- "$1" && ${overlayOf('cache:lower')} && cd / && shift 2 && exec "$@"`
const bothScript = script.replace(' && cd /', ` && ${overlayOf('lower.git', '.git')}$&`)

/** Builds the words that put an overlay in the place of the workspace, for both versions of bubblewrap. */
export function overlayLaunch({ way, folder, workspace, programs, readOnly = false, outside }: Launching): OverlayLaunch {
  if (way === 'unshare')
    return {
      before: [programs.unshare, '-Urm', '/bin/sh', '-c', outside === undefined ? script : bothScript, 'sh', folder, programs.mount],
      mounts: [
        // The workspace may lie in the git directory.
        ...(outside === undefined ? [] : ['--bind', join(folder, 'mnt.git'), outside]),
        ...[readOnly ? '--ro-bind' : '--bind', join(folder, 'mnt'), workspace],
      ],
    }
  // bubblewrap takes the lowest layer first.
  const layers = ['--overlay-src', workspace, '--overlay-src', join(folder, 'cache')]
  const git =
    outside === undefined ? [] : ['--overlay-src', outside, '--overlay', join(folder, 'up.git'), join(folder, 'work.git'), outside]
  const overlay = [...git, ...layers, '--overlay', join(folder, 'up'), join(folder, 'work'), workspace]
  return { before: [], mounts: readOnly ? [...overlay, '--remount-ro', workspace] : overlay }
}

/** @returns the stored result until something changes that could change it, else a new one. A failure is never stored, because somebody may fix the cause. */
export async function overlaySupport(trying: Trying): Promise<{ readonly support: OverlaySupport; readonly stored: boolean }> {
  const [key, file] = [keyOf(trying.places), fileOf(trying.places)]
  const found = read(file, key)
  if (found !== undefined) return { support: found, stored: true }
  const support = await tryOverlay(trying)
  if (support.ok) store(file, { key, support })
  return { support, stored: false }
}

/** Tells whether the layers of a view can also lie over this folder outside the workspace, and keeps that result, too. */
export async function overlayTakes(
  folder: string,
  { support, ...trying }: Trying & { readonly support: OverlaySupport },
): Promise<boolean> {
  if (!support.ok) return false
  const places = { ...trying.places, workspace: folder }
  const [key, file] = [`${support.base}\n${keyOf(places)}`, fileOf(places, '-git')]
  if (read(file, key) !== undefined) return true
  const why = await tryIn({ ...trying, ...support, places }).catch(errorText)
  if (why === undefined) store(file, { key, support })
  return why === undefined
}

export function forgetSupport(places: Places): void {
  for (const more of ['', '-git']) rmSync(fileOf(places, more), { force: true })
}

function fileOf({ stateHome }: Places, more = ''): string {
  return join(stateHome, 'run', `overlay-works${more}`)
}

/** The file systems decide too. */
function keyOf({ workspace, stateHome }: Places): string {
  const devices = [workspace, stateHome].map((path) => statSync(path, { throwIfNoEntry: false })?.dev)
  return [workspace, ...devices, process.env.TMPDIR, trialKey()].join('\n')
}

/** We wrote the file ourselves, into a folder that nobody else can write to. */
function read(file: string, key: string): OverlaySupport | undefined {
  const found = attempt((): { key: string; support: OverlaySupport } => JSON.parse(readFileSync(file, 'utf8')))
  return found?.key === key ? found.support : undefined
}

/** Stores the result; without it, every process runs the trial. */
function store(file: string, found: { readonly key: string; readonly support: OverlaySupport }): void {
  // The state folder may be read-only.
  attempt(() => {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
    writeFileSync(file, JSON.stringify(found), { mode: 0o600 })
  })
}
