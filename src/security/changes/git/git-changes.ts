/** Judges what a change set does to repositories: entries of repository folders, new repositories, `.git` files, programs that settings name. */

import type { Change } from '../../../runtime/changes.ts'
import { type ChangeView, folderOf, inFolder, isBelow, nameOf } from '../change-view.ts'
import type { Finding } from '../finding.ts'
import { resolveText } from '../resolve-link.ts'
import type { ReviewContext } from '../review-context.ts'
import { judgeSettings } from './config-change.ts'
import { judgeGitEntry, watchedFiles, watchedFolders } from './git-entry.ts'
import { createGitFolders, type GitFolders } from './git-folders.ts'
import { plainGit } from './plain-git.ts'
import { createRunBySettings } from './run-by-settings.ts'

type Around = {
  readonly view: ChangeView
  readonly folders: GitFolders
  readonly sub: string | undefined
  readonly inside: (folder: string, target: string) => string | undefined
}

export function judgeGitChanges(view: ChangeView, { policy, command }: ReviewContext): readonly Finding[] {
  const inside = (folder: string, target: string) => resolveText({ view, policy, side: 'after', folder, target })?.inside
  const around = { view, inside, folders: createGitFolders(view), sub: plainGit(command) }
  const named = createRunBySettings(view, policy)
  const seen = new Set<string>()
  return view.changes.flatMap((change) => {
    const own = around.folders.above(folderOf(change.path))
    const fresh = own.filter((folder) => !seen.has(folder) && seen.add(folder))
    return [
      ...(change.bytes !== undefined && unreadableName.test(change.path) ? [finding('deny', change.path, 'its name is no UTF-8')] : []),
      ...own.flatMap((folder) => entry(around, folder, change)),
      ...fresh.flatMap((folder) => [...repository(around, folder), ...unmasked(around, folder)]),
      ...(nameOf(change.path) === '.git' ? gitName(around, change) : []),
      ...bySettings(around, named, change),
    ]
  })
}

/** Names in repositories below a folder whose name is not UTF-8: nobody can look at what lies beside them. */
const unreadableName =
  /(?:^|\/)(?:\.git|HEAD|objects|refs|commondir|gitdir|config(?:\.worktree)?|hooks|branches|remotes|modules|worktrees|rebase-merge|sequencer)(?:\/|$)/

/** What is deleted together with its whole repository needs no other word. */
function entry({ view, sub, inside }: Around, folder: string, change: Change): readonly Finding[] {
  if (change.after === undefined && folder !== '' && view.kind(folder, 'after') === undefined) return []
  const rest = folder === '' ? change.path : change.path.slice(folder.length + 1)
  const verdict = judgeGitEntry({ view, folder, rest, change, sub, leadsInside: (from, target) => inside(from, target) !== undefined })
  return verdict ? [finding(verdict.weight, change.path, verdict.why)] : []
}

function finding(weight: Finding['weight'], path: string, why: string): Finding {
  return { weight, rule: weight === 'deny' ? 'changes.git' : 'changes.git_asks', path, why }
}

function repository(around: Around, folder: string): readonly Finding[] {
  const { folders, view } = around
  const [was, is] = [folders.isComplete(folder, 'before'), folders.isComplete(folder, 'after')]
  const path = folder === '' ? '.' : folder
  const shared = view.change(inFolder(folder, 'commondir'))
  if (was && !is) return [finding('ask', path, 'a git repository that is deleted or taken apart')]
  // Without its commondir git takes the settings and hooks that lie in the folder itself.
  if (!is || (was && !(shared && shared.after === undefined))) return []
  return [finding('ask', path, 'a new git repository'), ...contents(around, folder)]
}

/** Judges everything in a folder that becomes a repository, also what lay there before; what cannot be listed is refused. */
function contents(around: Around, folder: string): readonly Finding[] {
  const { view } = around
  const folders = watchedFolders.map((name) => inFolder(folder, name))
  const names = folders.map((path) => (view.kind(path, 'after') === 'folder' ? view.names(path, 'after') : []))
  const unlisted = folders.filter((_, index) => names[index] === undefined).map((path) => finding('deny', path, 'it cannot be listed'))
  const listed = folders.flatMap((path, index) => [path, ...(names[index] ?? []).map((name) => inFolder(path, name))])
  const paths = [...listed, ...watchedFiles.map((name) => inFolder(folder, name))].filter((path) => view.change(path) === undefined)
  const judged = paths.flatMap((path) => {
    const kind = view.kind(path, 'after')
    return kind === undefined ? [] : entry({ ...around, view: unread(view) }, folder, { path, after: { kind, mode: 0 } })
  })
  return [...unlisted, ...judged]
}

/** Without its `.git` a folder that looks like a repository is one. */
function unmasked(around: Around, git: string): readonly Finding[] {
  const { folders, view } = around
  const folder = folderOf(git)
  const hid = view.kind(git, 'before') === 'file' || folders.isFound(git, 'before')
  const hides = view.kind(git, 'after') === 'file' || folders.isFound(git, 'after')
  return nameOf(git) === '.git' && hid && !hides && folders.isComplete(folder, 'after') ? contents(around, folder) : []
}

/** The same without a past, so that every setting of an older file counts as new. */
function unread(view: ChangeView): ChangeView {
  return { ...view, kind: (path, side) => (side === 'before' ? undefined : view.kind(path, side)) }
}

/** A `.git` that is a file or link makes its folder the work tree of a repository elsewhere. */
function gitName(around: Around, { path, before, after }: Change): readonly Finding[] {
  if (after?.kind === 'link') return [finding('deny', path, 'a symbolic link named .git')]
  if (after === undefined)
    return before?.kind === 'file' ? [finding('ask', path, 'the link of a work tree to its repository'), ...unmasked(around, path)] : []
  if (after.kind !== 'file') return []
  const target = /^gitdir: ([^\n]+?)\s*$/.exec(around.view.text(path, 'after', 8_192) ?? '')?.[1]
  const folder = target === undefined ? undefined : around.inside(folderOf(path), target)
  if (folder === undefined)
    return [finding('deny', path, 'it makes its folder part of a repository outside the workspace, or is not understood')]
  return [finding('ask', path, 'it makes its folder the work tree of a repository'), ...contents(around, folder)]
}

function bySettings({ view, sub }: Around, named: ReturnType<typeof createRunBySettings>, { path }: Change): readonly Finding[] {
  const { run, settings } = named(folderOf(path))
  if (run.some((each) => isBelow(path, each) || isBelow(each, path))) return runFinding(view, path, run)
  const verdict = settings.includes(path) ? judgeSettings({ view, path, sub, isFine: () => false }) : undefined
  return verdict ? [finding(verdict.weight, path, verdict.why)] : []
}

/** A folder on the way may come, go and change its modes, but not become something else. */
function runFinding(view: ChangeView, path: string, run: readonly string[]): readonly Finding[] {
  const isFolderOnTheWay = (view.kind(path, 'after') ?? 'folder') === 'folder' && !run.some((each) => isBelow(path, each))
  return isFolderOnTheWay ? [] : [finding('deny', path, 'the settings of git name it as a hook or program')]
}
