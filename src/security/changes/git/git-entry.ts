/** Judges one changed name in a repository folder: what may run programs or send git elsewhere is refused, plain data may change. */

import type { Change } from '../../../runtime/changes.ts'
import { type ChangeView, folderOf, inFolder, nameOf } from '../change-view.ts'
import type { Weight } from '../finding.ts'
import { judgeSettings } from './config-change.ts'
import { hasKnownStrategies, isHarmlessTodo, isKnownStrategy } from './todo-list.ts'

export type GitEntry = {
  readonly view: ChangeView
  /** The repository folder, and the rest of the path in it. */
  readonly folder: string
  readonly rest: string
  readonly change: Change
  readonly sub: string | undefined
  /** Whether a path that a file in this folder names leads into the workspace, also through links. */
  readonly leadsInside: (from: string, target: string) => boolean
}

type Verdict = { readonly weight: Weight; readonly why: string } | undefined
type Rule = readonly [names: RegExp, judge: (entry: GitEntry) => Verdict]

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
export const watchedFiles = [
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
export const watchedFolders = ['hooks', 'branches', 'remotes'] as const

export function judgeGitEntry(entry: GitEntry): Verdict {
  const { change, rest } = entry
  if (change.after?.kind === 'link') return deny('a symbolic link in a repository')
  return rules.find(([names]) => names.test(rest))?.[1](entry)
}

function isFile({ after }: Change): boolean {
  return after === undefined || after.kind === 'file'
}

function created({ after }: Change, why: string): Verdict {
  return after === undefined || after.kind === 'folder' ? undefined : deny(why)
}

/** The whole text of a file must be fine; a deleted one is. */
function whole({ view, change }: GitEntry, isFine: (text: string) => boolean, why: string): Verdict {
  if (change.after === undefined || change.after.kind === 'other') return
  const text = view.text(change.path, 'after', mostBytes)
  return text !== undefined && isFine(text) ? undefined : deny(why)
}

function isWorktree(folder: string): boolean {
  return nameOf(folderOf(folder)) === 'worktrees'
}

function areInside({ folder, leadsInside }: GitEntry, text: string): boolean {
  return text
    .split('\n')
    .every((line) => line === '' || line.startsWith('#') || (!line.startsWith('"') && leadsInside(inFolder(folder, 'objects'), line)))
}

function settings({ view, change, sub, folder, leadsInside }: GitEntry): Verdict {
  if (change.after !== undefined && change.after.kind !== 'file') return deny('settings of git must be a file')
  const isFine = ({ key, value = '' }: { readonly key: string; readonly value: string | undefined }) =>
    sub === 'submodule' && key === 'core.worktree' && leadsInside(folder, value)
  return judgeSettings({ view, path: change.path, sub, isFine })
}
