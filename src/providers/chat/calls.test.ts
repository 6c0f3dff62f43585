import { expect, test } from 'bun:test'
import { collectCalls } from './chat-reply.ts'

const piece = (index: number | undefined, id: string | undefined, name: string | undefined, args: unknown) => ({
  ...(index === undefined ? {} : { index }),
  ...(id === undefined ? {} : { id }),
  type: 'function',
  function: { ...(name === undefined ? {} : { name }), arguments: args },
})

function collect(...pieces: readonly unknown[]) {
  const calls = collectCalls()
  for (const each of pieces) calls.take(each)
  return calls.all().map(({ id, name, raw }) => [id, name, raw])
}

test.each<[string, unknown, string]>([
  ['that is no object', 'file_list', '"file_list"'],
  ['that is null', null, 'null'],
  ['whose name is no string', { index: 0, id: 'a', function: { name: 7 } }, '{"index":0,"id":"a","function":{"name":7}}'],
  ['whose function is a list', { index: 0, function: [] }, '{"index":0,"function":[]}'],
  ['of another type', { index: 0, type: 'custom', custom: { name: 't' } }, '{"index":0,"type":"custom","custom":{"name":"t"}}'],
])('a call %s is kept as it came, so that the model can be told', (_, value, raw) => {
  const calls = collectCalls()
  calls.take(value)
  expect(calls.all()).toEqual([expect.objectContaining({ name: '', raw, isUnknown: true })])
})

test('the pieces of a call of no known form stay together, and apart from the other calls', () => {
  const custom = (input: string) => ({ index: 1, type: 'custom', custom: { input } })
  expect(collect(piece(0, 'a', 't', '{}'), custom('x'), custom('y'))).toEqual([
    ['a', 't', '{}'],
    ['', '', JSON.stringify(custom('x')) + JSON.stringify(custom('y'))],
  ])
  expect(collect(piece(0, 'a', 't', '{"n"'), 'x', { index: 0, status: 'going' }, piece(0, undefined, undefined, ':1}'))).toEqual([
    ['a', 't', '{"n":1}'],
    ['', '', '"x"'],
  ])
})

test('arguments that are no object are written down as JSON; an index that is none does not count', () => {
  expect(collect(piece(0, 'a', 't', 7))).toEqual([['a', 't', '7']])
  expect(collect(piece(0, 'a', 't', ['.']))).toEqual([['a', 't', '["."]']])
  expect(collect(piece(0.5, 'a', 't', '{"n"'), piece(undefined, 'a', undefined, ':1}'))).toEqual([['a', 't', '{"n":1}']])
})

test('a call that never gets a name is a call without a name; an empty piece is nothing', () => {
  expect(collect(piece(0, 'a', undefined, '{}'))).toEqual([['a', '', '{}']])
  expect(collect(piece(0, 'a', '', ''))).toEqual([['a', '', '']])
  expect(collect(piece(0, '', '', ''), piece(0, undefined, undefined, null), { index: 1 })).toEqual([])
})

test('a name is taken to the letter', () => {
  expect(collect(piece(0, 'a', ' file_list ', '{}'), piece(1, 'b', ' ', '{}'))).toEqual([
    ['a', ' file_list ', '{}'],
    ['b', ' ', '{}'],
  ])
})

test('the name and the id may come after the first arguments', () => {
  expect(collect(piece(0, undefined, undefined, '{"a"'), piece(0, undefined, 't', ':'), piece(0, 'x', undefined, '1}'))).toEqual([
    ['x', 't', '{"a":1}'],
  ])
})

test('id and name may be said again with every piece', () => {
  expect(collect(piece(0, 'a', 't', '{"a"'), piece(0, 'a', 't', ':{'), piece(0, 'a', 't', '}}'), piece(0, 'a', 't', ''))).toEqual([
    ['a', 't', '{"a":{}}'],
  ])
  expect(collect(piece(0, 'a', 't', '{"a":'), piece(0, 'a', 't', '{"b":1}'), piece(0, 'a', 't', '}'))).toEqual([
    ['a', 't', '{"a":{"b":1}}'],
  ])
})

