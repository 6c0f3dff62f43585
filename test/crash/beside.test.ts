/**
 * kill -9 at random instants of turns, while the sqlite3 program and Python read, copy and vacuum the database beside them: nothing that was
 * acknowledged is lost, the chain is valid after every next start, every attempt has one receipt. CRASH_BESIDE=1000 makes it long.
 */

import { afterAll, test as always, beforeAll, expect } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { pay, visits } from '../support/foreign-sqlite.ts'
import { needs } from '../support/needs.ts'
import { repetitions } from '../support/tier.ts'
import { type Binary, compiledBinary, createHome, type Home } from './home.ts'
import { besiege, type Siege } from './siege.ts'

const test = always.if(needs('bwrap', 'sqlite3', 'python3'))

const kills = Number(process.env.CRASH_BESIDE ?? repetitions({ fast: 4, deep: 10 }))
const seed = Number(process.env.CRASH_SEED ?? crypto.getRandomValues(new Uint32Array(1))[0])
const perHome = 20

const state: { binary?: Binary } = {}
beforeAll(async () => {
  state.binary = await compiledBinary()
}, 120_000)
afterAll(() => state.binary?.[Symbol.dispose]())

/** One foreign program after the other, until it is told to stop. @returns how many there were */
async function visitors(home: Home, stop: AbortSignal): Promise<number> {
  const database = join(home.state, 'memory.sqlite')
  for (let count = 0; ; ) {
    const copies = mkdtempSync(join(home.dir, 'copies-'))
    for (const visit of visits(database, copies)) {
      if (stop.aborted) return count
      await pay(visit)
      count += 1
    }
    rmSync(copies, { recursive: true })
  }
}

async function siege(number: number): Promise<Siege & { readonly visits: number }> {
  using home = createHome({ binary: state.binary?.path ?? '' })
  // A foreign program would create the database if there were none.
  expect(await home.run(['agent', '-m', 'hello'])).toMatchObject({ code: 0 })
  const stop = new AbortController()
  const beside = visitors(home, stop.signal)
  try {
    const done = await besiege(home, { kills: Math.min(perHome, kills - number * perHome), seed: seed + number })
    stop.abort()
    return { ...done, visits: await beside }
  } finally {
    stop.abort()
  }
}

test(
  `${kills} times kill -9 in turns, with sqlite3 and Python beside`,
  async () => {
    console.log(`CRASH_SEED=${seed}`)
    const sieges: Awaited<ReturnType<typeof siege>>[] = []
    const sum = (of: (done: (typeof sieges)[number]) => number) => sieges.reduce((total, done) => total + of(done), 0)
    for (let number = 0; number * perHome < kills; number += 1) {
      sieges.push(await siege(number))
      console.log(
        `${sum(({ kills }) => kills)} kills, ${sum(({ tally }) => tally.midTurn)} of them amid a turn, in ${sum(({ rounds }) => rounds)} rounds;`,
        `${sum(({ visits }) => visits)} visits of foreign programs;`,
        `acknowledged ${sum(({ count }) => count.turns)} turns and ${sum(({ count }) => count.results)} results;`,
        `${sum(({ count }) => count.attempts)} attempts, ${sum(({ count }) => count.receipts)} receipts;`,
        `broken: ${sum(({ broken }) => broken.length)}`,
      )
    }
    expect(sieges.flatMap(({ broken }) => broken)).toEqual([])
    expect(sum(({ kills }) => kills)).toBeGreaterThanOrEqual(kills)
    expect(sum(({ visits }) => visits)).toBeGreaterThan(kills / 2)
    expect(sum(({ tally }) => tally.midTurn)).toBeGreaterThan(kills < 10 ? 0 : kills / 5)
  },
  kills * 5_000 + 60_000,
)
