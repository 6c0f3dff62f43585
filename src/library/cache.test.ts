import { expect, setSystemTime, test } from 'bun:test'
import type { AgentEvent } from '../runtime/event.ts'
import { createSemanticCache, type SemanticCacheConfig, type SerializableCacheEntry } from './cache.ts'

/** Counts four words, so that questions about the same words are similar. */
const words = ['list', 'files', 'weather', 'paris']
const vector = (text: string) => [...words.map((word) => text.toLowerCase().split(word).length - 1), 0.01]
const embedder = { embed: async (texts: readonly string[]) => texts.map(vector) }
const entry = (query: string, more: Partial<SerializableCacheEntry> = {}): SerializableCacheEntry => ({
  id: 1,
  query,
  response: `to ${query}`,
  cachedAt: Date.now(),
  hitCount: 0,
  embedding: vector(query),
  ...more,
})

test.each<[string, unknown, string]>([
  ['of another length', [1, 2], 'the embedding has 2 dimensions, those in the cache 5; clear it for another model'],
  ['with NaN', [1, 2, Number.NaN, 4, 5], 'the embedding has NaN in it'],
  ['with an infinite number', [1, 2, 3, 4, Number.POSITIVE_INFINITY], 'the embedding has Infinity in it'],
  ['that is zero', [0, 0, 0, 0, 0], 'the embedding is empty or zero'],
  ['that is not there', undefined, 'the embedding is empty or zero'],
])('an embedding %s is refused and changes nothing', async (_, bad, message) => {
  const next = { vector: bad }
  const cache = createSemanticCache({ embedder: { embed: async () => [next.vector as number[]] }, initialEntries: [entry('list files')] })
  expect(cache.lookup('what')).rejects.toThrow(message)
  expect(cache.store('what', 'that')).rejects.toThrow(message)
  expect(cache.stats().totalEntries).toBe(1)
  expect((await cache.lookup('list files')).hit).toBe(true)
  cache.clear()
  next.vector = [1, 2]
  await cache.store('after clearing', 'another model may answer')
  expect(cache.stats().totalEntries).toBe(1)
})

test('everything that is wrong at the start is one error', () => {
  const initialEntries = [
    entry('a list'),
    entry('b', { embedding: [1] }),
    entry('c', { response: undefined as unknown as string }),
    entry('d', { embedding: [Number.NaN] }),
  ]
  expect(() => createSemanticCache({ initialEntries })).toThrow(
    /^semantic cache: initialEntries\[1\]: .*1 dimensions.*; initialEntries\[2\]: needs .*; initialEntries\[3\]: .*NaN.*$/,
  )
})

test('without an embedder only the same text is a hit, white space and the form of Unicode aside', async () => {
  const cache = createSemanticCache()
  await cache.store('Show  caf\u00e9\n menu', 'Here it is')
  expect((await cache.lookup(' Show cafe\u0301 menu ')).entry).toMatchObject({ response: 'Here it is', similarity: 1, hitCount: 1 })
  expect((await cache.lookup('show cafe menu')).hit).toBe(false)
  expect(cache.stats()).toEqual({ totalEntries: 1, totalHits: 1, totalMisses: 1, hitRate: 0.5, avgSimilarity: 1 })
})

test('with an embedder the most similar one above the threshold is a hit', async () => {
  const cache = createSemanticCache({ embedder })
  await cache.store('list files', 'a.txt')
  await cache.store('weather in paris', 'rain')
  const found = await cache.lookup('please list all the files')
  expect([found.entry?.response, Number(found.entry?.similarity) > 0.99]).toEqual(['a.txt', true])
  expect((await cache.lookup('list weather')).hit).toBe(false)
  expect(
    (await createSemanticCache({ embedder, similarityThreshold: 0.4, initialEntries: [entry('list files')] }).lookup('list weather')).hit,
  ).toBe(true)
})

test('the entry that was used longest ago goes first, and an entry of the same question is replaced', async () => {
  const cache = createSemanticCache({ maxEntries: 2 })
  for (const query of ['a', 'b', 'a']) await cache.store(query, `${query}-answer`)
  await cache.lookup('b')
  await cache.store('c', 'c-answer')
  expect([(await cache.lookup('a')).hit, (await cache.lookup('b')).hit, (await cache.lookup('c')).hit]).toEqual([false, true, true])
})

