/** Keeps nodes that have any number of parents and no cycles: plans and their steps, files, agents. Exported as `braidclaw/relations`. */

import { errorText } from '../kit/errors.ts'
import { isObject } from '../kit/json.ts'
import { createSaver, type SaveOptions } from './saver.ts'

/** Describes a node for a model. Further members are kept; they are data, no functions. */
export type NodeContext = { description: string; status?: 'pending' | 'in_progress' | 'done' | 'failed'; [key: string]: unknown }

/** `parents` are the ids of the nodes above; `edgeType` is 'plan', 'step', 'file' or another word; `createdAt` counts milliseconds since 1970. */
export type RelationNode = { id: string; parents: string[]; edgeType: string; context: NodeContext; createdAt: number }

/** `initialNodes` may stand in any order. */
export type RelationStoreConfig = SaveOptions<RelationNode[]> & { initialNodes?: RelationNode[] }

export type RelationStore = ReturnType<typeof createRelationStore>

/**
 * Every returned node is a copy. Unknown ids give undefined, false or an empty list.
 * @throws Error that lists all that is wrong with `initialNodes`: nodes without an id, ids given twice, unknown parents, cycles
 */
export function createRelationStore(config: RelationStoreConfig = {}) {
  const nodes = new Map<string, RelationNode>()
  const below = new Map<string, Set<string>>()
  const { save, changed } = createSaver(config, () => copies(nodes.values()))

  function put(node: RelationNode): void {
    detach(node.id)
    nodes.set(node.id, node)
    for (const parent of node.parents) below.set(parent, (below.get(parent) ?? new Set()).add(node.id))
  }

  function detach(id: string): void {
    for (const parent of nodes.get(id)?.parents ?? []) below.get(parent)?.delete(id)
  }

  /** Takes nodes in any order. @throws Error that lists everything that is wrong with them */
  function load(given: readonly unknown[]): void {
    const wrong: string[] = []
    for (const each of given) {
      try {
        const node = nodeFrom(each)
        if (nodes.has(node.id)) wrong.push(`Node '${node.id}' is given twice`)
        put(node)
      } catch (error) {
        wrong.push(errorText(error))
      }
    }
    for (const { id, parents } of nodes.values()) wrong.push(...missing(parents).map((text) => `Node '${id}': ${text}`))
    wrong.push(...depthFirst(nodes.keys(), above).cycles.map((cycle) => `Cycle: ${pathText(cycle)}`))
    if (wrong.length > 0) throw new Error(`initialNodes: ${wrong.join('; ')}`)
  }

  function missing(parents: readonly string[]): string[] {
    return parents.flatMap((parent) => (nodes.has(parent) ? [] : `Parent node '${parent}' does not exist`))
  }

  const above = (id: string): Iterable<string> => nodes.get(id)?.parents ?? []
  const under = (id: string): Iterable<string> => below.get(id) ?? []
  const found = (ids: Iterable<string>) => copies([...ids].flatMap((id) => nodes.get(id) ?? []))
  const where = (test: (node: RelationNode) => boolean) => copies([...nodes.values()].filter(test))

  /** Returns the ids from `id` upwards to itself; undefined when these parents close no cycle. A new node has no children. */
  function cycleOf(id: string, parents: readonly string[]): string[] | undefined {
    if (!nodes.has(id) && !parents.includes(id)) return undefined
    return depthFirst([id], (at) => (at === id ? parents : above(at))).cycles[0]
  }

  load(config.initialNodes ?? [])
  return {
    /**
     * Adds a node, or replaces the one with this id and its parents. @throws Error for an unknown parent, for a cycle (the message shows its
     * path) and for what is not a node; then nothing changes
     */
    add(given: Omit<RelationNode, 'createdAt'>): void {
      const node = nodeFrom({ ...given, createdAt: Date.now() })
      const { id, parents } = node
      const cycle = cycleOf(id, parents)
      if (cycle) throw new Error(`Adding node '${id}' with parents [${parents.join(', ')}] would create a cycle: ${pathText(cycle)}`)
      if (missing(parents).length > 0) throw new Error(missing(parents).join('; '))
      put(node)
      changed()
    },
    /** Changes members of the context. @throws Error for an unknown id */
    update(id: string, updates: Partial<NodeContext>): void {
      const node = nodes.get(id)
      if (!node) throw new Error(`Node '${id}' does not exist`)
      nodes.set(id, nodeFrom({ ...node, context: { ...node.context, ...updates } }))
      changed()
    },
    /** Removes one node. Its children stay and lose this parent: a child without another one becomes a root. */
    remove(id: string): void {
      if (!nodes.has(id)) return
      detach(id)
      for (const child of found(under(id))) nodes.set(child.id, { ...child, parents: child.parents.filter((parent) => parent !== id) })
      nodes.delete(id)
      below.delete(id)
      changed()
    },
    get: (id: string) => found([id])[0],
    has: (id: string) => nodes.has(id),
    /** Returns each node above once, the nearest first on each way up. */
    ancestors: (id: string) => found(depthFirst(above(id), above).seen),
    descendants: (id: string) => found(depthFirst(under(id), under).seen),
    parents: (id: string) => found(above(id)),
    children: (id: string) => found(under(id)),
    roots: () => where(({ parents }) => parents.length === 0),
    leaves: () => where(({ id }) => !below.get(id)?.size),
    byEdgeType: (edgeType: string) => where((node) => node.edgeType === edgeType),
    byStatus: (status: NodeContext['status']) => where(({ context }) => context.status === status),
    /** Tells whether `from` would be above itself with these parents. */
    wouldCreateCycle: (from: string, toParents: string[]) => cycleOf(from, toParents) !== undefined,
    /** Returns one line a node, with its status and the ids of its parents, and its children indented below. */
    toContext(ids: string[]): string {
      const line = (node: RelationNode) => lineOf(node, 'parents', node.parents)
      return found(ids)
        .flatMap((node) => [line(node), ...found(under(node.id)).map((child) => `  ${line(child)}`)])
        .join('\n')
    },
    /** Calls onPersist with all nodes; rejects when it fails. */
    persist: (): void | Promise<void> => save(),
    all: () => copies(nodes.values()),
    clear(): void {
      nodes.clear()
      below.clear()
      changed()
    },
    size: () => nodes.size,
  }
}

