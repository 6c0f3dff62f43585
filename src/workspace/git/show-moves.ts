/** Prepares what a change set moves in repositories for people: a line for each reference, and the files of its new commits on request. */

import { attempt } from '../../kit/errors.ts'
import type { Change, ChangeSet, EntryState, GitShown } from '../../runtime/changes.ts'
import { createChangeView } from '../../security/changes/change-view.ts'
import { describeMoves, isOwnOfGit, type TreeEntry } from '../../security/changes/git-moves.ts'
import type { Look } from '../../security/changes/review-context.ts'
import { namesOf } from '../changes/tree/entry.ts'
import { objectPlaces } from './changed-repository.ts'
import { createHistory } from './read-history.ts'
import { readMoves } from './read-moves.ts'
import { openObjects } from './read-objects.ts'

export type ShowAsked = {
  readonly workspace: string
  /** The absolute folder that holds what the command wrote. */
  readonly upper: string
  readonly changes: readonly Change[]
  readonly open: () => Look & Disposable
}

/** Reads nothing before the first call. Never throws: what cannot be read is left out. */
export function showMoves({ workspace, upper, changes, open }: ShowAsked): GitShown {
  const policy = { workspace, workspaceOnly: true, forbiddenPaths: [], protectedPaths: [], home: '' }
  const state: { found?: ReturnType<typeof readAll> } = {}
  const read = () => (state.found ??= readAll())
  function readAll() {
    try {
      using now = open()
      const moves = readMoves({ upper, changes, context: { policy, level: 'supervised', approved: false, look: now } })
      const view = createChangeView(changes, now)
      return { moves, places: new Map(moves.map(({ folder }) => [folder, objectPlaces({ workspace, upper, view }, folder)])) }
    } catch {
      return { moves: [], places: new Map<string, readonly string[]>() }
    }
  }
  return {
    isOwn: (path) => isOwnOfGit(path, read().moves),
    parts() {
      const { moves, places } = read()
      return describeMoves(moves).map(({ title, folder, commit }) => {
        const set = commit === undefined ? undefined : filesOf(places.get(folder) ?? [], commit)
        return { title, set }
      })
    },
  }
}

function filesOf(places: readonly string[], id: string): ChangeSet | undefined {
  return attempt(() => {
    using objects = openObjects(places)
    const history = createHistory(objects)
    const commit = history.commit(id)
    const [first] = commit?.parents ?? []
    const parent = first === undefined ? undefined : history.commit(first)
    const changes = history
      .differences(parent?.tree, commit?.tree)
      .map(({ name, before, after }) => ({ ...namesOf(name), before: before && stateOf(before), after: after && stateOf(after) }))
    return { stage: 'made', changes, content: (change, side) => contentOf(places, change[side]?.sha256) }
  })
}

/** Uses the id of the content as its digest, because both are the same for the same content. */
function stateOf({ mode, id }: TreeEntry): EntryState {
  return { kind: mode.startsWith('100') || mode === '120000' ? 'file' : 'other', mode: Number.parseInt(mode, 8) & 0o777, sha256: id }
}

function contentOf(places: readonly string[], id: string | undefined): Uint8Array | undefined {
  using objects = openObjects(places)
  const found = id === undefined ? undefined : objects.read(id)
  return found?.type === 'blob' ? found.content : undefined
}
