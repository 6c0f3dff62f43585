/** kill -9 during what is no turn: forgetting, anchoring, the first init. */

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createSearch } from '../../src/memory/conversations/search-turns.ts'
import { attempts } from '../../src/memory/journal/attempts.ts'
import { needs } from '../support/needs.ts'
import { repetitions } from '../support/tier.ts'
import { type Binary, compiledBinary, createHome, type Home, randomFrom } from './home.ts'
import { receipts, withMemory } from './oracle.ts'

const sandboxed = test.if(needs('bwrap'))

const seed = Number(process.env.CRASH_SEED ?? crypto.getRandomValues(new Uint32Array(1))[0])
const random = randomFrom(seed)
const kills = repetitions({ fast: 4, deep: 20 })

const state: { binary?: Binary } = {}
beforeAll(async () => {
  state.binary = await compiledBinary()
  console.log(`CRASH_SEED=${seed}`)
})
afterAll(() => state.binary?.[Symbol.dispose]())

const fresh = (configured = true) => createHome({ binary: state.binary?.path ?? '', configured })

/** Starts the command and kills it at a random instant of its usual life, which it learns from those that lived. */
function killer(args: readonly string[]) {
  const known = { usualMs: 40 }
  return async (home: Home): Promise<{ readonly died: boolean; readonly stdout: string }> => {
    const begin = performance.now()
    const running = home.start(args)
    await Bun.sleep(random() * known.usualMs)
    running.kill()
    const { code, stdout } = await running.result
    known.usualMs = code === null ? known.usualMs * 1.05 : (performance.now() - begin) * 0.9
    return { died: code === null, stdout }
  }
}

const times = [{ tool_calls: ['a', 'b', 'c'].map((id) => ({ id, name: 'time', arguments: {} })) }, { text: 'It is late.' }]
const aTurn = (home: Home) => home.run(['agent', '-m', 'What time is it?'], times)
const counted = (home: Home) => withMemory(home, ({ conversations }) => conversations.list().length)

test('memory clear: all is there or all is gone, never a part; receipts stay', async () => {
  using home = fresh()
  const seen = { died: 0, kept: 0, gone: 0, undone: 0 }
  await aTurn(home)
  const strike = killer(['memory', 'clear', '--yes'])
  for (let round = 0; round < 5 * kills && seen.died < kills; round += 1) {
    if (counted(home) > 2) await home.run(['memory', 'clear', '--yes'])
    for (let turn = counted(home); turn < 3; turn += 1) await aTurn(home)
    const before = receipts(home).size
    const { died } = await strike(home)
    if (died) seen.died += 1
    const left = withMemory(home, ({ conversations, journal, store }) => ({
      conversations: conversations.list().length,
      runs: journal.runs({ limit: 100 }).length,
      attempts: [...attempts(store)].length,
      found: createSearch(store, Date.now)({ query: 'late' }).length,
    }))
    expect([
      { conversations: 3, runs: 3, attempts: 9, found: 3 },
      { conversations: 0, runs: 0, attempts: 0, found: 0 },
    ]).toContainEqual(left)
    seen[left.runs === 0 ? 'gone' : 'kept'] += 1
    const fresh = [...receipts(home).values()].slice(before).map(({ tool }) => String(tool))
    expect([[], ['memory.clear']]).toContainEqual(fresh)
    if (left.runs === 0) expect(fresh).toEqual(['memory.clear'])
    // A kill between the receipt and the commit leaves a clear that was none: the next start records that.
    const undone = left.runs > 0 && fresh.length > 0
    const ahead = 'warning: the log is 1 ahead of the checkpoint, as after a crash; the next start adopts them\n'
    const deep = () => home.run(['receipt', 'verify', '--deep'])
    const checked = await deep()
    // A kill right after the line was appended leaves a head that has not heard of it.
    const said = checked.stderr.replace(/warning: the head file stops at \d+\n/, '')
    expect({ code: checked.code, said }).toEqual({ code: 0, said: undone ? ahead : '' })
    expect((await aTurn(home)).stderr.includes('recovered after a crash')).toBe(undone)
    expect(await deep()).toMatchObject({ code: 0, stderr: '' })
    seen.undone += undone ? 1 : 0
  }
  console.log(JSON.stringify(seen))
  expect(seen.died).toBe(kills)
  expect(seen.kept).toBeGreaterThan(0)
}, 120_000)

test('receipt anchor: a line that came out proves extension ever after, and nothing is harmed', async () => {
  using home = fresh()
  const lines: string[] = []
  await aTurn(home)
  const strike = killer(['receipt', 'anchor'])
  let died = 0
  for (let round = 0; round < 5 * kills && died < kills; round += 1) {
    const { stdout, died: dead } = await strike(home)
    if (dead) died += 1
    if (stdout.endsWith('\n')) lines.push(stdout.trim())
    if (round % 10 === 0) await aTurn(home)
  }
  expect(died).toBe(kills)
  for (const line of new Set([...lines, (await home.run(['receipt', 'anchor'])).stdout.trim()]))
    expect(await home.run(['receipt', 'verify', '--deep', '--against', line])).toMatchObject({ code: 0, stderr: '' })
}, 120_000)

sandboxed(
  'init: the next one completes it; a config file is whole or absent',
  async () => {
    const seen = { died: 0, config: 0 }
    const strike = killer(['init'])
    using model = fresh(false)
    await model.run(['init'])
    await model.run(['agent', '-m', 'What can you do?'])
    for (let round = 0; round < 5 * kills && seen.died < kills; round += 1) {
      using home = fresh(false)
      const { died } = await strike(home)
      if (died) seen.died += 1
      const config = join(home.state, 'config.toml')
      if (existsSync(config)) {
        seen.config += 1
        expect(readFileSync(config, 'utf8')).toBe(readFileSync(join(model.state, 'config.toml'), 'utf8'))
      }
      expect(await home.run(['init'])).toMatchObject({ code: 0 })
      expect(await home.run(['agent', '-m', 'What can you do?'])).toMatchObject({
        code: 0,
        stderr: expect.stringMatching(/^note: the offline helper answers; .*\n$/),
      })
      expect(lasting(home.state)).toEqual(lasting(model.state))
    }
    expect(seen.died).toBe(kills)
  },
  120_000,
)

/** Leaves out what may be there or not: the companions of the database, the lock of a home that is there already, and the folders that are made ready while a model thinks. */
function lasting(folder: string): string[] {
  return readdirSync(folder)
    .filter((name) => !['.lock', 'run', 'caches', 'changes'].includes(name) && !/-(wal|shm)$/.test(name))
    .sort()
}
