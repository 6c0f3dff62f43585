/** Reads commits and trees, and finds which commits are new and which are lost between two sets of starting points. */

import type { TreeEntry } from '../../security/changes/git-moves.ts'
import { GitLimit, type Objects } from './read-objects.ts'
import type { ObjectType } from './read-packs.ts'

export type Commit = {
  readonly id: string
  readonly tree: string
  readonly parents: readonly string[]
  readonly date: number
  readonly subject: string
  readonly author: string
}

/** A path of a tree with one character per byte. */
export type TreeChange = { readonly name: string; readonly before?: TreeEntry; readonly after?: TreeEntry }

type Tree = ReadonlyMap<string, TreeEntry>

export type GitHistory = {
  /** @returns the commit that the id names, also by a tag; undefined when it is missing, broken or no commit */
  commit(id: string): Commit | undefined
  /** @returns what the id names, with a tag of a commit as that commit */
  type(id: string): ObjectType | undefined
  /** @returns the paths of files that differ @throws GitMissing, GitLimit */
  differences(before: string | undefined, after: string | undefined): readonly TreeChange[]
  /** @returns what a tree holds at a path, which has one character per byte @throws GitMissing, GitLimit */
  at(tree: string, name: string): TreeEntry | undefined
  /** @returns whether what the starting points need includes one of `wanted` @throws GitMissing, GitLimit */
  needs(starts: readonly string[], targets: ReadonlySet<string>): boolean
}

/** Says that an object is not there or broken. */
export class GitMissing extends Error {
  constructor(id: string) {
    super(`its object ${id.slice(0, 7)} is missing, broken or too large`)
  }
}

export const isFolder = ({ mode }: TreeEntry) => mode === '40000'
const mostPaths = 50_000

export function createHistory(objects: Objects): GitHistory {
  const commits = new Map<string, Commit | undefined>()
  const trees = new Map<string, Tree>()

  function commit(id: string, tags = 5): Commit | undefined {
    if (commits.has(id)) return commits.get(id)
    const object = objects.read(id)
    const inner = object?.type === 'tag' ? /^object ([\da-f]+)\n/.exec(object.content.toString('latin1', 0, 80))?.[1] : undefined
    const found = object?.type === 'commit' ? parseCommit(id, object.content) : inner && tags > 0 ? commit(inner, tags - 1) : undefined
    commits.set(id, found)
    return found
  }

  function tree(id: string): Tree {
    const known = trees.get(id)
    if (known) return known
    const object = objects.read(id)
    if (object?.type !== 'tree') throw new GitMissing(id)
    const found = parseTree(object.content, id.length / 2)
    trees.set(id, found)
    return found
  }

  return {
    commit,
    type: (id) => (commit(id) ? 'commit' : objects.read(id)?.type),
    differences(before, after) {
      const found: TreeChange[] = []
      compare(tree, { before, after, folder: '' }, found)
      return found
    },
    at(root, name) {
      const entry = name
        .split('/')
        .reduce<TreeEntry | undefined>((above, part) => (above && isFolder(above) ? tree(above.id).get(part) : undefined), {
          mode: '40000',
          id: root,
        })
      return entry && !isFolder(entry) ? entry : undefined
    },
    needs: (starts, targets) => needs(objects, starts, targets),
  }
}

type Comparing = { readonly before: string | undefined; readonly after: string | undefined; readonly folder: string }

function compare(tree: (id: string) => Tree, { before, after, folder }: Comparing, found: TreeChange[]): void {
  if (before === after) return
  if (found.length > mostPaths) throw new GitLimit(`it has more than ${mostPaths} changed paths`)
  const [old, now] = [before === undefined ? (new Map() as Tree) : tree(before), after === undefined ? (new Map() as Tree) : tree(after)]
  for (const name of new Set([...old.keys(), ...now.keys()])) {
    const [was, is] = [old.get(name), now.get(name)]
    if (was?.id === is?.id && was?.mode === is?.mode) continue
    const [above, below] = [was, is].map((entry) => (entry && isFolder(entry) ? entry.id : undefined))
    if (above !== undefined || below !== undefined) compare(tree, { before: above, after: below, folder: `${folder}${name}/` }, found)
    const [from, to] = [was, is].map((entry) => (entry && !isFolder(entry) ? entry : undefined))
    if (from || to) found.push({ name: folder + name, before: from, after: to })
  }
}

