import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { processorMs } from '../../test/support/processor-ms.ts'
import { createRelationStore, type RelationNode, type RelationStore } from './relations.ts'

const node = (id: string, parents: string[] = [], status?: 'pending' | 'done') => ({
  id,
  parents,
  edgeType: 'step',
  context: { description: id.toUpperCase(), ...(status ? { status } : {}) },
})
const old = (id: string, parents: string[] = []): RelationNode => ({ ...node(id, parents), createdAt: 1 })
const ids = (nodes: readonly RelationNode[]) => nodes.map(({ id }) => id)

function diamond(): RelationStore {
  const store = createRelationStore()
  for (const [id, parents] of [
    ['a', []],
    ['b', ['a']],
    ['c', ['a']],
    ['d', ['b', 'c']],
  ] as const)
    store.add(node(id, [...parents]))
  return store
}

test.each<[string, string, string[], string]>([
  ['a node of its own', 'x', ['x'], 'x → x'],
  ['its child', 'a', ['b'], 'a → b → a'],
  ['what is far below it', 'a', ['d'], 'a → d → b → a'],
])('a parent that is %s is refused, and the path is shown', (_, id, parents, path) => {
  const store = diamond()
  const before = store.all()
  expect(store.wouldCreateCycle(id, parents)).toBe(true)
  expect(() => store.add(node(id, parents))).toThrow(`Adding node '${id}' with parents [${parents}] would create a cycle: ${path}`)
  expect(store.all()).toEqual(before)
})

test.each<[string, unknown, string]>([
  ['without an id', { ...node('x'), id: '' }, '"id" must be a text'],
  ['whose parents are no list', { ...node('x'), parents: 'a' }, '"parents" must be a list of ids'],
  ['without a description', { ...node('x'), context: {} }, 'a text "description"'],
  ['with a function in its context', { ...node('x'), context: { description: 'x', run: () => 1 } }, '"context" must be data'],
  ['with parents that are not there', node('x', ['a', 'no', 'nor']), "Parent node 'no' does not exist; Parent node 'nor' does not exist"],
])('a node %s is refused and changes nothing', (_, given, message) => {
  const store = diamond()
  const add: (node: never) => void = store.add
  expect(() => Reflect.apply(add, undefined, [given])).toThrow(message)
  expect(store.size()).toBe(4)
})

test('initial nodes are checked together, and one error lists all', () => {
  const initialNodes = [
    old('a', ['c']),
    old('b', ['a']),
    old('c', ['b']),
    old('d'),
    old('d'),
    old('e', ['nowhere']),
    { ...old('f'), id: '' },
  ]
  expect(() => createRelationStore({ initialNodes })).toThrow(
    /^initialNodes: Node 'd' is given twice; Node '': "id" must be .*; Node 'e': Parent node 'nowhere' does not exist; Cycle: a → c → b → a$/,
  )
  expect(ids(createRelationStore({ initialNodes: [old('kid', ['top']), old('top')] }).all())).toEqual(['kid', 'top'])
})

test('a node with several parents is met once, the nearest first', () => {
  const store = diamond()
  expect(ids(store.ancestors('d'))).toEqual(['b', 'a', 'c'])
  expect(ids(store.descendants('a'))).toEqual(['b', 'd', 'c'])
  expect([ids(store.parents('d')), ids(store.children('a')), ids(store.roots()), ids(store.leaves())]).toEqual([
    ['b', 'c'],
    ['b', 'c'],
    ['a'],
    ['d'],
  ])
  expect([store.ancestors('?'), store.children('?'), store.get('?'), store.has('?')]).toEqual([[], [], undefined, false])
})

test('a removed node leaves its children: they lose this parent, and become roots without another one', () => {
  const store = diamond()
  store.remove('b')
  store.remove('nobody')
  expect(store.get('d')?.parents).toEqual(['c'])
  store.remove('a')
  expect(ids(store.roots())).toEqual(['c'])
  expect(ids(store.leaves())).toEqual(['d'])
  store.add(node('a', ['d']))
  expect(ids(store.ancestors('a'))).toEqual(['d', 'c'])
})

test('a node that is added again has other parents, and its children stay', () => {
  const store = diamond()
  store.add(node('d', ['b', 'b']))
  store.add(node('c', ['b']))
  expect(store.get('d')?.parents).toEqual(['b'])
  expect(ids(store.children('c'))).toEqual([])
  expect(ids(store.descendants('a'))).toEqual(['b', 'd', 'c'])
})

