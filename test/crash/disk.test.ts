/** A home on a disk that fills up at every possible point, or cannot be written at all: a clear error, nothing torn, all well afterwards. */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { needs } from '../support/needs.ts'
import { isDeep, repetitions } from '../support/tier.ts'
import { type Binary, compiledBinary, configure, createHome, type Home, type Result } from './home.ts'
import { acknowledged, brokenEffects, brokenPromises, receipts, withMemory } from './oracle.ts'
import { type Turn, turnOf } from './siege.ts'
import { type SmallDisk, smallDisk } from './small-disk.ts'

const sandboxed = test.if(needs('bwrap'))

const page = 4096
/** Every third page, another third each time: the rest is seen in the next runs. The fast tier takes larger steps. */
const stride = repetitions({ fast: 16, deep: 3 })
const phase = Math.floor(Math.random() * stride)
const state: { binary?: Binary } = {}
beforeAll(async () => {
  state.binary = await compiledBinary()
})
afterAll(() => state.binary?.[Symbol.dispose]())

type Place = Disposable & { readonly disk: SmallDisk; readonly home: Home }

/** The state on the small disk, the workspace beside it on the large one. */
function place(configured = true): Place {
  const disk = smallDisk(2500)
  const home = createHome({ binary: state.binary?.path ?? '', state: join(disk.path, 'state'), configured })
  return {
    disk,
    home,
    [Symbol.dispose]() {
      home[Symbol.dispose]()
      disk[Symbol.dispose]()
    },
  }
}

const streamed = (prompt: string) => ['agent', '-m', prompt, '--output-format', 'stream-json', '--approve-all-medium']

/** A refusal, a listing, a write, an answer. */
function shortTurn(name: string): Turn {
  const { prompt, responses, effects } = turnOf(name, () => 0)
  return { prompt, responses: [...responses.slice(0, 1), ...responses.slice(-1)], effects: effects.slice(0, 1) }
}

type Ends = { readonly squeezed: Result; readonly problems: readonly string[] }

const answered = (ends: readonly Ends[]) => ends.filter(({ squeezed }) => squeezed.code === 0).length

/** One turn with only so much room, then the same home with room again. */
async function turnWithRoom({ disk, home }: Place, free: number): Promise<Ends> {
  const turn = shortTurn(`room-${free}`)
  disk.leave(free)
  const squeezed = await home.run(streamed(turn.prompt), turn.responses)
  disk.leave(undefined)
  const next = await home.run(streamed('go on'), [{ tool_calls: [{ name: 'time', arguments: {} }] }, { text: 'on we go' }])
  const verified = await home.run(['receipt', 'verify', '--deep'])
  const said = acknowledged(turn.prompt, squeezed.stdout)
  const problems = withMemory(home, (memory) => [
    ...(next.code === 0 ? [] : [`the next start ended with ${next.code}: ${next.stderr}`]),
    ...(verified.code === 0 && verified.stderr === '' ? [] : [`verify said ${verified.code}: ${verified.stdout}${verified.stderr}`]),
    ...brokenPromises(home, memory, said),
    ...brokenEffects(home, said.runId ? memory.journal.events(said.runId) : [], turn.effects),
    ...(squeezed.code === 0 ? [] : unclear(squeezed)),
  ])
  return { squeezed, problems: problems.map((problem) => `${free} bytes free: ${problem}`) }
}

/** It must name the file and the reason, as a person would understand it; 9 only before an act whose receipt would find no room. */
function unclear({ code, stdout, stderr }: Result): string[] {
  const text = `${stdout}${stderr}`
  const clear = /disk is full|free some space|free space|no space left/i.test(text) && !/this is a bug|\bat .*\.ts:/.test(text)
  const expected = /no receipt of it could be kept/.test(text) ? 9 : 1
  return [...(code === expected ? [] : [`ended with ${code}: ${text}`]), ...(clear ? [] : [`does not say that the disk is full: ${text}`])]
}