test('an id that changes in the middle of a call does not cut it in two', () => {
  expect(collect(piece(0, 'a', 't', '{"a"'), piece(0, 'b', 't', ':1}'), piece(0, 'c', undefined, ''))).toEqual([['a', 't', '{"a":1}']])
})

test('calls that all have index 0 are told apart by their names and by arguments that start over', () => {
  expect(collect(piece(0, '', 's', '{"a":1}'), piece(0, '', 's', '{"a":2}'), piece(0, '', 't', '{}'))).toEqual([
    ['', 's', '{"a":1}'],
    ['', 's', '{"a":2}'],
    ['', 't', '{}'],
  ])
  expect(collect(piece(0, 'a', 's', ''), piece(0, 'b', 't', '{}'))).toEqual([
    ['a', 's', ''],
    ['b', 't', '{}'],
  ])
  expect(collect(piece(0, 'a', 't', '{}'), piece(0, 'b', 't', ''), piece(0, undefined, undefined, '{"n":2}'))).toEqual([
    ['a', 't', '{}'],
    ['b', 't', '{"n":2}'],
  ])
})

test('without any index a piece goes to the call of its id, else to the last one', () => {
  expect(
    collect(
      piece(undefined, 'a', 's', '{"n"'),
      piece(undefined, 'b', 't', '{'),
      piece(undefined, 'a', undefined, ':1}'),
      piece(undefined, undefined, undefined, '}'),
      piece(undefined, undefined, 'u', '{}'),
    ),
  ).toEqual([
    ['a', 's', '{"n":1}'],
    ['b', 't', '{}'],
    ['', 'u', '{}'],
  ])
})

test('without any index a piece goes to the later of two calls with one id', () => {
  const pieces = [piece(undefined, 'a', 's', '{"n":1}'), piece(undefined, 'a', 's', '{"n"'), piece(undefined, 'a', undefined, ':2}')]
  expect(collect(...pieces)).toEqual([
    ['a', 's', '{"n":1}'],
    ['a', 's', '{"n":2}'],
  ])
})

test('arguments that come as an object are written down as JSON', () => {
  expect(collect(piece(0, 'a', 't', { path: 'x' }))).toEqual([['a', 't', '{"path":"x"}']])
})

test('in a whole answer each member is a call of its own, whatever it says', () => {
  const calls = collectCalls()
  for (const place of [0, 1]) calls.take(piece(0, 'same', 't', ''), place)
  expect(calls.all().length).toBe(2)
})

test.each([0, 1])('the signature of a thought stays with its call, with whichever piece it comes: %i', (which) => {
  const calls = collectCalls()
  const signed = { extra_content: { google: { thought_signature: 'sig' } } }
  calls.take({ ...piece(0, 'a', 't', ''), ...(which === 0 ? signed : {}) })
  calls.take({ ...piece(0, undefined, undefined, '{}'), ...(which === 1 ? signed : {}) })
  expect(calls.all()).toEqual([{ id: 'a', name: 't', raw: '{}', meta: { compatible: { thoughtSignature: 'sig' } } }])
})

test('arguments alone under the next index belong to the call before, when it has none; beside other arguments they stay apart', () => {
  expect(collect(piece(0, 'a', 't', '{}'), piece(1, undefined, undefined, '{"n"'), piece(1, undefined, undefined, ':1}'))).toEqual([
    ['a', 't', '{"n":1}'],
  ])
  expect(collect(piece(0, 'a', 't', '{"n":1}'), piece(1, undefined, undefined, '{"n":2}'))).toEqual([
    ['a', 't', '{"n":1}'],
    ['', '', '{"n":2}'],
  ])
})
