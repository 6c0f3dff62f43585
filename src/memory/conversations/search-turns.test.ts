import { afterAll, beforeAll, expect, test } from 'bun:test'
import fc from 'fast-check'
import { createMemoryStage, type MemoryStage, noon, runOf, searchIn, started } from '../fixture.ts'
import type { SearchRequest } from './search-turns.ts'
import { snippet } from './search-turns.ts'

const day = 86_400_000
let memoryStage: MemoryStage

const said: readonly (readonly [id: string, text: string, daysAgo?: number])[] = [
  ['aardvark', 'The Aardvark adapter is in src/adapters.', 90],
  ['cpp', 'I like c++ and also C#.'],
  ['plain-c', 'Vitamin c is good. c c c c.'],
  ['tokyo', '明日は東京へ行きます。'],
  ['accents', 'Ein Übungsleiter im Café; naïve résumé.'],
  ['sql', `Robert'); DROP TABLE turns;-- "quoted" (a OR b) NEAR x*`],
  ['percent', 'Use 100%_sure in snake_case_name.'],
  ['old', 'pelican report', 400],
  ['new', 'pelican report', 0],
  ['pelicans', 'pelican pelican pelican pelican report about pelicans', 400],
  ['walrus-old', 'walrus note', 400],
  ['walrus-new', 'walrus note of today', 0],
  ['far', `${'filler words here '.repeat(500)} needle ${'and more '.repeat(500)}`],
  ['dotted', 'call foo.bar(baz) now'],
  ['apart', 'bar first and then foo'],
]

beforeAll(() => {
  memoryStage = createMemoryStage()
  memoryStage.clock.now = noon
  memoryStage.memory.transaction(() => {
    for (const [id, text, daysAgo = 1] of said) {
      const run = runOf(0, { runId: id, conversationId: id, turnId: `turn-${id}` })
      memoryStage.memory.journal.append({ run, kind: 'external', type: 'run.start', at: noon - daysAgo * day, body: started(text) })
    }
  })
})
afterAll(() => memoryStage.remove())

const find = (query: string, more: Partial<SearchRequest> = {}) =>
  searchIn(memoryStage)({ query, ...more }).map(({ conversationId }) => conversationId)

test('nothing is found for nothing, nor for words and signs that nobody wrote', () => {
  for (const query of ['', '   ', '\n\t\0', 'zebra', '€€€', '🦆', '""', '\\', '%%', '__']) expect(find(query)).toEqual([])
})

test('no query breaks the search', () => {
  fc.assert(
    fc.property(
      fc.oneof(fc.string({ unit: 'binary' }), fc.string({ unit: fc.constantFrom(...`"'*()-+:^{}[]%_\\ NEAR OR AND NOT a\0`) })),
      (query) => {
        expect(Array.isArray(searchIn(memoryStage)({ query }))).toBe(true)
      },
    ),
    { numRuns: 300 },
  )
  expect(find('x'.repeat(100_000))).toEqual([])
  expect(find('word '.repeat(10_000))).toEqual(['far'])
})

test('quotes, operators and wildcards in the query are text', () => {
  expect(find('"quoted"')[0]).toBe('sql')
  expect(find('NEAR')).toEqual(['sql'])
  expect(find('aardvark NOT adapter')[0]).toBe('aardvark')
  expect(find("Robert'); DROP TABLE turns;--")[0]).toBe('sql')
  expect(find('100%_sure')[0]).toBe('percent')
  expect(find('1%e')).toEqual([])
  expect(find('content:aardvark')[0]).toBe('aardvark')
})

test('words are found whatever their case, accents and endings', () => {
  expect(find('aardvark')).toEqual(['aardvark'])
  expect(find('AARDVARK ADAPTER')[0]).toBe('aardvark')
  expect(find('adapters')).toEqual(['aardvark'])
  expect(find('cafe resume')[0]).toBe('accents')
  expect(find('ÜBUNGSLEITER')).toEqual(['accents'])
})

test('where words fail, parts of words are found', () => {
  expect(find('ardvar')).toEqual(['aardvark'])
  expect(find('dapte ardv')).toEqual(['aardvark'])
  expect(find('übungs')).toEqual(['accents'])
  expect(find('ake_case_na')).toEqual(['percent'])
})