test('an entry expires, and does not hide a fresh one', async () => {
  const cache = createSemanticCache({
    embedder,
    ttlMs: 1_000,
    initialEntries: [entry('list files', { cachedAt: Date.now() - 2_000 }), entry('list the files')],
  })
  expect((await cache.lookup('list files')).entry?.response).toBe('to list the files')
  setSystemTime(Date.now() + 5_000)
  expect(cache.clearExpired()).toBe(1)
  setSystemTime()
})

const done = (result?: string): AgentEvent => ({ type: 'done', stopReason: 'end_turn', ...(result === undefined ? {} : { result }) })
const call: AgentEvent = { type: 'tool_use', toolCallId: 'a', toolName: 'shell', input: {} }

test('an answer with an effect is never stored', async () => {
  const cache = createSemanticCache()
  await cache.store('call', {
    parts: [
      { type: 'text', text: 'I delete it' },
      { type: 'call', id: 'a', name: 'file_delete', input: {} },
    ],
  })
  await cache.store('tool', [{ type: 'text', content: 'Done', isPartial: true }, call, done('Done')])
  await cache.store('error', [
    { type: 'error', code: 'network', message: 'no', recoverable: false },
    { type: 'done', stopReason: 'error' },
  ])
  await cache.store('cut', [{ type: 'text', content: 'Half', isPartial: true }])
  await cache.store('nothing', [])
  expect(cache.stats().totalEntries).toBe(0)
  await cache.store('fine', [{ type: 'text', content: 'Hel', isPartial: true }, done('Hello')])
  await cache.store('text', {
    parts: [
      { type: 'thinking', text: 'hm' },
      { type: 'text', text: 'Hi' },
    ],
  })
  expect([(await cache.lookup('fine')).entry?.response, (await cache.lookup('text')).entry?.response]).toEqual(['Hello', 'Hi'])
})

test('getOrCompute computes once, and again what it could not store', async () => {
  const cache = createSemanticCache()
  let calls = 0
  const compute = async () => `answer ${++calls}`
  expect(await cache.getOrCompute('q', compute)).toEqual({ response: 'answer 1', cached: false })
  expect(await cache.getOrCompute('q', compute)).toEqual({ response: 'answer 1', cached: true })
  const effect = async (): Promise<readonly AgentEvent[]> => [call, done(`effect ${++calls}`)]
  for (const _ of [1, 2]) expect((await cache.getOrCompute('e', effect)).cached).toBe(false)
  expect(calls).toBe(3)
})

test('what is persisted begins the next cache', async () => {
  let saved: SerializableCacheEntry[] = []
  const config: SemanticCacheConfig = {
    embedder,
    autoPersist: true,
    onPersist: async (entries) => {
      saved = entries
    },
  }
  const cache = createSemanticCache(config)
  await cache.store('list files', 'a.txt')
  await cache.persist()
  expect(saved).toMatchObject([{ id: 1, query: 'list files', response: 'a.txt', hitCount: 0, embedding: [1, 1, 0, 0, 0.01] }])
  const again = createSemanticCache({ embedder, initialEntries: saved })
  expect((await again.lookup('files, list them')).entry?.response).toBe('a.txt')
  await again.store('weather', 'sun')
  expect(again.stats().totalEntries).toBe(2)
})

test('ten thousand entries are searched in a short time', async () => {
  const random = (at: number) => Array.from({ length: 384 }, (_, n) => Math.sin(at * 7.3 + n * 1.7))
  const initialEntries = Array.from({ length: 10_000 }, (_, at) => entry(`q${at}`, { id: at, embedding: random(at) }))
  const cache = createSemanticCache({
    embedder: { embed: async () => [Float32Array.from(random(77))] },
    initialEntries,
    maxEntries: 10_000,
    similarityThreshold: 0.999,
  })
  const { entry: found, lookupMs } = await cache.lookup('like 77')
  expect(found?.query).toBe('q77')
  expect(lookupMs).toBeLessThan(1_000)
})
