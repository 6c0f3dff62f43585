/**
 * kill -9 at random instants of turns with tools, on the compiled executable: nothing acknowledged is lost, the next start repairs and
 * reports. CRASH_KILLS=1000 makes it long, CRASH_SEED repeats one (as far as the machine's own timing allows).
 */

import { afterAll, test as always, beforeAll, expect } from 'bun:test'
import { needs } from '../support/needs.ts'
import { isDeep, repetitions } from '../support/tier.ts'
import { type Binary, compiledBinary, createHome } from './home.ts'
import { besiege, type Siege } from './siege.ts'

const test = always.if(needs('bwrap'))

const kills = Number(process.env.CRASH_KILLS ?? repetitions({ fast: 12, deep: 200 }))
const seed = Number(process.env.CRASH_SEED ?? crypto.getRandomValues(new Uint32Array(1))[0])
const perHome = repetitions({ fast: 6, deep: 20 })

const state: { binary?: Binary } = {}
beforeAll(async () => {
  state.binary = await compiledBinary()
})
afterAll(() => state.binary?.[Symbol.dispose]())

test(
  `${kills} times kill -9 in turns with tools`,
  async () => {
    console.log(`CRASH_SEED=${seed}`)
    const sieges = await inTurns(Math.ceil(kills / perHome), 2, async (number) => {
      using home = createHome({ binary: state.binary?.path ?? '' })
      return await besiege(home, { kills: Math.min(perHome, kills - number * perHome), seed: seed + number })
    })
    const sum = (of: (siege: Siege) => number) => sieges.reduce((total, siege) => total + of(siege), 0)
    console.log(
      `${sum(({ kills }) => kills)} kills in ${sum(({ rounds }) => rounds)} rounds:`,
      ...sieges.map(({ tally }) => tallyText(tally)),
    )
    expect(sieges.flatMap(({ broken }) => broken)).toEqual([])
    expect(sum(({ kills }) => kills)).toBeGreaterThanOrEqual(kills)
    // A harness that always strikes too early or too late proves nothing.
    expect(sum(({ tally }) => tally.midTurn)).toBeGreaterThan(isDeep ? kills / 4 : 0)
    // A dozen kills may by chance all fall between two acts.
    if (isDeep) expect(sum(({ tally }) => tally.interruptedActs)).toBeGreaterThan(kills / 20)
  },
  kills * 1000 + 60_000,
)

const tallyText = (tally: Siege['tally']) => Object.values(tally).join('/')

/** `width` at a time. */
async function inTurns<T>(count: number, width: number, each: (number: number) => Promise<T>): Promise<T[]> {
  const numbers = Array.from({ length: count }, (_, number) => number)
  const results: T[] = []
  const queue = numbers.values()
  const worker = async () => {
    for (const number of queue) results[number] = await each(number)
  }
  await Promise.all(Array.from({ length: width }, worker))
  return results
}
