/**
 * kill -9 at the commits of a wiggum run, and at random instants, also while its result enters the folder; then `agent --continue-turn`: no
 * run and no iteration is lost, no call is done twice, and the folder has nothing or the whole result. CRASH_SEED repeats the random part,
 * CRASH_KILLS=300 does more of it.
 */

import { describe, expect } from 'bun:test'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isDeep, repetitions } from '../support/tier.ts'
import { fresh as freshHome, random, remove, removeHomes, seed, shell, start, test } from './dying-turns.ts'
import type { Home } from './home.ts'
import { withMemory } from './oracle.ts'

removeHomes()
const names = ['a.txt', 'b.txt', 'c.txt', 'done.txt']
const replies = [
  { tool_calls: [shell('a', 'echo a >> a.txt'), shell('b', 'echo b >> b.txt')] },
  { text: 'done' },
  { tool_calls: [shell('c', 'echo c >> c.txt'), { id: 'd', name: 'file_write', arguments: { path: 'done.txt', content: 'd\n' } }] },
  { text: 'now it is done' },
]

function fresh(): Home {
  const home = freshHome()
  mkdirSync(join(home.workspace, 'src'))
  for (let at = 0; at < 20; at += 1) writeFileSync(join(home.workspace, `src/${at}.txt`), `${at}\n`)
  return home
}

const json = ['--output-format', 'stream-json']
const turn = ['agent', '--wiggum', '--check', 'test -e done.txt', ...json, 'do it']
const goOn = ['agent', '--continue-turn', ...json]

type Record = { readonly runs: readonly string[]; readonly state: string; readonly base: string; readonly conversation?: string }

function record(home: Home): Record | undefined {
  const folder = join(home.state, 'wiggum')
  const ids = existsSync(folder) ? readdirSync(folder).filter((id) => existsSync(join(folder, id, 'run.json'))) : []
  return ids.map((id) => JSON.parse(readFileSync(join(folder, id, 'run.json'), 'utf8')))[0]
}

/** Returns how many replies of the model the runs of the record have. */
const replied = (home: Home) =>
  withMemory(home, ({ journal }) => {
    const runs = journal.runs({ limit: 1_000 }).filter(({ channel }) => channel === 'cli')
    const entries = runs.flatMap(({ runId }) => journal.events(runId))
    return {
      replies: entries.filter(({ type }) => type === 'model.done').length,
      retries: entries.filter(({ type }) => type === 'retry').length,
    }
  })

const lines = ({ workspace }: Home, name: string) =>
  existsSync(join(workspace, name)) ? readFileSync(join(workspace, name), 'utf8').split('\n').filter(Boolean).length : 0

/** The folder has nothing of the result, or all of it, unless it is just entering. */
const applied = (home: Home) => names.map((name) => lines(home, name)).join('')

/** Goes on until the run is over; `kill` may end an attempt. @returns every broken promise */
async function finish(home: Home, kill: (attempt: number) => number | undefined = () => undefined): Promise<string[]> {
  for (let attempt = 0; attempt < 20 && (record(home)?.state ?? 'done') !== 'done'; attempt += 1) {
    const rest = replies.slice(replied(home).replies)
    // Without a reply left only the checks and the result are left.
    const running = start(home, goOn, rest.length > 0 ? rest : [{ error: 'auth' }])
    const ms = kill(attempt)
    if (ms !== undefined) {
      await Bun.sleep(ms)
      running.kill()
    }
    const { code, stdout, stderr } = await running.result
    if (code !== null && code !== 0) return [`going on ended with ${code}: ${stderr}${stdout}`]
  }
  const found = record(home)
  // Killed before anything was registered: nothing was asked, and nothing is left but what the next run removes.
  if (found === undefined) return applied(home) === '0000' ? [] : [`nothing is registered, and the folder has ${applied(home)}`]
  const checks = await Promise.all(
    [
      ['receipt', 'verify', '--deep'],
      ...(isDeep
        ? [
            ['replay', '--all'],
            ['rebuild', '--check'],
          ]
        : []),
    ].map((args) => start(home, args).result),
  )
  const { retries } = replied(home)
  // A process that died when all was done leaves the copy to the next run.
  if (existsSync(join(found.base, '1/workspace'))) await start(home, ['agent', '--wiggum', '--check', 'true', 'nothing']).result
  return [
    ...(found.state === 'done' ? [] : [`the run is ${found.state}`]),
    ...(applied(home) === '1111' ? [] : [`the folder has ${applied(home)} of ${names}`]),
    ...(retries === 1 ? [] : [`${retries} iterations failed`]),
    ...(existsSync(join(found.base, '1/workspace')) ? ['the copy is left'] : []),
    ...checks.flatMap(({ code, stdout, stderr }) => (code === 0 ? [] : [`a check ended with ${code}: ${stdout}${stderr}`])),
  ]
}

describe('a wiggum run that was killed goes on', () => {
  // The random kills hit commits, too; each commit costs seconds.
  if (isDeep)
    test('at its commits', async () => {
      const counter = join(fresh().dir, 'commits')
      const whole = await start(fresh(), turn, replies, `count:${counter}`).result
      expect([whole.code, whole.stderr]).toEqual([0, expect.stringContaining('applied: ')])
      const commits = Number(readFileSync(counter, 'utf8'))
      expect(commits).toBeGreaterThan(20)
      const points = Array.from({ length: commits }, (_, at) => [`${at + 1}:before`, `${at + 1}:after`]).flat()
      const hits: string[] = []
      for (const point of points) {
        const home = fresh()
        if ((await start(home, turn, replies, point).result).code === null) hits.push(point)
        expect([point, await finish(home)]).toEqual([point, []])
        remove(home)
      }
      expect(hits.length).toBeGreaterThanOrEqual(points.length - 4)
    }, 3_600_000)

  const kills = Number(process.env.CRASH_KILLS ?? repetitions({ fast: 1, deep: 12 }))
  test(`at ${kills} random instants, and while it goes on`, async () => {
    console.log(`CRASH_SEED=${seed}`)
    const hits = { first: 0, byThemselves: 0 }
    for (let number = 0; number < kills; number += 1) {
      const home = fresh()
      const running = start(home, turn, replies)
      const wanted = 1 + Math.floor(random() * 13)
      // A third of the kills come after the last reply, while the result enters the folder.
      await running.lines(kills > 1 && random() < 0.33 ? 13 : wanted)
      if (kills > 1) await Bun.sleep(random() * 400)
      running.kill()
      if ((await running.result).code === null) hits.first += 1
      const broken = await finish(home, () => (kills > 1 && random() < 0.3 ? 150 + random() * 900 : undefined))
      if (broken.length === 0) hits.byThemselves += 1
      expect([number, broken]).toEqual([number, []])
      remove(home)
    }
    console.log(`${hits.first} of ${kills} runs were killed, ${hits.byThemselves} went on by themselves`)
    expect(hits.first).toBeGreaterThan(0)
  }, 36_000_000)
})
