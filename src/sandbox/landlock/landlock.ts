/** Provides the fallback without namespaces: our own program gives up access to all but a few paths and becomes the command. */

import { existsSync, lstatSync, mkdirSync, readdirSync, realpathSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { attempt } from '../../kit/errors.ts'
import type { Created, SandboxSettings, SpawnPlan, SpawnResult } from '../contract.ts'
import { privateBelow } from '../filesystem/system-files.ts'
import { openLibc } from '../libc.ts'
import { failureMark } from '../pipes/command-pipes.ts'
import { ownFolder } from '../private-folder.ts'
import { findUnread, forbiddenIn } from '../protect/forbidden.ts'
import { isWithin, type Places } from '../protect/places.ts'
import { withoutMounts } from '../readable.ts'
import { failureCode, landlockVersion, type Orders } from './landlock-launch.ts'

type LandlockOptions = { readonly settings: SandboxSettings; readonly places: Places }
type Grants = Orders['grants']

const programs = ['/usr', '/opt', '/nix/store', '/gnu/store', '/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32']
const devices = ['/dev/null', '/dev/zero', '/dev/full', '/dev/random', '/dev/urandom']

export const noLandlock = 'this kernel has no Landlock (Linux 5.13 and "landlock" among its security modules are needed)'

/** Tells whether this kernel has Landlock. */
export function hasLandlock(): boolean {
  return landlockVersion(openLibc()) > 0
}

export async function createLandlock({ settings, places }: LandlockOptions): Promise<Created> {
  const abi = landlockVersion(openLibc())
  if (abi === 0) return { ok: false, missing: noLandlock }
  if (settings.allowedDomains.length > 0)
    return { ok: false, missing: 'Landlock cannot let single hosts through; install bubblewrap and socat, or empty allowed_domains' }
  const folder = ownFolder(places.stateHome, settings.log)
  if (!folder.ok) return folder
  const known: { grants?: Grants } = {}
  return {
    ok: true,
    sandbox: {
      name: 'landlock',
      describe: () => describe(abi, settings),
      privateViews: async () => ({ ok: false, why: 'Landlock makes no mounts' }),
      spawn: async (plan) => {
        known.grants ??= systemGrants()
        return await launch({ plan, settings, places, scratch: join(folder.path, 'tmp'), grants: known.grants })
      },
      close: folder.remove,
    },
  }
}

/**
 * Grants read access only to files that everybody may read. A rule on a folder covers everything below it, so folders with secrets are
 * opened entry by entry.
 */
function systemGrants(): Grants {
  const { files, folders } = privateBelow('/etc')
  const read = [
    ...programs.flatMap((path) => (existsSync(path) ? [realpathSync(path)] : [])),
    '/proc',
    ...openBelow('/etc', [...files, ...folders]),
  ]
  return [
    ...[...new Set(read)].map((path) => ({ path, grant: 'read' as const })),
    ...devices.map((path) => ({ path, grant: 'device' as const })),
  ]
}

function openBelow(folder: string, secrets: readonly string[]): string[] {
  if (!secrets.some((path) => path.startsWith(`${folder}/`))) return [folder]
  return readdirSync(folder).flatMap((name) => {
    const path = join(folder, name)
    if (secrets.includes(path)) return []
    const stat = lstatSync(path)
    if (stat.isSymbolicLink()) return []
    if (stat.isDirectory()) return openBelow(path, secrets)
    return [path]
  })
}

/** @returns the paths in the workspace that stay closed: the forbidden paths, and our own files */
function closedIn(
  { forbiddenPaths, forbiddenReads = [], secretPaths = [] }: SandboxSettings,
  { workspace, stateHome, home }: Places,
): readonly string[] {
  const secrets = [home, stateHome, ...secretPaths].filter((path) => existsSync(path)).map((path) => realpathSync(path))
  const unread = findUnread({ patterns: forbiddenReads, workspace, home }).files
  return forbiddenIn(workspace, [...(forbiddenPaths?.() ?? []), ...unread, ...secrets])
}

type GrantRequest = { readonly workspace: string; readonly closed: readonly string[]; readonly grant: 'read' | 'write' }

/**
 * A rule covers everything below its folder. So a folder with a closed path inside only gets permission to list its names, and each other
 * entry gets its own rule. A new entry there would be readable, or writable without a rule, so commands cannot create any.
 */
function workspaceGrants({ workspace, closed, grant }: GrantRequest): Grants {
  if (!closed.some((path) => isWithin(path, workspace))) return [{ path: workspace, grant }]
  const inside = readdirSync(workspace).map((name) => join(workspace, name))
  const open = inside.filter((path) => !closed.includes(path) && !isLink(path))
  return [{ path: workspace, grant: 'list' }, ...open.flatMap((path) => workspaceGrants({ workspace: path, closed, grant }))]
}

function isLink(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() ?? true
}

type Launch = LandlockOptions & { readonly plan: SpawnPlan; readonly scratch: string; readonly grants: Grants }

async function launch({ plan: given, settings, places, scratch, grants }: Launch): Promise<SpawnResult> {
  const plan = withoutMounts(given)
  const own = join(scratch, crypto.randomUUID())
  mkdirSync(own, { recursive: true, mode: 0o700 })
  const orders: Orders = {
    cwd: plan.cwd,
    env: { ...plan.env, HOME: own, TMPDIR: own },
    grants: [
      ...grants,
      ...(plan.readablePaths ?? []).map(({ path, from = path }) => ({ path: from, grant: 'read' as const })),
      ...workspaceGrants({ workspace: places.workspace, closed: closedIn(settings, places), grant: plan.readOnly ? 'read' : 'write' }),
      { path: own, grant: 'write' },
    ],
    limits: { ...settings.limits, processes: settings.limits.processes + runningTasks() },
    mark: failureMark(),
  }
  const first: { text?: string } = {}
  const onOutput = (chunk: Uint8Array, from: 'stdout' | 'stderr') => {
    if (from === 'stderr') first.text ??= Buffer.from(chunk).toString()
    plan.onOutput(chunk, from)
  }
  const argv = [...launcher(), JSON.stringify(orders), ...plan.argv]
  const ended = await settings.spawnPlain({ ...plan, argv, cwd: '/', env: {}, onOutput })
  rmSync(own, { recursive: true, force: true })
  const failed = ended.ok && ended.code === failureCode && first.text?.startsWith(orders.mark)
  return failed ? { ok: false, message: first.text?.slice(orders.mark.length).trim() ?? '' } : ended
}

/** The compiled program has a hidden command for this; from source, the function is called directly. */
function launcher(): string[] {
  if (import.meta.path.startsWith('/$bunfs/')) return [process.execPath, '__landlock']
  const module = join(import.meta.dir, 'landlock-launch.ts')
  const script = `(await import(${JSON.stringify(module)})).runLandlocked(process.argv.slice(1))`
  return [process.execPath, '--config=/dev/null', '--no-env-file', '-e', script]
}

/** The kernel's limit counts all threads of this user, not only those of the command. */
function runningTasks(): number {
  const uid = process.getuid?.()
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((name) => tasks(`/proc/${name}`, uid))
    .reduce((sum, count) => sum + count, 0)
}

function tasks(path: string, uid: number | undefined): number {
  return attempt(() => (statSync(path).uid === uid ? readdirSync(`${path}/task`).length : 0)) ?? 0
}

function describe(abi: number, { workspace, limits }: SandboxSettings): string[] {
  return [
    `landlock (version ${abi}): ${workspace} and a private TMPDIR writable, programs and /etc readable, all else closed`,
    'landlock: protected paths INSIDE the workspace are not protected; a process that leaves its group (setsid) is not ended',
    'landlock: forbidden paths inside the workspace cannot be read or changed; their names are seen, and in the folders on the way to them nothing new can be made',
    abi >= 6
      ? 'landlock: no signals and no abstract sockets to the outside'
      : 'landlock: signals to other processes of this user are NOT stopped',
    'seccomp: no sockets but pairs, no ptrace, mounts, new namespaces, io_uring, bpf, keyrings, devices, set-user-ID programs, terminal injection',
    `limits: ${limits.memoryBytes} B of data, ${limits.fileBytes} B a file, ${limits.cpuSeconds} s of processor time a process`,
    'environment: only what the tool gives; that of our own process cannot be read',
    'no_new_privs',
  ]
}
