/**
 * Looks over the workspace after a command that worked on it directly, by the rules that judge the changes of a private view, and moves
 * aside what these rules never apply: git, editors and shells would run or obey it unasked.
 */

import { lstatSync, readdirSync, readlinkSync } from 'node:fs'
import { quote } from '../../kit/text.ts'
import type { Change, EntryState } from '../../runtime/changes.ts'
import { moveAside } from '../../sandbox/protect/new-names.ts'
import { findToolchains } from '../../sandbox/surroundings/toolchains.ts'
import { type Finding, tellFindings } from '../../security/changes/finding.ts'
import { gitParts, isGitFolder } from '../../security/changes/git/git-shape.ts'
import { findingsOf } from '../../security/changes/review-changes.ts'
import type { Policy } from '../../security/policy.ts'
import { isProtectedName } from '../../security/targets/protected.ts'
import type { Ended, Spawn, SpawnPlan } from '../../tools/process.ts'
import { movedAside } from '../../workspace/changes/contract.ts'
import { createLook, type Look } from '../../workspace/changes/look.ts'
import { namesOf, type RawName, rawName } from '../../workspace/changes/tree/names.ts'
import { createPace } from '../../workspace/changes/tree/pace.ts'
import type { Originals } from '../../workspace/contract.ts'
import type { Setup } from '../api.ts'
import { runByGit } from './git-around.ts'

/** Runs the command, and adds to its end what was moved aside. */
export type Sweep = (plan: SpawnPlan, spawn: Spawn) => Promise<Ended>

type Sweeping = {
  readonly setup: Pick<Setup, 'context' | 'paths'>
  readonly policy: Policy
  readonly originals: Pick<Originals, 'delete'>
  readonly runId: () => string
  readonly bounds?: Bounds
}

/** Looks at so many names for so long, in milliseconds, and judges so many changes; beyond, the answer says so. */
type Bounds = { readonly entries: number; readonly ms: number; readonly changes: number }
const usualBounds: Bounds = { entries: 400_000, ms: 15_000, changes: 100_000 }
/** The times of files lag behind the clock by so many milliseconds at most. */
const CLOCK_MS = 10
const mostNamed = 20

type Seen = EntryState & { readonly ino: number; readonly ctimeMs: number }
/** Folders come before what is in them. */
type Survey = { readonly entries: ReadonlyMap<RawName, Seen>; readonly complete: boolean }

export function createSweep({ setup, policy, originals, runId, bounds = usualBounds }: Sweeping): Sweep {
  const { workspace, home, autonomy, approveAllMedium } = policy
  const around = { workspace, home, env: setup.context.env }

  /** The call itself was approved where it asked, and a person's yes to `git clone` covers what only a person may allow. */
  function refusedIn(changes: readonly Change[], { argv, view }: SpawnPlan): readonly Finding[] {
    using look = createLook({ workspace, upper: workspace, changes })
    const approved = view === 'direct' || (autonomy === 'supervised' && !approveAllMedium)
    return findingsOf(changes, {
      policy,
      level: 'full',
      approved,
      command: { kind: 'argv', argv, executable: argv[0] ?? '' },
      look: withoutPast(look, changes),
      runByGit: runByGit(around),
      readOnlyFolders: () => findToolchains({ path: setup.context.env.PATH ?? '', home, except: [workspace, setup.paths.home] }).mounts,
    }).filter(({ weight }) => weight === 'deny' || (weight === 'person' && !approved))
  }

  async function lookOver(plan: SpawnPlan, before: Survey, since: number): Promise<string | undefined> {
    const after = await survey(workspace, bounds)
    const changes = changesSince(before, after, since)
    const unseen = before.complete && (!after.complete || changes.length > bounds.changes) ? unseenNote : undefined
    const findings = [...new Map(refusedIn(changes.slice(0, bounds.changes), plan).map((each) => [each.path + each.why, each])).values()]
    const roots = rootsOf(findings, changes, after)
    if (roots.length === 0) return unseen
    const inside = [...after.entries.keys()].filter((raw) => roots.some((root) => raw === root || raw.startsWith(`${root}/`)))
    const call = `aside-${crypto.randomUUID().slice(0, 8)}`
    const done = await originals
      .delete(inside.map(namesOf), { call, tool: movedAside })
      .catch((error: unknown) => ({ ok: false as const, message: String(error) }))
    const set = `${runId()}/${call}`
    const where = done.ok
      ? `look at it with "braidclaw changes show ${set}", bring it back with "braidclaw undo ${set}"`
      : `it is still there under another name, because it could not be kept (${done.message})`
    const names = roots.map((raw) => (done.ok ? quote(namesOf(raw).path) : moveAside(workspace, namesOf(raw).path)))
    const listed =
      names.length > mostNamed ? `${names.slice(0, mostNamed).join(', ')} and ${names.length - mostNamed} more` : names.join(', ')
    const moved = `what it left was moved aside, because other programs run or obey it: ${listed} (${tellFindings(findings)}); ${where}`
    return unseen === undefined ? moved : `${moved}; ${unseen}`
  }

  return async (plan, spawn) => {
    const before = await survey(workspace, bounds)
    const since = Date.now() - CLOCK_MS
    const ended = await spawn(plan)
    if (!ended.ok) return ended
    const refused = await lookOver(plan, before, since).catch(
      (error: unknown) => `what it left in the workspace could not be looked over (${String(error)}); look at it first`,
    )
    const more = before.complete ? [] : ['the workspace is too large to be looked over whole; look at what the command left first']
    const undone = [...(ended.undone ?? []), ...(refused === undefined ? more : [refused])]
    return undone.length === 0 ? ended : { ...ended, undone, refused: ended.refused === true || refused !== undefined }
  }
}

