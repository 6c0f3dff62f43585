import { describe, expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { repetitions } from '../../../test/support/tier.ts'
import { createFixture, everything, type Fixture, furnish, type picture, pictureOf } from './fixture.ts'
import { openChangeStore } from './store.ts'

/** Does one thing with the store in a process of its own that kills itself before its nth change on disk. */
const script = `
  const { openChangeStore } = await import(${JSON.stringify(join(import.meta.dir, 'store.ts'))})
  const { folder, workspace, at, job } = JSON.parse(process.argv.at(-1))
  let steps = 0
  const onStep = () => { if (++steps === at) process.kill(process.pid, 'SIGKILL') }
  const limits = { keepBytes: 1e9, keepDays: 30, keepSets: 100 }
  const store = openChangeStore({ folder, workspace, limits, now: Date.now, log() {}, onStep })
  const done = await (job.kind === 'recover' ? store.recover() : store[job.kind](...job.words))
  console.log(JSON.stringify({ steps, done }))`

type CrashJob = { readonly kind: 'apply' | 'undo' | 'recover'; readonly words: readonly unknown[] }

/** @returns undefined when it was killed */
async function runKilled({ options }: Fixture, job: CrashJob, at: number): Promise<{ steps: number; done: unknown } | undefined> {
  const words = [
    process.execPath,
    '--config=/dev/null',
    '-e',
    script,
    JSON.stringify({ folder: options.folder, workspace: options.workspace, at, job }),
  ]
  const child = Bun.spawn(words, { stdio: ['ignore', 'pipe', 'inherit'] })
  const text = await new Response(child.stdout).text()
  await child.exited
  return child.signalCode === 'SIGKILL' ? undefined : JSON.parse(text)
}

type Picture = ReturnType<typeof picture>

/** Every path is as it was or as it will be; folders may have any mode meanwhile, and a copy on its way has a name of ours. */
function assertNothingTorn(now: Picture, [one, other]: readonly [Picture, Picture]): void {
  for (const [path, entry] of Object.entries(now).filter(([path]) => !path.includes('.braidclaw-'))) {
    const known = [one[path], other[path]].filter((candidate) => candidate?.state.kind === entry.state.kind)
    if (entry.state.kind === 'folder') expect({ path, known: known.length > 0 }).toEqual({ path, known: true })
    else expect(known).toContainEqual(entry)
  }
}

const memory = existsSync('/dev/shm') ? '/dev/shm' : undefined

/** Every nth step, in the deep tier every step in memory; a disk that others use too is slow to flush. */
const places = [
  ['in memory', { storeIn: memory, workspaceIn: memory }, repetitions({ fast: 5, deep: 1 })],
  ['on a disk', {}, repetitions({ fast: 17, deep: 6 })],
  ['on another file system than the store', { workspaceIn: memory }, repetitions({ fast: 11, deep: 3 })],
  ['with its git directory outside', { storeIn: memory, workspaceIn: memory, gitIn: memory }, repetitions({ fast: 9, deep: 2 })],
  [
    'with its git directory on another file system',
    { storeIn: memory, workspaceIn: memory, gitIn: tmpdir() },
    repetitions({ fast: 17, deep: 6 }),
  ],
] as const

describe.each(places)('a workspace %s', (_, where, stride) => {
  for (const kind of ['apply', 'undo'] as const)
    test(`survives a kill in an ${kind}, and one more while that is finished`, async () => {
      for (let at = 1; ; at += stride) {
        await using fixture = await createFixture(where)
        furnish(fixture)
        if (fixture.git !== undefined) furnish({ ...fixture, at: (path) => join(fixture.git ?? '', path) })
        const before = pictureOf(fixture)
        const set = await fixture.command(everything)
        const after = set.wanted
        if (kind === 'undo') expect(await fixture.store.apply(set)).toMatchObject({ ok: true })
        const job: CrashJob = { kind, words: [kind === 'apply' ? set : set.id] }
        const whole = await runKilled(fixture, job, at)
        assertNothingTorn(pictureOf(fixture), [before, after])
        const [old, wanted] = kind === 'apply' ? [before, after] : [after, before]
        if (whole !== undefined) {
          expect(at).toBeGreaterThan(20)
          expect(whole.done).toMatchObject({ ok: true })
          expect(pictureOf(fixture)).toEqual(wanted)
          return
        }
        await runKilled(fixture, { kind: 'recover', words: [] }, 1 + ((at * 7) % 23))
        assertNothingTorn(pictureOf(fixture), [before, after])
        await openChangeStore(fixture.options).recover()
        const begun = fixture.store.list()[0]?.state === (kind === 'apply' ? 'applied' : 'undone')
        expect({ at, now: pictureOf(fixture) }).toEqual({ at, now: begun ? wanted : old })
        expect({ at, begun }).toEqual({ at, begun: at > 1 })
      }
    }, 120_000)
})