function needs(objects: Objects, starts: readonly string[], targets: ReadonlySet<string>): boolean {
  const seen = new Set<string>()
  const waiting = [...starts]
  for (let id = waiting.pop(); id !== undefined; id = waiting.pop()) {
    if (seen.has(id)) continue
    seen.add(id)
    if (targets.has(id)) return true
    const object = objects.read(id)
    if (object === undefined) throw new GitMissing(id)
    const { type, content } = object
    const { tree, parents } = type === 'commit' ? parseCommit(id, content) : { tree: undefined, parents: [] }
    waiting.push(...(tree === undefined ? [] : [tree]), ...parents)
    if (type === 'tag') waiting.push(content.toString('latin1', 7, 7 + id.length))
    const entries = type === 'tree' ? [...parseTree(content, id.length / 2).values()] : []
    if (entries.some((entry) => !isFolder(entry) && targets.has(entry.id))) return true
    waiting.push(...entries.filter(isFolder).map((entry) => entry.id))
  }
  return false
}

function parseCommit(id: string, content: Buffer): Commit {
  const text = content.toString()
  const end = text.indexOf('\n\n')
  const head = end < 0 ? text : text.slice(0, end)
  const [subject = ''] = (end < 0 ? '' : text.slice(end + 2, end + 1_000)).trimStart().split('\n', 1)
  const [author = '', committer = ''] = ['author', 'committer'].map((name) => new RegExp(`^${name} (.*)$`, 'm').exec(head)?.[1] ?? '')
  // Git follows only the parents that stand right after the tree.
  const [, tree = '', parents = ''] = /^tree ([\da-f]+)\n((?:parent [\da-f]+\n)*)/.exec(`${head}\n`) ?? []
  return {
    id,
    tree,
    parents: [...parents.matchAll(/[\da-f]{40,}/g)].map(([parent]) => parent),
    date: Number(committer.slice(committer.lastIndexOf('> ') + 2).split(' ', 1)[0]) || 0,
    subject: subject.slice(0, 200),
    author: author.slice(0, Math.max(0, author.lastIndexOf(' <'))).slice(0, 100),
  }
}

/** @throws Error for a tree that git would not read to its end, or that holds one name twice */
function parseTree(content: Buffer, idBytes: number): Tree {
  const found = new Map<string, TreeEntry>()
  for (let at = 0; at < content.length; ) {
    const [space, end] = [content.indexOf(32, at), content.indexOf(0, at)]
    const name = content.toString('latin1', space + 1, end)
    if (space < 0 || end < space || end + idBytes >= content.length || found.has(name)) throw new Error('a tree is damaged')
    const mode = content.toString('latin1', at, space).replace(/^0+/, '')
    // Git keeps only the executable bit of a file.
    const usual = mode.length === 6 && mode.startsWith('100') ? (Number.parseInt(mode, 8) & 0o100 ? '100755' : '100644') : mode
    found.set(name, { mode: usual, id: content.toString('hex', end + 1, end + 1 + idBytes) })
    at = end + 1 + idBytes
  }
  return found
}

export const isNew = 1
export const isOld = 2
const both = 3
const mostCommits = 20_000
const mostWaiting = 5_000

/**
 * Walks from both sides until they meet.
 * @returns each commit that was met with the sides that reach it; `whole` is false when there were too many @throws GitMissing
 */
export function walk(history: Pick<GitHistory, 'commit'>, starts: ReadonlyMap<string, number>, isCutOff: (id: string) => boolean) {
  const sides = new Map<string, number>()
  const queue: Commit[] = []
  const enter = (id: string, side: number, from?: string) => {
    const [known = 0, commit] = [sides.get(id), history.commit(id)]
    // An object that is missing only on the old side was missing before.
    if (commit === undefined && side === isNew && !(from !== undefined && isCutOff(from))) throw new GitMissing(id)
    if (commit === undefined || (known | side) === known) return
    sides.set(commit.id, (sides.get(commit.id) ?? 0) | side)
    if (!queue.includes(commit)) queue.push(commit)
  }
  for (const [id, side] of starts) enter(id, side)
  const waits = (isOpen: (side: number) => boolean) => queue.some(({ id }) => isOpen(sides.get(id) ?? 0))
  for (let met = 0; waits((side) => side === isNew) || (waits((side) => side === isOld) && waits((side) => side === both)); met++) {
    if (met >= mostCommits || queue.length > mostWaiting) return { sides, whole: false }
    const next = queue.reduce((latest, commit) => (commit.date > latest.date ? commit : latest))
    queue.splice(queue.indexOf(next), 1)
    for (const parent of next.parents) enter(parent, sides.get(next.id) ?? 0, next.id)
  }
  return { sides, whole: true }
}
