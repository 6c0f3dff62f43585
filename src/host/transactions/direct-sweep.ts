/**
 * Looks over the workspace after a command that worked on it directly, by the rules that judge the changes of a private view, and moves
 * aside what these rules never apply: git, editors and shells would run or obey it unasked.
 */

import { lstatSync, readdirSync, readlinkSync, renameSync, type Stats, symlinkSync } from 'node:fs'
import { succeeds } from '../../kit/errors.ts'
import { quote } from '../../kit/text.ts'
import type { Change, EntryState } from '../../runtime/changes.ts'
import { findToolchains } from '../../sandbox/filesystem/toolchains.ts'
import { isStub } from '../../sandbox/protect/placeholders.ts'
import { gitParts, isGitFolder } from '../../security/changes/git/git-folders.ts'
import { findingsOf } from '../../security/changes/review-changes.ts'
import { type ChangeFinding, describeFindings } from '../../security/changes/review-context.ts'
import type { Policy } from '../../security/policy.ts'
import { isProtectedName } from '../../security/targets/protected.ts'
import type { Spawn, SpawnPlan, SpawnResult } from '../../tools/process.ts'
import { movedAside } from '../../workspace/changes/contract.ts'
import { createLook, type OpenLook } from '../../workspace/changes/look.ts'
import { bytesAt, namesOf, type RawName, rawName } from '../../workspace/changes/tree/entry.ts'
import { createPace } from '../../workspace/changes/tree/tree.ts'
import type { Originals } from '../../workspace/contract.ts'
import { codeOf } from '../../workspace/descriptor.ts'
import type { Setup } from '../api.ts'
import { runByGit } from './git-around.ts'

/** Runs the command, and adds to its end what was moved aside. */
export type Sweep = (plan: SpawnPlan, spawn: Spawn) => Promise<SpawnResult>

type Sweeping = {
  readonly setup: Pick<Setup, 'context' | 'paths'>
  readonly policy: Policy
  readonly originals: Pick<Originals, 'delete'>
  readonly runId: () => string
  /** Looks at so many names for so long, in milliseconds, and judges so many changes; beyond, the answer says so. */
  readonly bounds?: Bounds
}

type Bounds = { readonly entries: number; readonly ms: number; readonly changes: number }
/** The times of files lag behind the clock by so many milliseconds at most. */
const CLOCK_MS = 10
const MOST_NESTED = 90

type SweptEntry = EntryState & { readonly ino: number; readonly ctimeMs: number }
/** Folders come before what is in them. */
type SweepSurvey = { readonly entries: ReadonlyMap<RawName, SweptEntry>; readonly closed: ReadonlySet<RawName>; readonly complete: boolean }

