/**
 * Gives commands the name of the user in git, the gate what it must know about a repository, and the judgement of changes what the user's
 * own git would run.
 */

import { lstatSync, readdirSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { createTrust } from '../../config/trust.ts'
import { attempt, unlessMissing } from '../../kit/errors.ts'
import { replaceFile } from '../../kit/files.ts'
import { namesIn } from '../../kit/proc.ts'
import { sha256 } from '../../kit/sha256.ts'
import { quote } from '../../kit/text.ts'
import type { GitUser, SpawnPlan } from '../../sandbox/contract.ts'
import type { ConfigEntry } from '../../security/changes/git/git-config.ts'
import { isGitFolder } from '../../security/changes/git/git-folders.ts'
import type { RepositoryFacts } from '../../security/command/transfer.ts'
import type { Policy } from '../../security/policy.ts'
import { isUnder, judgePath } from '../../security/targets/path.ts'
import { fixedPath } from '../../tools/process.ts'
import { pathsOfIndex, readEntries } from '../../workspace/changes/apply/git-index.ts'
import type { GitContext } from '../../workspace/git/ignored-paths.ts'
import {
  expand,
  lstatAt,
  namedAround,
  type Repository,
  readHead,
  readRefs,
  readRepositorySettings,
  readSmall,
  readUserSettings,
  repositoriesAround,
  userFile,
} from '../../workspace/git/read-settings.ts'
import { realPlace } from '../../workspace/real-place.ts'

/** Absolute paths of a repository. */
type Pushing = { readonly folder: string; readonly git: string; readonly common: string }

export type GitForCommands = {
  readonly env: { readonly [name: string]: string }
  /** Returns what lies outside the workspace of its repository; commands can read it, and write `outside` where a view covers it. */
  around(): Around
}

type Around = Pick<SpawnPlan, 'outside'> & Required<Pick<SpawnPlan, 'readablePaths'>>

type Judged = { readonly policy: Policy; readonly paths: { readonly home: string; readonly trustedFolders: string } }

export function gitForCommands(around: GitContext, judged: Judged): GitForCommands {
  return { env: { ...identity(around), GIT_DISCOVERY_ACROSS_FILESYSTEM: '1' }, around: () => repositoryOutside(judged) }
}

/** A `.git` file and alternates may come from anywhere: the repository must know this folder, and a person trust its alternates. */
function repositoryOutside({ policy, paths }: Judged): Around {
  const { workspace } = policy
  const [found] = repositoriesAround(workspace)
  if (found === undefined) return { readablePaths: [] }
  const { root, git, common } = found
  const index = isUnder(git, workspace) ? undefined : checkedOut(found, workspace, paths.home)
  const own = index || linkedRepository(root) === common ? [join(root, '.git'), git, common] : []
  const rules = index ? foldersBetween(root, workspace).map((folder) => join(folder, '.gitignore')) : []
  const objects = join(common, 'objects')
  const isTrusted = createTrust(paths.trustedFolders).isTrusted(workspace)
  const lent = isTrusted ? (readSmall(join(objects, 'info/alternates')) ?? '').split('\n').map((path) => resolve(objects, path)) : []
  const isOpen = (path: string) =>
    !isUnder(path, workspace) &&
    realPlace(path) === path &&
    lstatAt(path)?.uid === process.getuid?.() &&
    judgePath({ path, access: 'read', cwd: workspace, policy: { ...policy, workspaceOnly: false } }).ok
  const isRepository = (path: string) => isGitFolder((name) => lstatAt(join(path, name)) !== undefined)
  const open = [
    ...own.filter((path, at) => isRepository(path) || (at === 0 && lstatAt(path)?.isFile())),
    ...rules.filter((path) => lstatAt(path)?.isFile()),
    ...lent.filter((path) => basename(path) === 'objects' && isRepository(dirname(path))),
  ].filter(isOpen)
  const from = index && root !== workspace && open.includes(git) ? kept('index', index, { home: paths.home, workspace }) : undefined
  const part = from === undefined ? [] : [{ path: join(git, 'index'), from }]
  const isWhole = [git, common].every((path) => open.includes(path)) && isUnder(git, common) && (root === workspace || from !== undefined)
  const isAround = isUnder(workspace, common)
  const others = isWhole || isUnder(common, workspace) ? otherWorktrees(common, root) : []
  const hidden = others.map(dirname).filter((path) => isUnder(path, common))
  const seen = others.filter((path) => !isUnder(path, common) && isOpen(path)).slice(0, mostWorktrees)
  const readable = [...new Set([...open, ...seen])].flatMap((path) => (path === common && isAround ? partsOf(common) : [path]))
  return {
    readablePaths: [...readable.map((path) => ({ path })), ...part],
    ...(isWhole &&
      (root === workspace || !isAround) && { outside: { root, git, common, hidden, ...(from !== undefined && { index: from }) } }),
  }
}

/** Returns what git reads of a bare repository in which the workspace lies, without the worktrees that lie there too. */
function partsOf(common: string): readonly string[] {
  return 'HEAD config packed-refs shallow objects refs logs info hooks worktrees'
    .split(' ')
    .map((name) => join(common, name))
    .filter((path) => lstatAt(path) !== undefined)
}

/** Each costs a mount. */
const mostWorktrees = 50

/** Returns the `.git` files of the other worktrees: git takes a worktree whose file it does not see for a deleted one. */
function otherWorktrees(common: string, root: string): readonly string[] {
  const names = unlessMissing(() => readdirSync(join(common, 'worktrees'))) ?? []
  const files = names.flatMap((name) => {
    const link = readSmall(join(common, 'worktrees', name, 'gitdir'))?.trim()
    return link ? [expand(link, join(common, 'worktrees', name), '/')] : []
  })
  return files.filter((path) => basename(path) === '.git' && dirname(path) !== root && lstatAt(path)?.isFile()).toSorted()
}

/** Returns the folders above the workspace up to the root of its repository, nearest first. */
function foldersBetween(root: string, workspace: string): readonly string[] {
  return workspace === root ? [] : [dirname(workspace), ...foldersBetween(root, dirname(workspace))]
}

/**
 * Returns the index of a repository if git on this machine checked files of the workspace out by it. What lies beside the workspace, which
 * no command sees, is marked as unchanged in it. The same folder and repository stay known: the files that commands write get other inodes
 * than their index has.
 */
function checkedOut({ root, git, common }: Repository, workspace: string, home: string): Buffer | undefined {
  return attempt(() => {
    const index = readFileSync(join(git, 'index'))
    const stats = [workspace, git, common].map((path) => [path, statSync(path)] as const)
    const known = Buffer.from(JSON.stringify(stats.map(([path, { dev, ino }]) => [path, dev, ino])))
    const state = { isKnown: readSmall(keptAt('known', { home, workspace })) === known.toString(), left: 1_000 }
    readEntries(index, 20, ({ at, name }) => {
      const path = join(root, Buffer.from(name, 'latin1').toString())
      if (!isUnder(path, workspace)) index.writeUInt8(index.readUInt8(at + flagsAt) | unchanged, at + flagsAt)
      else if (!state.isKnown && state.left-- > 0) {
        const stat = lstatSync(path, { throwIfNoEntry: false })
        state.isKnown =
          stat !== undefined &&
          stat.ino % 2 ** 32 === index.readUInt32BE(at + 20) &&
          Math.floor(stat.mtimeMs / 1000) === index.readUInt32BE(at + 8)
      }
    })
    if (!state.isKnown) return
    // Entries of an index that is split over two files could not be marked.
    if (root !== workspace) pathsOfIndex(index)
    kept('known', known, { home, workspace })
    return sealed(index)
  })
}

/** Where the flags of an index entry begin, and the one that says "assume unchanged". */
const [flagsAt, unchanged] = [60, 0x80]

function sealed(index: Buffer): Buffer {
  index.set(new Bun.CryptoHasher('sha1').update(index.subarray(0, -20)).digest(), index.length - 20)
  return index
}

/** Removes the marks for files beside the workspace from the index that a command wrote. @param folder holds what it wrote */
export function bringIndexBack(folder: string, { root, git, common, index }: NonNullable<SpawnPlan['outside']>, workspace: string): void {
  const path = join(realPlace(folder), 'up.git', relative(common, join(git, 'index')))
  // A command may put a link in the place of a folder.
  const stat = index === undefined || realPlace(path) !== path ? undefined : lstatAt(path)
  if (!stat?.isFile()) return
  try {
    const written = readFileSync(path)
    if (written.equals(readFileSync(join(folder, 'index.git')))) {
      rmSync(path)
      return
    }
    const own = new Set<string>()
    readEntries(readFileSync(join(git, 'index')), 20, ({ name, isHidden }) => void (isHidden && own.add(name)))
    readEntries(written, 20, ({ at, name }) => {
      const isBeside = !isUnder(join(root, Buffer.from(name, 'latin1').toString()), workspace)
      if (isBeside && !own.has(name)) written.writeUInt8(written.readUInt8(at + flagsAt) & ~unchanged, at + flagsAt)
    })
    writeFileSync(path, sealed(written))
    utimesSync(path, stat.atime, Math.floor(stat.mtimeMs) / 1000)
  } catch {
    // The judgement of the changes finds an index that is not understood, or the marks in it.
  }
}

type KeptName = 'index' | 'known'
type Keeping = { readonly home: string; readonly workspace: string }

function keptAt(name: KeptName, { home, workspace }: Keeping): string {
  return join(home, 'run', `git-${name}-${sha256(workspace).slice(0, 16)}`)
}

/** A file that stays the same while its content does lets a sandbox that was started ahead fit. */
function kept(name: KeptName, content: Buffer, of: Keeping): string {
  const path = keptAt(name, of)
  if (lstatAt(path) !== undefined && readFileSync(path).equals(content)) return path
  replaceFile(path, content)
  return path
}

/**
 * A name that the repository's own settings give is not passed on: a variable would take its place. A sandbox with an /etc of its own puts
 * the name there instead. Commands see neither the user's settings nor these variables otherwise.
 */
function identity({ workspace, home, env }: GitContext): { readonly [name: string]: string } {
  const [repository] = repositoriesAround(workspace)
  const local = repository === undefined ? [] : readRepositorySettings(repository, home)
  const user = gitUser({ workspace, home, env })
  const pairs = (['name', 'email'] as const).flatMap((field) => {
    const value = last(local, `user.${field}`) === undefined ? user[field] : undefined
    return ['AUTHOR', 'COMMITTER'].map((role) => [`GIT_${role}_${field.toUpperCase()}`, value] as const)
  })
  return Object.fromEntries(pairs.flatMap(([name, value]) => ((env[name] ?? value) ? [[name, env[name] ?? value ?? '']] : [])))
}

/** Settings that make git run nothing, and reach nothing outside. */
const plain =
  /^(?:core\.(?:autocrlf|eol|safecrlf|quotepath|precomposeunicode|whitespace|abbrev)|init\.defaultbranch|(?:branch|tag)\.sort|branch\.autosetup\w+|commit\.cleanup|diff\.(?:algorithm|renames|mnemonicprefix|noprefix|context)|log\.date|merge\.(?:conflictstyle|ff)|pull\.(?:rebase|ff)|rebase\.auto\w+|status\.\w+)$/

/** Returns what commands get of the user's own settings: who the user is, what runs nothing, and what is ignored in every repository. */
export function gitUser(around: GitContext): GitUser {
  const all = readUserSettings(around)
  const user = all.some(({ key }) => key.startsWith('includeif.')) ? resolvedByGit(around) : all
  const [name, email] = [last(user, 'user.name'), last(user, 'user.email')]
  const settings = user.flatMap(({ key, value = 'true' }) => (plain.test(key) && value.length <= 200 ? [[key, value] as const] : []))
  const files = (['ignore', 'attributes'] as const).flatMap((kind) => {
    const text = readSmall(userFile(kind, user, { ...around, from: around.workspace }))
    return text ? [[kind, text] as const] : []
  })
  const some = (pairs: readonly (readonly [string, string])[]) => (pairs.length > 0 ? Object.fromEntries(pairs) : undefined)
  return { name: name || undefined, email: email || undefined, settings: some(settings), files: some(files) }
}

/** Git itself knows which of the user's files count in this folder, and runs nothing to tell it. */
function resolvedByGit({ workspace, home, env }: GitContext): readonly ConfigEntry[] {
  const { XDG_CONFIG_HOME, GIT_CONFIG_GLOBAL } = env
  const own = { HOME: home, PATH: fixedPath, ...(XDG_CONFIG_HOME && { XDG_CONFIG_HOME }), ...(GIT_CONFIG_GLOBAL && { GIT_CONFIG_GLOBAL }) }
  const argv = ['git', 'config', '--global', '--includes', '--list', '-z']
  try {
    const { stdout } = Bun.spawnSync(argv, { cwd: workspace, env: own, timeout: 2_000, maxBuffer: 1_000_000 })
    const pairs = stdout
      .toString()
      .split('\0')
      .map((entry) => entry.split(/\n(.*)/s))
    return pairs.map(([key = '', value]) => ({ key, value }))
  } catch {
    return []
  }
}

function last(entries: readonly ConfigEntry[], key: string): string | undefined {
  return entries.findLast((entry) => entry.key === key)?.value
}

/**
 * The repository of a linked worktree, if it knows this worktree: a `.git` file alone, which may come from anywhere, opens no folder.
 * @returns an absolute path outside the workspace
 */
export function linkedRepository(workspace: string): string | undefined {
  if (!lstatSync(join(workspace, '.git'), { throwIfNoEntry: false })?.isFile()) return
  const [repository] = repositoriesAround(workspace, workspace)
  if (repository === undefined || isUnder(repository.common, workspace)) return
  const back = readSmall(join(repository.git, 'gitdir'))?.trim()
  const isKnown =
    back !== undefined && expand(back, repository.git, '/') === join(workspace, '.git') && isUnder(repository.git, repository.common)
  const has = (name: string) => lstatSync(join(repository.common, name), { throwIfNoEntry: false }) !== undefined
  return isKnown && isGitFolder(has) ? repository.common : undefined
}

/** @returns absolute paths that the settings of the user, and of repositories around the workspace, make git run */
export function runByGit({ workspace, home, env }: GitContext): readonly string[] {
  const hooks = hooksPath({ home, env })
  return [...(hooks === undefined ? [] : [expand(hooks, workspace, home)]), ...namedAround(workspace, { home }).run]
}

function hooksPath({ home, env }: Omit<GitContext, 'workspace'>, repository?: Repository): string | undefined {
  const local = repository && last(readRepositorySettings(repository, home), 'core.hookspath')
  return local ?? last(readUserSettings({ home, env }), 'core.hookspath')
}

/**
 * Hooks of a repository run with the command, in the sandbox; those of the user's own settings lie outside, where no command reads.
 * @returns one sentence for the model when a command moved HEAD, and such hooks are there
 */
export function hooksNotRun({ workspace, home, env }: GitContext, changed: readonly string[]): string | undefined {
  if (!changed.some((path) => /^(?:\/.+|(?:.+\/)?\.git)\/(?:.*\/)?logs\/HEAD$/.test(path))) return
  const [repository] = repositoriesAround(workspace)
  const given = hooksPath({ home, env }, repository)
  const folder = given === undefined ? workspace : expand(given, repository?.root ?? workspace, home)
  const names = [workspace, repository?.common ?? workspace].some((seen) => isUnder(folder, seen)) ? [] : hooksIn(folder)
  if (names.length > 0)
    return `these git hooks lie outside the workspace and did not run: ${names.join(', ')} (core.hooksPath is ${quote(folder)})`
}

/** @returns the same for the hook that a push in the workspace's repository would run */
export function pushHookNotRun({ workspace, home, env }: GitContext, { git, common, folder }: Pushing): string | undefined {
  const given = hooksPath({ home, env }, { root: folder, git, common })
  const hooks = given === undefined ? join(common, 'hooks') : expand(given, folder, home)
  if (hooksIn(hooks).includes('pre-push'))
    return `the git hook pre-push of ${quote(isUnder(hooks, workspace) ? relative(workspace, hooks) : hooks)} did not run`
}

function hooksIn(folder: string): readonly string[] {
  return namesIn(folder)
    .filter((name) => !name.endsWith('.sample'))
    .toSorted()
}

/**
 * Reads settings and references of a repository, as data, before git reaches a server. @returns undefined for a folder whose repository, or
 * whose link to one, is not of the workspace
 */
export function readRepository(
  judged: Judged,
  env: GitContext['env'],
  cwd: string,
  folders: readonly string[],
): RepositoryFacts | undefined {
  const { workspace, home } = judged.policy
  const place = realPlace(resolve(cwd, ...folders))
  if (!isUnder(place, workspace)) return
  const [found = repositoriesAround(workspace)[0]] = repositoriesAround(place, workspace)
  if (found === undefined) return
  const [git, common] = [realPlace(found.git), realPlace(found.common)]
  const isIn = isUnder(git, workspace) && isUnder(common, workspace)
  const outside = isIn ? undefined : repositoryOutside(judged).outside
  const inside = isIn || (outside?.git === git && outside.common === common)
  if (!inside && linkedRepository(found.root) !== found.common) return
  return {
    folder: isUnder(found.root, workspace) ? found.root : workspace,
    git,
    common,
    inside,
    local: readRepositorySettings({ ...found, git, common }, home),
    user: readUserSettings({ home, env }),
    ...headOf(git, readRefs(common)),
  }
}

function headOf(git: string, refs: RepositoryFacts['refs']): Pick<RepositoryFacts, 'branch' | 'head' | 'refs'> {
  const { branch, id } = readHead(git, refs)
  return { branch, head: id, refs }
}
