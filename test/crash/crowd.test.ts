/** Many processes on one home, from its very first moment: turns with tools and searches; nobody is told to come back later. */

import { afterAll, test as always, beforeAll, expect } from 'bun:test'
import { join } from 'node:path'
import { greedyWriter } from '../support/foreign-sqlite.ts'
import { needs } from '../support/needs.ts'
import { repetitions } from '../support/tier.ts'
import { type Binary, compiledBinary, createHome, type Home, type Result } from './home.ts'
import { acknowledged, brokenEffects, brokenPromises, receipts, withMemory } from './oracle.ts'
import { turnOf } from './siege.ts'

const test = always.if(needs('bwrap'))

const state: { binary?: Binary } = {}
beforeAll(async () => {
  state.binary = await compiledBinary()
})
afterAll(() => state.binary?.[Symbol.dispose]())

const [processes, rounds] = [repetitions({ fast: 3, deep: 8 }), repetitions({ fast: 2, deep: 5 })]
const [crowd, turns] = [repetitions({ fast: 6, deep: 16 }), repetitions({ fast: 2, deep: 4 })]

type Reply = { readonly turn: ReturnType<typeof turnOf>; readonly result: Result }

/** One person at one terminal: asks, looks up what was said, asks again. */
async function person(home: Home, name: number): Promise<{ turns: Reply[]; others: Result[] }> {
  const turns: Reply[] = []
  const others: Result[] = []
  for (let round = 0; round < rounds; round += 1) {
    const turn = turnOf(`${name}-${round}`, () => 0)
    const more = round > 0 && name % 2 === 0 ? ['--continue'] : []
    const args = ['agent', '-m', turn.prompt, '--output-format', 'stream-json', '--approve-all-medium', ...more]
    turns.push({ turn, result: await home.run(args, turn.responses) })
    others.push(await home.run(['memory', 'search', 'question']), await home.run(['receipt', 'verify', '--deep']))
  }
  return { turns, others }
}

test(`${processes} processes, turns with tools and searches: nothing is lost, one chain, no lock is ever seen`, async () => {
  using home = createHome({ binary: state.binary?.path ?? '' })
  const people = await Promise.all(Array.from({ length: processes }, (_, name) => person(home, name)))
  const turns = people.flatMap((each) => each.turns)
  const codes = new Set(turns.map(({ result }) => result.code))
  expect({ codes, said: turns.map(({ result }) => result.stderr).join('') }).toEqual({ codes: new Set([0]), said: '' })
  expect(people.flatMap(({ others }) => others.filter(({ code, stderr }) => code !== 0 || stderr !== ''))).toEqual([])
  const said = turns.map(({ turn, result }) => ({ turn, said: acknowledged(turn.prompt, result.stdout) }))
  const broken = withMemory(home, (memory) =>
    said.flatMap(({ turn, said }) => [
      ...brokenPromises(home, memory, said),
      ...brokenEffects(home, memory.journal.events(said.runId ?? ''), turn.effects),
    ]),
  )
  expect(broken).toEqual([])
  expect(said.map(({ said }) => [said.results.length, said.done?.stopReason])).toEqual(Array(processes * rounds).fill([7, 'end_turn']))
  expect(receipts(home).size).toBe(processes * rounds * 7)
  expect(await home.run(['receipt', 'verify', '--deep'])).toMatchObject({ code: 0, stderr: '' })
}, 120_000)

test(`${crowd} processes of one turn each at a time, beside another program that hardly lets go: all wait their turn`, async () => {
  using home = createHome({ binary: state.binary?.path ?? '' })
  const responses = [{ tool_calls: [{ name: 'file_list', arguments: { path: '.' } }] }, { text: 'done' }]
  const one = () => home.run(['agent', '-m', 'what is here?'], responses)
  expect((await one()).code).toBe(0)
  using writer = greedyWriter(join(home.state, 'memory.sqlite'))
  const results = await Promise.all(
    Array.from({ length: crowd }, async () => {
      const told: Result[] = []
      for (let round = 0; round < turns; round += 1) told.push(await one())
      return told
    }),
  )
  expect(writer.running()).toBe(true)
  expect(results.flat().filter(({ code }) => code !== 0)).toEqual([])
  expect(receipts(home).size).toBe(1 + crowd * turns)
  expect(await home.run(['receipt', 'verify', '--deep'])).toMatchObject({ code: 0, stderr: '' })
}, 120_000)
