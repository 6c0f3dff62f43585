/**
 * Judges what a change set does to repositories: entries of repository folders, new repositories, `.git` files, programs that settings
 * name.
 */

import type { Change } from '../../../runtime/changes.ts'
import { plainGit } from '../../command/plain-git.ts'
import type { PathPolicy } from '../../targets/path.ts'
import { type ChangeView, folderOf, inFolder, isBelow, nameOf, resolveText } from '../change-view.ts'
import type { ChangeFinding, ReviewContext, Weight } from '../review-context.ts'
import { judgeSettings } from './config-change.ts'
import { mostSettingsBytes, namedBySettings, parseGitConfig, readSettings } from './git-config.ts'
import { createGitFolders, type GitFolders, gitData, isGitFolder } from './git-folders.ts'

type GitContext = {
  readonly view: ChangeView
  readonly folders: GitFolders
  readonly sub: string | undefined
  readonly inside: (folder: string, target: string) => string | undefined
}

export function judgeGitChanges(view: ChangeView, { policy, command }: ReviewContext): readonly ChangeFinding[] {
  const inside = (folder: string, target: string) => resolveText({ view, policy, side: 'after', folder, target })?.inside
  const around = { view, inside, folders: createGitFolders(view), sub: plainGit(command) }
  const named = createRunBySettings(view, policy)
  const seen = new Set<string>()
  return view.changes.flatMap((change) => {
    const own = around.folders.above(folderOf(change.path))
    const fresh = own.filter((folder) => !seen.has(folder) && seen.add(folder))
    return [
      ...(change.bytes !== undefined && unreadableName.test(change.path) ? [finding('deny', change.path, 'its name is not UTF-8')] : []),
      ...(isBesideGit(view, change.path) ? [finding('deny', change.path, "it is outside the workspace, and not git's own")] : []),
      ...own.flatMap((folder) => entry(around, folder, change)),
      ...fresh.flatMap((folder) => [...repository(around, folder), ...unmasked(around, folder)]),
      ...(nameOf(change.path) === '.git' ? gitName(around, change) : []),
      ...bySettings(around, named, change),
    ]
  })
}

/** A bare repository, or one with another name than .git, may have worktrees and other files of the user in its folder. */
function isBesideGit({ outside }: ChangeView, path: string): boolean {
  if (outside === undefined || !path.startsWith(`${outside.common}/`) || /\/\.git(?:\/|$)/.test(outside.common)) return false
  const rest = path.slice(outside.common.length + 1)
  return !gitData.test(rest) && !/^(?:(?:lfs|svn|annex|branches|remotes)(?:\/|$)|[\w-]+\.(?:log|pid|lock)$)/.test(rest)
}

/** Recognises names in repositories below a folder whose name is not UTF-8, where the neighbours cannot be read. */
const unreadableName =
  /(?:^|\/)(?:\.git|HEAD|objects|refs|commondir|gitdir|config(?:\.worktree)?|hooks|branches|remotes|modules|worktrees|rebase-merge|sequencer)(?:\/|$)/

/** An entry that is deleted together with its whole repository needs no other word. */
function entry({ view, sub, inside }: GitContext, folder: string, change: Change): readonly ChangeFinding[] {
  if (change.after === undefined && folder !== '' && view.kind(folder, 'after') === undefined) return []
  const rest = folder === '' ? change.path : change.path.slice(folder.length + 1)
  const verdict = judgeGitEntry({ view, folder, rest, change, sub, leadsInside: (from, target) => inside(from, target) !== undefined })
  return verdict ? [finding(verdict.weight, change.path, verdict.why)] : []
}

function finding(weight: ChangeFinding['weight'], path: string, why: string): ChangeFinding {
  return { weight, rule: weight === 'deny' ? 'changes.git' : 'changes.git_asks', path, why }
}