const unseenNote = 'it left more than was looked over; look at it before you run git or other programs there'

/** The command has overwritten the old content, so a changed file has none that could excuse it. */
function withoutPast(look: Look, changes: readonly Change[]): Look {
  const changed = new Set(changes.map(({ path }) => path))
  return { ...look, read: (path, side, most) => (side === 'before' && changed.has(path) ? undefined : look.read(path, side, most)) }
}

async function survey(workspace: string, bounds: Bounds): Promise<Survey> {
  const [entries, pace, until] = [new Map<RawName, Seen>(), createPace(), performance.now() + bounds.ms]
  const at = (raw: RawName) => Buffer.concat([Buffer.from(`${workspace}/`), Buffer.from(raw, 'latin1')])
  const folders: RawName[] = ['']
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    await pace()
    for (const name of namesAt(at(folder))) {
      if (entries.size >= bounds.entries || performance.now() > until) return { entries, complete: false }
      const raw = folder === '' ? name : `${folder}/${name}`
      const stat = lstatSync(at(raw), { throwIfNoEntry: false })
      if (stat === undefined) continue
      const kind = stat.isFile() ? 'file' : stat.isDirectory() ? 'folder' : stat.isSymbolicLink() ? 'link' : 'other'
      const target = kind === 'link' ? { target: readlinkSync(at(raw), { encoding: 'buffer' }).toString() } : {}
      entries.set(raw, { kind, mode: stat.mode & 0o7777, size: stat.size, ino: stat.ino, ctimeMs: stat.ctimeMs, ...target })
      if (kind === 'folder') folders.push(raw)
    }
  }
  return { entries, complete: true }
}

function namesAt(folder: Buffer): readonly RawName[] {
  try {
    return readdirSync(folder, { encoding: 'buffer' }).map((name) => name.toString('latin1'))
  } catch {
    return []
  }
}

/** A renamed file or folder is another one at its place, however old its content is. */
function changesSince(before: Survey, after: Survey, since: number): readonly Change[] {
  const stateOf = ({ kind, mode, size, target }: Seen): EntryState => ({
    kind,
    mode,
    ...(kind === 'file' ? { size } : {}),
    ...(target === undefined ? {} : { target }),
  })
  const changes = [...after.entries].flatMap(([raw, now]): Change[] => {
    const was = before.entries.get(raw)
    const isSame = was?.kind === now.kind && was.ino === now.ino
    const isOld = now.ctimeMs < since
    if (isSame ? isOld || now.kind === 'folder' : isOld && !before.complete) return []
    return [{ ...namesOf(raw), ...(was === undefined ? {} : { before: stateOf(was) }), after: stateOf(now) }]
  })
  const gone = [...before.entries].filter(([raw]) => after.complete && !after.entries.has(raw))
  return [...changes, ...gone.map(([raw, was]) => ({ ...namesOf(raw), before: stateOf(was) }))]
}

/** Finds what must go: the whole of a new repository or protected folder, else the name itself, else what completed a repository around it. */
function rootsOf(findings: readonly Finding[], changes: readonly Change[], { entries }: Survey): readonly RawName[] {
  const byPath = Map.groupBy(changes, ({ path }) => path)
  const made = new Set(changes.flatMap((change) => (change.before === undefined && change.after !== undefined ? [rawName(change)] : [])))
  const inside = (folder: RawName, part: string) => (folder === '' ? part : `${folder}/${part}`)
  const isRepository = (raw: RawName) => isGitFolder((part) => entries.has(inside(raw, part)))
  const found = findings.flatMap(({ path }) => (byPath.get(path) ?? [{ path }]).flatMap((change) => rootsFor(rawName(change))))

  function rootsFor(raw: RawName): readonly RawName[] {
    const above = raw.split('/').map((_, index, parts) => parts.slice(0, index + 1).join('/'))
    const whole = above.find((each) => made.has(each) && (isProtectedName(namesOf(each).path) || isRepository(each)))
    if (whole !== undefined) return [whole]
    const folder = ['', ...above].findLast((each) => each !== raw && isRepository(each))
    const parts =
      folder === undefined || byPath.has(namesOf(raw).path)
        ? []
        : gitParts.map((part) => inside(folder, part)).filter((part) => made.has(part))
    return parts.length > 0 ? parts : entries.has(raw) ? [raw] : []
  }

  const all = [...new Set(found)]
  return all.filter((raw) => !all.some((other) => raw.startsWith(`${other}/`)))
}
