import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { processorMs } from '../../test/support/processor-ms.ts'
import { createHybridIndex, type Entry, paramsOf, type Query } from './hybrid-index.ts'

const entry = (name: string, description: string, more: Partial<Entry> = {}): Entry => ({
  kind: 'tool',
  source: 'a',
  name,
  description,
  ...more,
})
const small = [
  entry('getCurrentWeather', 'Forecast of rain and wind for a city', { params: 'city units' }),
  entry('send_email', 'Write a message and send it to people'),
  entry('pdf-tools', 'Extract text from PDF files and merge them'),
  entry('погода', 'прогноз погоды на завтра'),
  entry('天気予報', '明日の天気を調べる'),
  entry('café-finder', 'Où boire un café à Genève'),
]

function indexOf(entries: readonly Entry[]) {
  const index = createHybridIndex()
  index.put(entries)
  return { ...index, names: (query: string, options?: Query<Entry>) => index.search(query, options).map((hit) => hit.entry.name) }
}

describe('what is found', () => {
  const { names, search } = indexOf(small)
  test.each([
    ['weather', 'getCurrentWeather'],
    ['GETCURRENTWEATHER', 'getCurrentWeather'],
    ['is it raining', 'getCurrentWeather'],
    ['merging pdfs', 'pdf-tools'],
    ['emails', 'send_email'],
    ['какой прогноз на завтра', 'погода'],
    ['明日の天気', '天気予報'],
    ['un cafe', 'café-finder'],
    ['extrac', 'pdf-tools'],
  ])('%s finds %s first', (query, name) => {
    expect(names(query)[0]).toBe(name)
  })

  test('the very name of an entry comes first, whatever else matches, also when it says nothing', () => {
    const index = indexOf([entry('merge-merge', 'merge merge merge'), entry('merge', 'Joins'), entry('what', 'Asks')])
    expect(index.names('merge')).toEqual(['merge', 'merge-merge'])
    expect(index.names('what')).toEqual(['what'])
  })

  test.each(['', '   ', 'the of and', 'quantum chromodynamics', 'the churches of the city of Rome in late antiquity', '\0', '"*(', '?!'])(
    '%j finds nothing',
    (query) => {
      expect(names(query)).toEqual([])
    },
  )

  test('a hit says why, by leg and by word', () => {
    const [hit] = search('extract the text of a pdf')
    expect(hit?.why.words).toEqual(['extract', 'text', 'pdf'])
    expect(hit?.why.keywords?.rank).toBe(1)
    expect(hit?.why.features?.score).toBeGreaterThan(0.25)
    expect(hit?.why.embedding).toBeUndefined()
    expect(hit?.score).toBeCloseTo(1 / 61, 10)
  })
})

test('the best match is the first, not the last', () => {
  const { names } = indexOf([entry('one', 'a report about a river'), entry('two', 'river river: everything about a river'), ...small])
  expect(names('river').slice(0, 2)).toEqual(['two', 'one'])
})

test('filters come before the limit, and equal hits stay in the order in which they came', () => {
  const many = Array.from({ length: 200 }, (_, at) => entry('turn', 'rotate a picture', { source: `${at}` }))
  const { search } = indexOf(many)
  const sources = (options?: Query<Entry>) => search('rotate picture', options).map((hit) => Number(hit.entry.source))
  expect(sources()).toEqual([0, 1, 2, 3, 4])
  expect(sources({ accept: ({ source }) => Number(source) >= 150 })).toEqual([150, 151, 152, 153, 154])
  expect(sources({ accept: () => false })).toEqual([])
})

test('an entry that is put again is replaced; one of another source is another entry; what is removed is not found', () => {
  const index = indexOf([entry('x', 'paints walls'), entry('x', 'paints doors', { source: 'b' }), ...small])
  index.put([entry('x', 'digs holes')])
  expect(index.all()).toHaveLength(small.length + 2)
  expect(index.search('paints walls').map((hit) => hit.entry.source)).toEqual(['b'])
  expect(index.search('digging')[0]?.entry.description).toBe('digs holes')
  index.remove(({ name }) => name === 'x')
  expect(index.names('digging')).toEqual([])
  index.remove(() => true)
  expect(index.names('weather')).toEqual([])
})

test('vectors are a third leg; one of another length, without a direction or without an entry is left out', () => {
  const { search } = indexOf(small)
  const vectors = new Map([
    ['send_email', Float32Array.of(1, 0.1)],
    ['pdf-tools', Float32Array.of(0, 0)],
    ['getCurrentWeather', Float32Array.of(1, 0, 0)],
  ])
  const hits = search('correspondence', { vectors: { query: Float32Array.of(1, 0), of: ({ name }) => vectors.get(name) } })
  expect(hits.map((hit) => hit.entry.name)).toEqual(['send_email'])
  expect(hits[0]?.why.embedding).toEqual({ rank: 1, score: expect.closeTo(0.995, 3) })
})

test('no query and no entry makes it throw, and a query of a megabyte is as quick as a short one', () => {
  const { names } = indexOf([...small, entry('', ''), entry("'; DROP TABLE items", '"quoted" NEAR(a b)', { context: '\0\ud800' })])
  for (const query of ['name:weather', "'; DROP TABLE items", 'NEAR(a b)', 'weather AND (', '\ud800', 'é'.repeat(9000)])
    expect(() => names(query)).not.toThrow()
  expect(names("'; drop table items")[0]).toBe("'; DROP TABLE items")
  fc.assert(fc.property(fc.string({ unit: 'binary', maxLength: 80 }), (query) => void names(query)))
  const began = processorMs()
  expect(names(`weather ${'of '.repeat(400_000)}`)[0]).toBe('getCurrentWeather')
  expect(names(`${'of '.repeat(400_000)} weather`)).toEqual([])
  expect(processorMs() - began).toBeLessThan(2_000)
})

test('parameters are found at any depth, and a schema may have cycles', () => {
  const schema: { [key: string]: unknown } = { type: 'object', properties: { city: { description: 'where' } } }
  schema.self = schema
  expect(paramsOf(schema)).toBe('city where')
  expect(paramsOf(undefined)).toBe('')
})
