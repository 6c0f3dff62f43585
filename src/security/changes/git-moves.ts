/** Defines what a change set moves in repositories, and describes it to people. */

import { count, quote } from '../../kit/text.ts'

/** A file in a tree: its mode in octal digits, as git writes it, and the id of its content. */
export type TreeEntry = { readonly mode: string; readonly id: string }

/** A path of a tree or of the index that was added or changed; it is relative to the work tree. */
export type GitEntryMove = {
  readonly path: string
  /** Base64 of the real bytes when the path is not UTF-8. */
  readonly bytes?: string
  readonly before?: TreeEntry
  readonly after: TreeEntry
}

export type MovedCommit = {
  readonly id: string
  readonly subject: string
  readonly author: string
  readonly files: number
  /** Only the paths that the judge has something to say about, and that no older tree holds with the same content. */
  readonly entries: readonly GitEntryMove[]
}

/** `to` is absent for a deleted reference, `from` for a new one. `commits` are the new ones that it reaches, latest first. */
export type RefMove = { readonly name: string; readonly from?: string; readonly to?: string; readonly commits: readonly string[] }

export type RepositoryMoves = {
  /** The folder of the repository, and that of its work tree if it has one, relative to the workspace. */
  readonly folder: string
  readonly root?: string
  /** The branch that HEAD names now and did not name before. */
  readonly branch?: string
  readonly refs: readonly RefMove[]
  readonly commits: readonly MovedCommit[]
  /** The same entries for the index. */
  readonly staged: readonly GitEntryMove[]
  /** The number of paths that differ in the index. */
  readonly stagedPaths: number
  /** Reasons to refuse it, and to ask a person, each of which completes "REPOSITORY: …". */
  readonly refused: readonly string[]
  readonly doubts: readonly string[]
  /** Reasons why parts could not be read, without which the refusals of this file would mean nothing. */
  readonly unread: readonly string[]
}

/** The moves of change sets in repositories of the workspace; empty when they move nothing. */
export type GitMoves = readonly RepositoryMoves[]

export type MoveLine = { readonly title: string; readonly folder: string; readonly commit?: string }

/** @returns one line for each reference that moved, `commit 25efb28 on master: "fix: the sum" by "Ann", 1 file`, and for each of its further commits */
export function describeMoves(git: GitMoves): readonly MoveLine[] {
  return git.flatMap(({ folder, refs, commits, stagedPaths, branch }) => {
    const byId = new Map(commits.map((commit) => [commit.id, commit]))
    const where = folder === '.git' ? '' : ` in ${quote(folder)}`
    const seen = new Set<string>()
    const tell = (commit: MovedCommit, on: string): readonly MoveLine[] => {
      const { id, subject, author, files } = commit
      if (seen.has(id)) return []
      seen.add(id)
      return [
        { folder, commit: id, title: `commit ${id.slice(0, 7)}${on}: ${quote(subject)} by ${quote(author)}, ${count(files, 'file')}` },
      ]
    }
    const lines = refs.flatMap(({ name, from, to, commits: [first, ...more] }): readonly MoveLine[] => {
      const newest = first === undefined ? undefined : byId.get(first)
      const on = `${shortName(name)}${where}`
      const latest = newest ? tell(newest, ` on ${on}`) : []
      const commitLines = [...latest, ...more.flatMap((id) => byId.get(id) ?? []).flatMap((each) => tell(each, ` on ${on}, too`))]
      if (commitLines.length > 0) return commitLines
      if (to === undefined) return name === 'HEAD' ? [] : [{ folder, title: `${on} is deleted; it was ${from?.slice(0, 7)}` }]
      return [
        {
          folder,
          title: from === undefined ? `${on} is new, at ${to.slice(0, 7)}` : `${on} moves from ${from.slice(0, 7)} to ${to.slice(0, 7)}`,
        },
      ]
    })
    const switched = branch === undefined ? [] : [{ folder, title: `git${where} is on ${shortName(branch)}` }]
    const isStaged = stagedPaths > 0 && lines.length === 0
    return [...lines, ...switched, ...(isStaged ? [{ folder, title: `${count(stagedPaths, 'path')} in the index of git${where}` }] : [])]
  })
}

function shortName(name: string): string {
  if (name === 'refs/stash') return 'the stash'
  const short = name.replace(/^refs\/(?:heads|remotes)\//, '').replace(/^refs\/tags\//, 'tag ')
  return /^(?:tag )?[\w./@+-]{1,80}$/.test(short) ? short : quote(short)
}

const ownFiles =
  /^(?:(?:modules|worktrees)\/.+\/)?(?:(?:objects|refs|logs)(?:\/.*)?|index|packed-refs|\w*HEAD|AUTO_MERGE|[A-Z]+_(?:EDIT)?MSG|gc\.(?:log|pid))$/

/** Tells whether git keeps its own data under the path: objects, references, the index, logs. */
export function isOwnOfGit(path: string, git: GitMoves): boolean {
  const inGit = /^(?:.*\/)?\.git\/(.+)$/.exec(path)?.[1]
  const rests = [inGit, ...git.map(({ folder }) => (path.startsWith(`${folder}/`) ? path.slice(folder.length + 1) : undefined))]
  return rests.some((rest) => rest !== undefined && ownFiles.test(rest))
}