describe('full disk', () => {
  test('a home with a past: each page of room more, from none to enough', async () => {
    using at = place()
    await at.home.run(streamed('before'), turnOf('before', () => 0).responses)
    const ends: Ends[] = []
    for (let pages = phase; answered(ends) < 2 && pages < 300; pages += stride) ends.push(await turnWithRoom(at, pages * page))
    expect(ends.flatMap(({ problems }) => problems)).toEqual([])
    expect(new Set(ends.map(({ squeezed: { code } }) => (code === 9 ? 1 : code)))).toEqual(new Set([0, 1]))
    const text = ends.map(({ squeezed }) => `${squeezed.stdout}${squeezed.stderr}`).join('')
    expect(text).toContain('memory.sqlite')
  }, 120_000)

  test('a new home: each page of room more, from none to enough', async () => {
    using at = place(false)
    const ends: Ends[] = []
    for (let pages = phase + 2; answered(ends) < 2 && pages < 300; pages += stride) {
      rmSync(at.home.state, { recursive: true, force: true })
      configure(at.home.state)
      ends.push(await turnWithRoom(at, pages * page))
    }
    expect(ends.flatMap(({ problems }) => problems)).toEqual([])
    expect(new Set(ends.map(({ squeezed: { code } }) => (code === 9 ? 1 : code)))).toEqual(new Set([0, 1]))
  }, 120_000)

  sandboxed(
    'init leaves no half of a config file, and completes later',
    async () => {
      using at = place(false)
      for (const pages of isDeep ? [0, 1, 2, 3, 8, 12] : [1, 8]) {
        at.disk.leave(pages * page)
        const { code, stderr } = await at.home.run(['init'])
        expect({ pages, code }).toEqual({ pages, code: 1 })
        expect(stderr).toMatch(/no space left|disk is full|free some space|free space/i)
        const config = join(at.home.state, 'config.toml')
        if (existsSync(config)) expect(readFileSync(config, 'utf8')).toContain('[log]')
        at.disk.leave(undefined)
        expect(await at.home.run(['init'])).toMatchObject({ code: 0 })
        expect(await at.home.run(['agent', '-m', 'What can you do?'])).toMatchObject({
          code: 0,
          stderr: expect.stringMatching(/^note: the offline helper answers; .*\n$/),
        })
        expect(
          readdirSync(at.home.state)
            // The last two are prepared while the model thinks for more than a moment.
            .filter((name) => !/^(\.lock|run|receipt\.key|.*-(wal|shm)|caches|changes)$/.test(name))
            .sort(),
        ).toEqual(['agents', 'config.toml', 'logs', 'memory.sqlite'])
        expect(readFileSync(join(at.home.state, 'agents/default/soul.md'), 'utf8')).toEndWith('\n')
        rmSync(at.home.state, { recursive: true, force: true })
      }
    },
    120_000,
  )
})

describe('read-only disk', () => {
  test.each([
    ['agent', ['agent', '-m', 'hello']],
    ['memory list', ['memory', 'list']],
    ['memory clear', ['memory', 'clear', '--yes']],
    ['receipt anchor', ['receipt', 'anchor']],
    ['tool run', ['tool', 'run', 'time', '--json', '{}']],
  ])('%s: one sentence that says so, exit 1', async (_, args) => {
    using at = place()
    await at.home.run(streamed('before'), turnOf('before', () => 0).responses)
    at.disk.readOnly(true)
    const { code, stdout, stderr } = await at.home.run(args)
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).toMatch(/^error: .*(read-only|cannot be written)/)
    expect(stderr.trimEnd().split('\n').length).toBe(1)
    const before = receipts(at.home).size
    at.disk.readOnly(false)
    expect((await at.home.run(streamed('after'), [{ text: 'well' }])).code).toBe(0)
    expect(receipts(at.home).size).toBe(before)
  })

  test('init: exit 1, and it says why', async () => {
    using at = place(false)
    at.disk.readOnly(true)
    const { code, stderr } = await at.home.run(['init'])
    expect(code).toBe(1)
    expect(stderr).toMatch(/read-only/)
  })
})