export function createSweep({
  setup,
  policy,
  originals,
  runId,
  bounds = { entries: 400_000, ms: 15_000, changes: 100_000 },
}: Sweeping): Sweep {
  const { workspace, home, autonomy, approveAllMedium } = policy
  const { env } = setup.context

  /** The call itself was approved where it asked, and a person's yes to `git clone` covers what only a person may allow. */
  function refusedIn(changes: readonly Change[], { argv, view }: SpawnPlan): readonly ChangeFinding[] {
    using look = createLook({ workspace, upper: workspace, changes })
    const approved = view === 'direct' || (autonomy === 'supervised' && !approveAllMedium)
    return findingsOf(changes, {
      policy,
      level: 'full',
      approved,
      command: { kind: 'argv', argv, executable: argv[0] ?? '' },
      look: withoutPast(look, changes),
      runByGit: runByGit({ workspace, home, env }),
      readOnlyFolders: () => findToolchains({ path: env.PATH ?? '', home, except: [workspace, setup.paths.home] }).mounts,
    }).filter(({ weight }) => weight === 'deny' || (weight === 'person' && !approved))
  }

  async function lookOver(plan: SpawnPlan, before: SweepSurvey, since: number): Promise<readonly string[]> {
    const after = await survey(workspace, bounds)
    const changes = changesSince(before, after, since)
    const closed = [...after.closed].filter((raw) => !before.closed.has(raw))
    const isUnseen = (before.complete && (!after.complete || changes.length > bounds.changes)) || closed.length > 0
    const unseen = isUnseen ? ['it left more than could be looked over; look at it before you run git or other programs there'] : []
    const findings = [...new Map(refusedIn(changes.slice(0, bounds.changes), plan).map((each) => [each.path + each.why, each])).values()]
    const roots = rootsOf(findings, changes, after)
    const moved = roots.size === 0 ? [] : [await movedWords(roots, findings, after)]
    const links = [...roots].filter((raw) => succeeds(() => symlinkSync(before.entries.get(raw)?.target ?? '', bytesAt(workspace, raw))))
    return [...moved, ...(links.length > 0 ? [`the link was put back: ${shown(links)}`] : []), ...unseen]
  }

  async function movedWords(roots: ReadonlySet<RawName>, findings: readonly ChangeFinding[], { entries }: SweepSurvey): Promise<string> {
    const set = { call: `aside-${crypto.randomUUID().slice(0, 8)}`, tool: movedAside }
    const paths = [...entries.keys()].filter((raw) => pathsTo(raw).some((each) => roots.has(each)))
    const done = await originals.delete(paths.map(namesOf), set).catch((error: unknown) => ({ ok: false as const, message: String(error) }))
    const name = `${runId()}/${set.call}`
    const failed = done.ok
      ? []
      : [...roots].filter((raw) => !succeeds(() => renameSync(bytesAt(workspace, raw), bytesAt(workspace, `${raw}.${set.call}`))))
    const where = done.ok
      ? `look at it with "braidclaw changes show ${name}", bring it back with "braidclaw undo ${name}"`
      : `it could not be kept (${done.message}) and has the ending ".${set.call}" now`
    const left = failed.length === 0 ? '' : `; NOT moved, remove by hand: ${shown(failed)}`
    return `what it left was moved aside, because other programs run or obey it: ${shown([...roots])} (${describeFindings(findings)}); ${where}${left}`
  }

  return async (plan, spawn) => {
    const before = await survey(workspace, bounds)
    const since = Date.now() - CLOCK_MS
    const ended = await spawn(plan)
    if (!ended.ok) return ended
    const refused = await lookOver(plan, before, since).catch((error: unknown) => [
      `what it left in the workspace could not be looked over (${String(error)}); look at it first`,
    ])
    const more = before.complete ? [] : ['the workspace is too large to be looked over whole; look at what the command left first']
    const undone = [...(ended.undone ?? []), ...refused, ...more]
    return undone.length === 0 ? ended : { ...ended, undone, refused: refused.length > 0 }
  }
}

function shown(raws: readonly RawName[]): string {
  const more = raws.length > 20 ? ` and ${raws.length - 20} more` : ''
  return (
    raws
      .slice(0, 20)
      .map((raw) => quote(namesOf(raw).path))
      .join(', ') + more
  )
}

/** The command has overwritten the old content, so a changed file has none that could excuse it. */
function withoutPast(look: OpenLook, changes: readonly Change[]): OpenLook {
  const changed = new Set(changes.map(({ path }) => path))
  return { ...look, read: (path, side, most) => (side === 'before' && changed.has(path) ? undefined : look.read(path, side, most)) }
}

