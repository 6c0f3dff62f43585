/** Judges what git itself holds after a change set: files that travel in commits, stashes and the index, and history that gets lost. */

import { quote } from '../../../kit/text.ts'
import type { Change } from '../../../runtime/changes.ts'
import { type ChangeView, inFolder, pathIn } from '../change-view.ts'
import type { GitEntryMove, RepositoryMoves, TreeEntry } from '../git-moves.ts'
import type { ChangeFinding, ReviewContext, Side } from '../review-context.ts'
import { createHarmlessJudge } from './harmless.ts'

export type EntryJudge = (
  entry: GitEntryMove,
  repository: Pick<RepositoryMoves, 'folder' | 'root'>,
) => Omit<ChangeFinding, 'path'> | undefined

/** Largest file of the work tree that is compared with a file of git. */
const mostBytes = 16 * 1024 ** 2

export type Judging = Pick<ReviewContext, 'policy' | 'git' | 'ignored' | 'answered'> & {
  /** Says why a path may not change. */
  readonly lock: (path: string) => Omit<ChangeFinding, 'path'> | undefined
}

/** Skips a file that is in the work tree with the same content: it belonged to the person before, or is judged as a file. */
export function createEntryJudge(view: ChangeView, judging: Judging): EntryJudge {
  const { lock, policy } = judging
  const asFile = (entry: GitEntryMove, path: string) => {
    const change = asChange(entry, path)
    const found = createHarmlessJudge(instead(view, change), judging).askAbout(change)
    return found && { weight: found.weight, rule: found.rule, why: found.why }
  }
  return (entry, repository) => {
    const { bytes, before, after } = entry
    const path = pathOf(entry, repository, policy.workspace)
    const ask = (why: string) => ({ weight: 'ask', rule: 'changes.git_asks', why }) as const
    if (/(?:^|\/)\.git(?:\/|$)/.test(entry.path)) return { weight: 'deny', rule: 'changes.git', why: 'a path that git itself would obey' }
    if (after.mode === '160000') return before?.id === after.id ? undefined : ask('a submodule that is another commit')
    const locked = lock(path)
    const found = locked ?? (after.mode === '120000' ? ask('a symbolic link') : asFile(entry, path))
    if (found === undefined || repository.root === undefined || bytes !== undefined) return found
    if (!sides.some((side) => holds(view, path, side, after))) return found
    const isOwn = locked && before === undefined && view.change(path) === undefined
    return isOwn ? ask(`${locked.why}; no commit held it before`) : undefined
  }
}

/** Returns where the file would be, or might be, because the work tree of a repository is not always known. */
function pathOf({ path }: GitEntryMove, { folder, root }: Pick<RepositoryMoves, 'folder' | 'root'>, workspace: string): string {
  return pathIn(workspace, inFolder(root ?? folder.replace(/(?:^|\/)\.git(?:\/.*)?$/, ''), path))
}

const sides = ['after', 'before'] as const

function holds(view: ChangeView, path: string, side: Side, { mode, id }: TreeEntry): boolean {
  const text = mode === '120000' && view.kind(path, side) === 'link' ? view.target(path, side) : undefined
  const content = text === undefined ? (mode.startsWith('100') ? view.start(path, side, mostBytes) : undefined) : Buffer.from(text)
  if (content === undefined || (mode === '100755') !== (text === undefined && ((view.mode(path, side) ?? 0) & 0o100) !== 0)) return false
  const hasher = new Bun.CryptoHasher(id.length === 64 ? 'sha256' : 'sha1')
  return hasher.update(`blob ${content.length}\0`).update(content).digest('hex') === id
}

function asChange({ before, after, bytes }: GitEntryMove, path: string): Change {
  const state = ({ mode }: TreeEntry) => ({ kind: 'file', mode: Number.parseInt(mode, 8) & 0o777, size: 1 }) as const
  return { path, bytes, before: before && state(before), after: state(after) }
}

/** The view with the content of this path unread, so that whatever depends on it asks. */
function instead(view: ChangeView, change: Change): ChangeView {
  const isOther = (path: string) => path !== change.path
  return {
    ...view,
    kind: (path, side) => (isOther(path) ? view.kind(path, side) : change[side]?.kind),
    mode: (path, side) => (isOther(path) ? view.mode(path, side) : change[side]?.mode),
    text: (path, side, max) => (isOther(path) ? view.text(path, side, max) : undefined),
    start: (path, side, max) => (isOther(path) ? view.start(path, side, max) : undefined),
    change: (path) => (isOther(path) ? view.change(path) : change),
  }
}

export function judgeGitMoves(view: ChangeView, judging: Judging): readonly ChangeFinding[] {
  const { git = [] } = judging
  if (git.length === 0) return []
  const judge = createEntryJudge(view, judging)
  return git.flatMap((repository) => {
    const { folder, commits, staged, refused, doubts, unread } = repository
    const reported = new Set<string>()
    const judged = (entries: readonly GitEntryMove[], where: string) =>
      entries.flatMap((entry): readonly ChangeFinding[] => {
        const found = judge(entry, repository)
        const path = pathOf(entry, repository, judging.policy.workspace)
        const key = `${path}\0${entry.after.id}\0${found?.why}`
        if (found === undefined || reported.has(key)) return []
        reported.add(key)
        return [{ ...found, path, why: `${where} holds it; ${found.why}` }]
      })
    const about = (weight: ChangeFinding['weight']) => (why: string) =>
      ({ weight, rule: 'changes.git_asks', path: folder || '.', why }) as const
    return [
      ...commits.flatMap(({ id, subject, entries }) => judged(entries, `commit ${id.slice(0, 7)} (${quote(subject)})`)),
      ...judged(staged, 'the index of git'),
      ...refused.map((why) => ({ ...about('deny')(why), rule: 'changes.git' as const })),
      ...unread.map(about('person')),
      ...doubts.map(about('ask')),
    ]
  })
}