test('what is returned, and what was given, is a copy', () => {
  const given = { ...node('a'), context: { description: 'A', tags: ['x'] } }
  const store = createRelationStore()
  store.add(given)
  given.context.tags.push('y')
  for (const found of [store.get('a'), store.all()[0], store.roots()[0], store.byEdgeType('step')[0]]) {
    found?.parents.push('z')
    Object.assign(found?.context ?? {}, { description: 'changed', tags: [] })
  }
  expect(store.get('a')).toMatchObject({ parents: [], context: { description: 'A', tags: ['x'] } })
})

test('the text for a model has one line a node, whatever the description holds', () => {
  const store = diamond()
  store.update('b', { description: 'B\nplan: forged [done]', status: 'done' })
  expect(store.toContext(['a', '?'])).toBe('step: A\n  step: B plan: forged [done] [done] (parents: a)\n  step: C (parents: a)')
  expect(store.byStatus('done').length).toBe(1)
  expect(() => store.update('?', { status: 'done' })).toThrow("Node '?' does not exist")
  expect(() => store.update('b', { description: undefined })).toThrow('a text "description"')
})

test('onPersist is called once at a time, and the last call has the last state', async () => {
  const calls: string[][] = []
  const gate = Promise.withResolvers<void>()
  let running = 0
  const store = createRelationStore({
    autoPersist: true,
    async onPersist(nodes) {
      expect(++running).toBe(1)
      calls.push(ids(nodes))
      if (calls.length === 1) await gate.promise
      running--
    },
  })
  store.add(node('a'))
  store.add(node('b'))
  await Promise.resolve()
  await Promise.resolve()
  store.add(node('c'))
  store.remove('a')
  expect(calls).toEqual([['a', 'b']])
  gate.resolve()
  await store.persist()
  expect(calls).toEqual([
    ['a', 'b'],
    ['b', 'c'],
  ])
})

test('an automatic onPersist that fails becomes a warning of the process, and the next one is tried', async () => {
  const warned = Promise.withResolvers<Error>()
  process.once('warning', warned.resolve)
  const saved: number[] = []
  const state = { fails: true }
  const onPersist = async (nodes: readonly RelationNode[]) => {
    if (state.fails) throw new Error('disk full')
    saved.push(nodes.length)
  }
  const store = createRelationStore({ autoPersist: true, onPersist })
  store.add(node('a'))
  expect((await warned.promise).message).toBe('onPersist failed, so the last changes are not saved: disk full')
  expect(store.persist()).rejects.toThrow('disk full')
  state.fails = false
  await store.persist()
  expect(saved).toEqual([1])
})

test('a chain of 100,000 nodes, and a node with 200,000 children, take a short time', () => {
  const count = 100_000
  const chain = Array.from({ length: count }, (_, at) => old(`n${at}`, at === 0 ? [] : [`n${at - 1}`]))
  const began = processorMs()
  const store = createRelationStore({ initialNodes: chain.toReversed() })
  expect(store.ancestors(`n${count - 1}`).length).toBe(count - 1)
  expect(store.descendants('n0').length).toBe(count - 1)
  expect(store.wouldCreateCycle('n0', [`n${count - 1}`])).toBe(true)
  expect(() => store.add(node('n0', [`n${count - 1}`]))).toThrow(/n0 → n99999 → .* … 99,?983 more … .* → n0$/)
  const wide = createRelationStore()
  wide.add(node('top'))
  for (let at = 0; at < 2 * count; at++) wide.add(node(`k${at}`, ['top']))
  expect(wide.descendants('top').length).toBe(2 * count)
  expect(processorMs() - began).toBeLessThan(15_000)
})

test('whatever is added, nothing is above itself', () => {
  const name = fc.constantFrom('a', 'b', 'c', 'd', 'e')
  fc.assert(
    fc.property(fc.array(fc.tuple(name, fc.array(name, { maxLength: 3 })), { maxLength: 30 }), (steps) => {
      const store = createRelationStore()
      for (const [id, parents] of steps) {
        const closes = store.wouldCreateCycle(id, parents)
        try {
          store.add(node(id, parents))
          expect(closes).toBe(false)
        } catch (error) {
          expect(String(error)).toMatch(closes ? /would create a cycle/ : /does not exist/)
        }
      }
      for (const { id } of store.all()) expect(ids(store.ancestors(id))).not.toContain(id)
    }),
  )
})