async function survey(workspace: string, { entries: most, ms }: Bounds): Promise<SweepSurvey> {
  const [entries, closed, folders] = [new Map<RawName, SweptEntry>(), new Set<RawName>(), ['']]
  const [pace, until] = [createPace(), performance.now() + ms]
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    await pace()
    const names = namesAt(bytesAt(workspace, folder))
    if (names === undefined) closed.add(folder)
    for (const name of names ?? []) {
      if (entries.size >= most || performance.now() > until) return { entries, closed, complete: false }
      const raw = folder === '' ? name : `${folder}/${name}`
      const stat = lstatSync(bytesAt(workspace, raw), { throwIfNoEntry: false })
      if (stat === undefined || isPlaceHolder(workspace, raw, stat)) continue
      const kind = stat.isFile() ? 'file' : stat.isDirectory() ? 'folder' : stat.isSymbolicLink() ? 'link' : 'other'
      const target = kind === 'link' ? readlinkSync(bytesAt(workspace, raw), { encoding: 'buffer' }).toString() : undefined
      entries.set(raw, { kind, mode: stat.mode & 0o7777, size: stat.size, ino: stat.ino, ctimeMs: stat.ctimeMs, target })
      if (kind === 'folder') raw.split('/').length < MOST_NESTED ? folders.push(raw) : closed.add(raw)
    }
  }
  return { entries, closed, complete: true }
}

/** Another command that runs may need it; one that somebody filled is none. */
function isPlaceHolder(workspace: string, raw: RawName, stat: Stats): boolean {
  if ((stat.mode & 0o1000) === 0 || !isStub(`${workspace}/${namesOf(raw).path}`)) return false
  return stat.isFile() || namesAt(bytesAt(workspace, raw))?.length === 0
}

/** @returns undefined for a folder that cannot be listed */
function namesAt(folder: Buffer): readonly RawName[] | undefined {
  try {
    return readdirSync(folder, { encoding: 'buffer' }).map((name) => name.toString('latin1'))
  } catch (error) {
    return codeOf(error) === 'ENOENT' ? [] : undefined
  }
}

/** @returns a path and the folders above it, the outermost first */
function pathsTo(raw: RawName): readonly RawName[] {
  return raw.split('/').map((_, index, parts) => parts.slice(0, index + 1).join('/'))
}

/** A renamed file or folder is another one at its place, however old its content is. */
function changesSince(before: SweepSurvey, after: SweepSurvey, since: number): readonly Change[] {
  const changes = [...after.entries].flatMap(([raw, now]): Change[] => {
    const was = before.entries.get(raw)
    const isSame = was?.kind === now.kind && was.ino === now.ino
    const isOld = now.ctimeMs < since
    if (isSame ? isOld || now.kind === 'folder' : isOld && !before.complete) return []
    return [{ ...namesOf(raw), before: was, after: now }]
  })
  const gone = after.complete ? [...before.entries].filter(([raw]) => !after.entries.has(raw)) : []
  return [...changes, ...gone.map(([raw, was]) => ({ ...namesOf(raw), before: was }))]
}

/**
 * Finds what must go: the whole of a new repository or protected folder, else the name itself, else what completed a repository around it.
 */
function rootsOf(findings: readonly ChangeFinding[], changes: readonly Change[], { entries }: SweepSurvey): ReadonlySet<RawName> {
  const byPath = Map.groupBy(changes, ({ path }) => path)
  const made = new Set(changes.filter(({ before }) => before === undefined).map(rawName))
  const inside = (folder: RawName, part: string) => (folder === '' ? part : `${folder}/${part}`)
  const isRepository = (raw: RawName) => isGitFolder((part) => entries.has(inside(raw, part)))

  function rootsFor(raw: RawName): readonly RawName[] {
    const above = pathsTo(raw)
    const whole = above.find((each) => made.has(each) && (isProtectedName(namesOf(each).path) || isRepository(each)))
    if (whole !== undefined) return [whole]
    const folder = ['', ...above].findLast((each) => each !== raw && isRepository(each))
    const isOlder = folder !== undefined && !byPath.has(namesOf(raw).path)
    const parts = isOlder ? gitParts.map((part) => inside(folder, part)).filter((part) => made.has(part)) : []
    return parts.length > 0 ? parts : [raw].filter((each) => entries.has(each))
  }

  const all = new Set(findings.flatMap(({ path }) => (byPath.get(path) ?? [{ path }]).flatMap((change) => rootsFor(rawName(change)))))
  return new Set([...all].filter((raw) => !pathsTo(raw).some((each) => each !== raw && all.has(each))))
}
