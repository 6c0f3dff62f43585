/** Decides which changes are harmless enough to be applied without a question, and says of the others why they are not. */

import { count, grouped } from '../../../kit/text.ts'
import type { Change } from '../../../runtime/changes.ts'
import { judgePath, type PathPolicy } from '../../targets/path.ts'
import { type ChangeView, folderOf, resolveLink } from '../change-view.ts'
import { createGitFolders, type GitFolders, gitData } from '../git/git-folders.ts'
import type { ChangeFinding, ReviewContext } from '../review-context.ts'
import { isManifestOrLock, manifestRisk } from './manifests.ts'
import { createPathJudge, type PathJudge } from './may-pass.ts'

type HarmlessContext = {
  readonly view: ChangeView
  readonly policy: PathPolicy
  readonly judge: PathJudge
  readonly answered: ReviewContext['answered']
  readonly folders: GitFolders
}

type HarmlessJudge = {
  /** @returns why the change asks; undefined for a harmless one */
  askAbout(change: Change): ChangeFinding | undefined
  /** Tells whether the set holds nothing but output that git ignores, and the folders it lies in. */
  isOnlyOutput(changes: readonly Change[]): boolean
  /** @returns the paths that ask, if "always" can answer for all of them */
  askingNames(): readonly string[] | undefined
}

export function createHarmlessJudge(
  view: ChangeView,
  { policy, ignored, answered }: Pick<ReviewContext, 'policy' | 'ignored' | 'answered'>,
): HarmlessJudge {
  const judge = createPathJudge({
    kind: (path) => (path === '' ? 'folder' : view.kind(path, 'before')),
    names: (folder) => view.names(folder, 'before'),
    ignored,
  })
  const around = { view, policy, judge, answered, folders: createGitFolders(view) }
  const riskOf = (change: Change) =>
    change.after?.kind === 'link' ? linkRisk(change, around) : (modeRisk(change) ?? contentRisk(change, around))

  function isOnlyOutput(changes: readonly Change[]): boolean {
    const isOutput = (change: Change) => change.bytes === undefined && judge.isOutput(change.path, isFolder(change))
    const others = changes.filter((change) => !isOutput(change))
    if (others.length === changes.length || !others.every(isFolder)) return false
    const above = new Set(changes.filter(isOutput).flatMap(({ path }) => foldersOf(path)))
    return others.every(({ path }) => above.has(path)) && changes.every((change) => riskOf(change) === undefined)
  }

  const isAnswerable = (change: Change) =>
    change.after?.kind !== 'link' &&
    change.bytes === undefined &&
    modeRisk(change) === undefined &&
    answerableRisk(change, around) !== undefined

  return {
    isOnlyOutput,
    askingNames() {
      const asking = view.changes.filter((change) => riskOf(change) !== undefined)
      return asking.every(isAnswerable) ? asking.map(({ path }) => path) : undefined
    },
    askAbout(change) {
      const why = riskOf(change)
      return why === undefined ? undefined : { weight: 'ask', rule: 'changes.not_harmless', path: change.path, why }
    },
  }
}

function isFolder({ before, after }: Change): boolean {
  return [before, after].every((state) => state === undefined || state.kind === 'folder')
}

function foldersOf(path: string): readonly string[] {
  const above = folderOf(path)
  return above === '' ? [] : [above, ...foldersOf(above)]
}

function modeRisk({ before, after }: Change): string | undefined {
  if (before?.kind === 'other') return 'it replaces a pipe, socket or device'
  if (after === undefined || after.kind === 'other') return
  const had = before?.kind === after.kind ? before.mode : 0
  if (after.kind === 'file' && (after.mode & 0o111 & ~had) !== 0) return 'a new executable'
  if ((after.mode & 0o002 & ~had) !== 0) return 'every user of this machine may write it'
}

/** Names below a repository's own folder do not count: no build runs there, and a branch may have any name. */
function contentRisk(change: Change, around: HarmlessContext): string | undefined {
  const why = around.answered?.(change.path) ? undefined : answerableRisk(change, around)
  return why === undefined || (!isExclude(change.path) && isGitData(change.path, around)) ? undefined : why
}