/** Returns one line, so that a description cannot look like another node. */
export function lineOf(
  { edgeType, context }: Pick<RelationNode, 'edgeType' | 'context'>,
  word: string,
  parents: readonly string[],
): string {
  const more = parents.length > 0 ? ` (${word}: ${parents.join(', ')})` : ''
  return `${edgeType}: ${context.description}${context.status ? ` [${context.status}]` : ''}${more}`.replace(/\s+/g, ' ')
}

function copies(nodes: Iterable<RelationNode>): RelationNode[] {
  return Array.from(nodes, (node) => structuredClone(node))
}

/** Leaves out the middle of a long path. */
function pathText(ids: readonly string[]): string {
  return (ids.length > 20 ? [...ids.slice(0, 9), `… ${ids.length - 18} more …`, ...ids.slice(-9)] : ids).join(' → ')
}

/** @returns a copy. @throws Error that names what is wrong */
function nodeFrom(given: unknown): RelationNode {
  const { id, parents, edgeType, context, createdAt } = isObject(given) ? given : {}
  const wrong = (what: string) => new Error(`Node ${typeof id === 'string' ? `'${id}'` : JSON.stringify(id)}: ${what}`)
  if (typeof id !== 'string' || id === '') throw wrong('"id" must be a text that is not empty')
  if (!Array.isArray(parents) || !parents.every((parent) => typeof parent === 'string')) throw wrong('"parents" must be a list of ids')
  if (typeof edgeType !== 'string' || !isObject(context) || typeof context.description !== 'string' || typeof createdAt !== 'number')
    throw wrong('it needs a text "edgeType" and a "context" with a text "description", and one of initialNodes a number "createdAt"')
  try {
    const data = structuredClone({ ...context, description: context.description })
    return { id, parents: [...new Set(parents)], edgeType, context: data, createdAt }
  } catch (error) {
    throw wrong(`"context" must be data: ${errorText(error)}`)
  }
}

/** Visits each id once. One that is met again while what follows from it is not yet done closes a cycle. */
function depthFirst(starts: Iterable<string>, next: (id: string) => Iterable<string>) {
  const cycles: string[][] = []
  const seen = new Map<string, 'open' | 'done'>()
  const trail: { readonly id: string; readonly rest: Iterator<string> }[] = []
  function visit(id: string): void {
    const ids = seen.get(id) === 'open' ? trail.map((each) => each.id) : []
    if (ids.length > 0) cycles.push([...ids.slice(ids.indexOf(id)), id])
    if (seen.has(id)) return
    seen.set(id, 'open')
    trail.push({ id, rest: next(id)[Symbol.iterator]() })
  }
  for (const start of starts) {
    visit(start)
    for (let top = trail.at(-1); top !== undefined; top = trail.at(-1)) {
      const { done, value } = top.rest.next()
      if (!done) visit(value)
      else seen.set(trail.pop()?.id ?? '', 'done')
    }
  }
  return { seen: seen.keys(), cycles }
}