test('scripts without spaces are found within a run of text', () => {
  expect(find('東京')).toEqual(['tokyo'])
  expect(find('行き 明日')).toEqual(['tokyo'])
  expect(find('京都')).toEqual([])
})

test('signs that the index throws away still count', () => {
  expect(find('c++')[0]).toBe('cpp')
  expect(find('C#')[0]).toBe('cpp')
  expect(find('foo.bar')[0]).toBe('dotted')
})

test('of the same text the newer comes first, but better beats newer', () => {
  const found = find('pelican')
  expect(found.toSorted()).toEqual(['new', 'old', 'pelicans'])
  expect(found.indexOf('new')).toBeLessThan(found.indexOf('old'))
  expect(find('pelican about')[0]).toBe('pelicans')
  expect(find('walrus')).toEqual(['walrus-new', 'walrus-old'])
})

test('hits say where they are, and no more come than asked for', () => {
  const [hit, ...rest] = searchIn(memoryStage)({ query: 'pelican report', limit: 1 })
  expect(rest).toEqual([])
  expect(hit).toMatchObject({ turnId: `turn-${hit?.conversationId}`, role: 'user', snippet: expect.stringContaining('pelican') })
  expect(hit?.score).toBeGreaterThan(0)
  const scores = searchIn(memoryStage)({ query: 'pelican' }).map(({ score }) => score)
  expect(scores).toEqual(scores.toSorted((a, b) => b - a))
})

test('the turn that asks does not find itself', () => {
  expect(find('aardvark', { exceptTurn: 'turn-aardvark' })).toEqual([])
})

test('a snippet shows the place, on one line, and that it is a piece', () => {
  const [hit] = searchIn(memoryStage)({ query: 'needle' })
  expect(hit?.snippet).toContain('needle')
  expect(hit?.snippet).toStartWith('…')
  expect(hit?.snippet).toEndWith('…')
  expect(hit?.snippet.length).toBeLessThan(205)
  expect(snippet('one\n\ttwo', ['two'], ['two'])).toBe('one two')
  expect(snippet('x'.repeat(500), [], []).length).toBe(201)
  expect(snippet(`${'ä'.repeat(100)} résumé`, ['resume'], [])).toContain('résumé')
  expect(snippet(`${'y'.repeat(300)} running`, ['runner'], [])).toContain('running')
  expect(snippet(`${'y'.repeat(300)} running`, ['walked'], [])).not.toContain('running')
})

test('where every word is very common, the newest with all of them win, and it stays exact', () => {
  const busy = createMemoryStage()
  try {
    busy.memory.transaction(() => {
      for (let number = 0; number < 2600; number += 1) {
        const text = number === 2500 ? 'what is the file with this' : `what is the file number ${number}`
        busy.memory.journal.append({
          run: runOf(number),
          kind: 'external',
          type: 'run.start',
          at: noon - (2600 - number) * 1000,
          body: started(text),
        })
      }
    })
    const hits = searchIn(busy)({ query: 'what is the file' })
    expect(hits).toHaveLength(10)
    expect(hits.every(({ snippet }) => snippet.includes('what is the file'))).toBe(true)
    expect(searchIn(busy)({ query: 'what is the file with this' })[0]?.turnId).toBe('turn-2500')
    expect(searchIn(busy)({ query: 'the file number 7' })[0]?.snippet).toBe('what is the file number 7')
  } finally {
    busy.remove()
  }
})

test('a search within one conversation finds its rows alone, by word, by substring and by the beginning of a word', () => {
  for (const query of ['pelican', 'pelican report', 'report', 'elica', 'pelica', '東京', 'c++', '%', 'walrus OR pelican'])
    expect(new Set(searchIn(memoryStage)({ query, within: 'pelicans' }).map((hit) => hit.conversationId))).toEqual(
      new Set(find(query).some((hit) => hit === 'pelicans') ? ['pelicans'] : []),
    )
  expect(searchIn(memoryStage)({ query: 'pelican', within: "pelicans' OR 1=1 --" })).toEqual([])
})