/** Says why a change asks that "always" to its path answers. */
function answerableRisk(change: Change, { view, judge }: HarmlessContext): string | undefined {
  const { path, before, after } = change
  if (/(?:^|\/)\.git(?:\/|$)/.test(path)) return isExclude(path) ? 'it decides what git ignores' : undefined
  if (after?.kind === 'file' || before?.kind === 'file') return judge.risk(path) ?? manifestRisk(path, view) ?? executableRisk(change)
  return before === undefined && isFolder(change) ? judge.risk(path, true) : undefined
}

/** Git ignores what this file of a repository names. */
const isExclude = (path: string) => path.endsWith('/info/exclude')

/** Recognises git's own files in a repository whose folder is not called `.git`. */
function isGitData(path: string, { folders }: HarmlessContext): boolean {
  const above = folders.above(folderOf(path))
  return above.some((folder) => gitData.test(folder === '' ? path : path.slice(folder.length + 1)))
}

function executableRisk({ before, after }: Change): string | undefined {
  const isOther = after !== undefined && (before?.sha256 === undefined || before.sha256 !== after.sha256)
  return before?.kind === 'file' && (before.mode & 0o111) !== 0 && isOther ? 'other content of an executable' : undefined
}

/**
 * Accepts a link to a plain file of the workspace, which does no more than a copy of it: the file is not executable, and programs neither
 * run nor obey nor hide either name. The target must exist, because something else could be created in its place.
 */
function linkRisk({ path, bytes, before }: Change, { view, policy, judge }: HarmlessContext): string | undefined {
  if (before?.kind === 'other') return 'it replaces a pipe, socket or device'
  const end = bytes === undefined ? resolveLink({ view, policy, link: path, side: 'after' })?.inside : undefined
  const isPlain = end !== undefined && view.kind(end, 'after') === 'file' && ((view.mode(end, 'after') ?? 0o111) & 0o111) === 0
  const isOrdinary = (each: string) =>
    judge.risk(each) === undefined &&
    !isManifestOrLock(each) &&
    (['read', 'write'] as const).every((access) => judgePath({ path: each, access, cwd: policy.workspace, policy }).ok)
  return isPlain && [path, end].every(isOrdinary) ? undefined : 'a symbolic link to more than a plain file'
}

/** A file that keeps less than one byte in so many counts as emptied, and an emptied file as a deleted one. */
const emptied = 20

const most = { changes: 5_000, deleted: 50, bytes: 256 * 1024 ** 2 } as const
/** Secrets are searched for only in the beginning of a longer file. */
const bytesSearched = 1024 ** 2
/** All searched content together: reading and searching 64 MiB takes a few hundred milliseconds. */
const bytesSearchedAtMost = 64 * 1024 ** 2

/** @param hasGit what git's history needs was read, so its objects do not count. @returns one sentence for what is beyond the limits */
export function beyondLimits(changes: readonly Change[], hasGit: boolean): string | undefined {
  const isObject = (path: string) => hasGit && /(?:^|\/)\.git\/(?:.+\/)?objects\//.test(path)
  const files = changes.filter(({ before, after }) => after?.kind === 'file' || before?.kind === 'file')
  const isEmptied = ({ before, after }: Change) => after?.kind === 'file' && (after.size ?? 0) * emptied < (before?.size ?? 0)
  const deleted = files.filter((change) => (change.after === undefined && !isObject(change.path)) || isEmptied(change)).length
  const bytes = files.reduce((sum, { after }) => sum + (after?.size ?? 0), 0)
  if (deleted > most.deleted) return `${count(deleted, 'file')} would be deleted or emptied, more than ${most.deleted}`
  if (changes.length > most.changes) return `${count(changes.length, 'change')}, more than ${grouped(most.changes)}`
  if (bytes > most.bytes) return `${grouped(Math.ceil(bytes / 1024 ** 2))} MiB would be written, more than ${most.bytes / 1024 ** 2}`
}

/** Looks for registered secrets in new and changed files, in the order of the changes. */
export function findSecrets(view: ChangeView, hasSecret: NonNullable<ReviewContext['hasSecret']>): readonly ChangeFinding[] {
  let left = bytesSearchedAtMost
  return view.changes.flatMap(({ path, after }) => {
    if (after?.kind !== 'file' || left <= 0 || after.size === 0) return []
    const content = view.start(path, 'after', Math.min(bytesSearched, left))
    left -= content?.length ?? 0
    const isFound = content !== undefined && hasSecret(content)
    return isFound ? [{ weight: 'ask', rule: 'changes.secret', path, why: 'it holds the value of a registered secret' } as const] : []
  })
}
