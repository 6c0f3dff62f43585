/** The listing of the relation store: its types as they are typed there, and a plan with steps that have several parents. */

import { expect, test } from 'bun:test'
import { formatRelationsForContext } from '../../src/library/formatters.ts'
import { createRelationStore, type RelationStore } from '../../src/library/relations.ts'

type NodeContext = { description: string; status?: 'pending' | 'in_progress' | 'done' | 'failed'; [key: string]: unknown }

type RelationNode = { id: string; parents: string[]; edgeType: string; context: NodeContext; createdAt: number }

type RelationStoreConfig = {
  onPersist?: (nodes: RelationNode[]) => void | Promise<void>
  initialNodes?: RelationNode[]
  autoPersist?: boolean
}

type Listed = {
  add: (node: Omit<RelationNode, 'createdAt'>) => void
  update: (id: string, updates: Partial<NodeContext>) => void
  remove: (id: string) => void
  get: (id: string) => RelationNode | undefined
  has: (id: string) => boolean
  ancestors: (id: string) => RelationNode[]
  descendants: (id: string) => RelationNode[]
  parents: (id: string) => RelationNode[]
  children: (id: string) => RelationNode[]
  roots: () => RelationNode[]
  leaves: () => RelationNode[]
  byEdgeType: (edgeType: string) => RelationNode[]
  byStatus: (status: NodeContext['status']) => RelationNode[]
  wouldCreateCycle: (from: string, toParents: string[]) => boolean
  toContext: (ids: string[]) => string
  persist: () => void | Promise<void>
  all: () => RelationNode[]
  clear: () => void
  size: () => number
}

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false

test('the store has exactly the members of the listing, with their types', () => {
  const same: Equal<RelationStore, Listed> = true
  const config: RelationStoreConfig = {}
  const store: Listed = createRelationStore(config)
  const members =
    'add update remove get has ancestors descendants parents children roots leaves byEdgeType byStatus wouldCreateCycle toContext'
  expect(Object.keys(store).sort()).toEqual(`${members} persist all clear size`.split(' ').sort())
  expect(same).toBe(true)
})

test('a plan with steps, a file and an agent', async () => {
  const saved: RelationNode[] = []
  const store = createRelationStore({
    onPersist: (nodes) => {
      saved.push(...nodes)
    },
  })
  store.add({ id: 'plan', parents: [], edgeType: 'plan', context: { description: 'Implement authentication', status: 'in_progress' } })
  store.add({ id: 'model', parents: ['plan'], edgeType: 'step', context: { description: 'Create user model', status: 'done' } })
  store.add({
    id: 'login',
    parents: ['plan', 'model'],
    edgeType: 'step',
    context: { description: 'Add login endpoint', status: 'pending' },
  })
  store.add({ id: 'user.ts', parents: ['model'], edgeType: 'file', context: { description: 'src/user.ts', lines: 40 } })
  store.update('login', { status: 'in_progress', owner: 'agent-1' })
  expect(store.toContext(['plan'])).toBe(
    [
      'plan: Implement authentication [in_progress]',
      '  step: Create user model [done] (parents: plan)',
      '  step: Add login endpoint [in_progress] (parents: plan, model)',
    ].join('\n'),
  )
  expect(store.byStatus('in_progress').map(({ id }) => id)).toEqual(['plan', 'login'])
  expect(formatRelationsForContext(store.all())).toStartWith('plan: Implement authentication [in_progress]\n  step: Create user model')
  await store.persist()
  const again = createRelationStore({ initialNodes: saved })
  expect(again.all()).toEqual(store.all())
  expect(again.get('login')?.createdAt).toBeGreaterThan(0)
})