function repository(around: GitContext, folder: string): readonly ChangeFinding[] {
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
function contents(around: GitContext, folder: string): readonly ChangeFinding[] {
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

/** A folder without `.git` that looks like a repository is a repository. */
function unmasked(around: GitContext, git: string): readonly ChangeFinding[] {
  const { folders, view } = around
  const folder = folderOf(git)
  const hid = view.kind(git, 'before') === 'file' || folders.isFound(git, 'before')
  const hides = view.kind(git, 'after') === 'file' || folders.isFound(git, 'after')
  return nameOf(git) === '.git' && hid && !hides && folders.isComplete(folder, 'after') ? contents(around, folder) : []
}

/** Hides the state before the change, so that every setting of an older file counts as new. */
function unread(view: ChangeView): ChangeView {
  return { ...view, kind: (path, side) => (side === 'before' ? undefined : view.kind(path, side)) }
}

/** A `.git` that is a file or link makes its folder the work tree of a repository elsewhere. */
function gitName(around: GitContext, { path, before, after }: Change): readonly ChangeFinding[] {
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

function bySettings({ view, sub }: GitContext, named: ReturnType<typeof createRunBySettings>, { path }: Change): readonly ChangeFinding[] {
  const { run, settings } = named(folderOf(path))
  if (run.some((each) => isBelow(path, each) || isBelow(each, path))) return runFinding(view, path, run)
  const verdict = settings.includes(path) ? judgeSettings({ view, path, sub, isFine: () => false }) : undefined
  return verdict ? [finding(verdict.weight, path, verdict.why)] : []
}

/** A folder on the way may come, go and change its modes, but not become something else. */
function runFinding(view: ChangeView, path: string, run: readonly string[]): readonly ChangeFinding[] {
  const isFolderOnTheWay = (view.kind(path, 'after') ?? 'folder') === 'folder' && !run.some((each) => isBelow(path, each))
  return isFolderOnTheWay ? [] : [finding('deny', path, 'the settings of git name it as a hook or program')]
}

type GitEntry = {
  readonly view: ChangeView
  /** The repository folder, and the rest of the path in it. */
  readonly folder: string
  readonly rest: string
  readonly change: Change
  readonly sub: string | undefined
  /** Tells whether a path that a file in this folder names leads into the workspace, also through links. */
  readonly leadsInside: (from: string, target: string) => boolean
}

type EntryVerdict = { readonly weight: Weight; readonly why: string } | undefined
type Rule = readonly [names: RegExp, judge: (entry: GitEntry) => EntryVerdict]

const deny = (why: string) => ({ weight: 'deny', why }) as const
const mostBytes = 1024 ** 2

/** The first rule whose pattern matches decides; names that none matches are plain data: objects, references, logs, the index. */
const rules: readonly Rule[] = [
  [/^hooks\/[^/]+\.sample$/, ({ change }) => (isFile(change) ? undefined : deny('an example of a hook must be a file'))],
  [/^hooks\//, () => deny('hooks are programs that git runs')],
  [/^config(?:\.worktree)?$/, settings],
  [/^commondir$/, (entry) => whole(entry, (text) => isWorktree(entry.folder) && text.trim() === '../..', elsewhere)],
  [/^gitdir$/, (entry) => whole(entry, (text) => entry.leadsInside(entry.folder, text.trim()), elsewhere)],
  [/^objects\/info\/alternates$/, (entry) => whole(entry, (text) => areInside(entry, text), elsewhere)],
  [/^(?:objects\/info\/http-alternates|(?:branches|remotes)\/.+)$/, ({ change }) => created(change, elsewhere)],
  [
    /^(?:rebase-merge\/git-rebase-todo(?:\.backup)?|sequencer\/todo)$/,
    (entry) => whole(entry, isHarmlessTodo, 'a rebase list with instructions that run programs'),
  ],
  [/^rebase-merge\/strategy$/, (entry) => whole(entry, isKnownStrategy, 'a merge strategy that is a program')],
  [/^sequencer\/opts$/, (entry) => whole(entry, hasKnownStrategies, 'a merge strategy that is a program')],
]

const elsewhere = 'it sends git to another place'

/** Names that the rules are about and that must be judged when a folder becomes a repository, though they are older. */
const watchedFiles = [
  'config',
  'config.worktree',
  'commondir',
  'gitdir',
  'objects/info/alternates',
  'objects/info/http-alternates',
  'rebase-merge/git-rebase-todo',
  'rebase-merge/strategy',
  'sequencer/todo',
  'sequencer/opts',
] as const
const watchedFolders = ['hooks', 'branches', 'remotes'] as const

/** Judges one changed name in a repository folder: what may run programs or send git elsewhere is refused, plain data may change. */
function judgeGitEntry(entry: GitEntry): EntryVerdict {
  const { change, rest } = entry
  if (change.after?.kind === 'link') return deny('a symbolic link in a repository')
  return rules.find(([names]) => names.test(rest))?.[1](entry)
}

function isFile({ after }: Change): boolean {
  return after === undefined || after.kind === 'file'
}

function created({ after }: Change, why: string): EntryVerdict {
  return after === undefined || after.kind === 'folder' ? undefined : deny(why)
}

/** Requires that the whole text of the file is allowed; a deleted file always is. */
function whole({ view, change }: GitEntry, isFine: (text: string) => boolean, why: string): EntryVerdict {
  if (change.after === undefined || change.after.kind === 'other') return
  const text = view.text(change.path, 'after', mostBytes)
  return text !== undefined && isFine(text) ? undefined : deny(why)
}

const verbs = new Set('pick p reword r edit e squash s fixup f drop d label l reset t merge m update-ref u break b noop revert'.split(' '))

/**
 * Checks the files with which a stopped rebase, cherry-pick or revert continues: they must not tell git to run a program.
 * @returns whether every line is a comment, or begins with a word that runs nothing
 */
function isHarmlessTodo(text: string): boolean {
  return text.split('\n').every((line) => {
    const trimmed = line.trim()
    return trimmed === '' || trimmed.startsWith('#') || verbs.has(/^[a-z-]+(?=\s|$)/.exec(trimmed)?.[0] ?? '')
  })
}

const strategies = new Set(['', 'ort', 'recursive', 'resolve', 'octopus', 'ours', 'subtree'])

/** Any other name is a program, `git-merge-NAME`, and may even be a path. */
function isKnownStrategy(name: string): boolean {
  return strategies.has(name.trim())
}

/** The options of a stopped cherry-pick or revert are written like settings. */
function hasKnownStrategies(options: string): boolean {
  const entries = parseGitConfig(options)
  return entries?.every(({ key, value = '' }) => key !== 'options.strategy' || isKnownStrategy(value)) ?? false
}

function isWorktree(folder: string): boolean {
  return nameOf(folderOf(folder)) === 'worktrees'
}

function areInside({ folder, leadsInside }: GitEntry, text: string): boolean {
  return text
    .split('\n')
    .every((line) => line === '' || line.startsWith('#') || (!line.startsWith('"') && leadsInside(inFolder(folder, 'objects'), line)))
}

function settings({ view, change, sub, folder, leadsInside }: GitEntry): EntryVerdict {
  if (change.after !== undefined && change.after.kind !== 'file') return deny('settings of git must be a file')
  const isFine = ({ key, value = '' }: { readonly key: string; readonly value: string | undefined }) =>
    sub === 'submodule' && key === 'core.worktree' && leadsInside(folder, value)
  return judgeSettings({ view, path: change.path, sub, isFine })
}

/** `run` are hook folders and programs, `settings` are included files; all are relative to the workspace. */
type SettingsPaths = { readonly run: readonly string[]; readonly settings: readonly string[] }

/** Limits how many names beside a changed path are tried, because each costs a look at the disk. */
const besideTried = 200

/**
 * Finds the files and folders of the workspace that the settings of the repositories around and beside a folder make git run or read.
 * The settings that hold are those before the changes: new ones that name programs are refused.
 */
function createRunBySettings(view: ChangeView, policy: Pick<PathPolicy, 'workspace' | 'home'>): (folder: string) => SettingsPaths {
  const known = new Map<string, SettingsPaths>()

  function above(folder: string): SettingsPaths {
    const found = known.get(folder)
    if (found) return found
    const more = folder === '' ? [] : [above(folderOf(folder))]
    const all = together([...more, namedIn(folder), ...beside(folder)].filter((each) => each !== undefined))
    known.set(folder, all)
    return all
  }

  /** A repository in a folder beside the changed path may name what lies outside of it: `../hooks`. */
  function beside(folder: string): readonly SettingsPaths[] {
    const names = view.names(folder, 'before')?.slice(0, besideTried) ?? []
    return names.flatMap((name) => {
      const path = inFolder(folder, name)
      const own = name === '.git' ? undefined : namedIn(path)
      const isOutside = (each: string) => !isBelow(each, path)
      return own ? [{ run: own.run.filter(isOutside), settings: own.settings.filter(isOutside) }] : []
    })
  }

  function resolve(target: string, folder: string): string | undefined {
    const text = target.startsWith('~/') ? `${policy.home}${target.slice(1)}` : target
    return resolveText({ view, policy, side: 'before', folder, target: text })?.inside
  }

  function namedIn(folder: string): SettingsPaths | undefined {
    const git = gitFolderOf(folder)
    if (git === undefined) return
    const common = view.text(inFolder(git, 'commondir'), 'before', 4_096)
    const shared = common === undefined ? undefined : resolve(common.trim(), git)
    const files = [git, ...(shared === undefined ? [] : [shared])].flatMap((each) => [
      inFolder(each, 'config'),
      inFolder(each, 'config.worktree'),
    ])
    const read = readSettings(files, {
      read: (path) => view.text(path, 'before', mostSettingsBytes),
      resolve: (path, from) => resolve(path, folderOf(from)),
    })
    const run = read.flatMap(({ entries }) => namedBySettings(entries).run.flatMap((each) => resolve(each, folder) || []))
    return { run, settings: read.map(({ path }) => path).filter((path) => !files.includes(path)) }
  }

  function gitFolderOf(folder: string): string | undefined {
    const path = inFolder(folder, '.git')
    const kind = view.kind(path, 'before')
    if (kind === 'folder') return path
    if (kind !== undefined) return kind === 'file' ? gitFile(folder, path) : undefined
    return isGitFolder((part) => view.kind(inFolder(folder, part), 'before') !== undefined) ? folder : undefined
  }

  function gitFile(folder: string, path: string): string | undefined {
    const target = /^gitdir: ([^\n]+?)\s*$/.exec(view.text(path, 'before', 8_192) ?? '')?.[1]
    return target === undefined ? undefined : resolve(target, folder)
  }

  return above
}

function together(all: readonly SettingsPaths[]): SettingsPaths {
  return { run: all.flatMap(({ run }) => run), settings: all.flatMap(({ settings }) => settings) }
}
