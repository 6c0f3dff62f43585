/**
 * kill -9 at the commits of a turn, and at random instants; then `agent --continue-turn`: no turn is lost, and no call is done twice unless
 * somebody asked for it. CRASH_SEED repeats the random part, CRASH_KILLS=300 does more of it.
 */

import { describe, expect } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { attempts } from '../../src/memory/journal/attempts.ts'
import { isDeep, repetitions } from '../support/tier.ts'
import { until } from '../support/until.ts'
import { fresh, random, remove, removeHomes, seed, shell, start, test } from './dying-turns.ts'
import type { Home } from './home.ts'
import { withMemory } from './oracle.ts'

removeHomes()
const files = ['a.txt', 'b.txt', 'c.txt', 'd.txt']
const replies = [
  { tool_calls: [{ id: 't', name: 'time', arguments: {} }, shell('a', 'echo a >> a.txt'), shell('b', 'echo b >> b.txt')] },
  { tool_calls: [shell('c', 'echo c >> c.txt')] },
  { tool_calls: [{ id: 'd', name: 'file_write', arguments: { path: 'd.txt', content: 'd\n' } }] },
  { text: 'all is done' },
]
/** Commands on private views; and commands that act at once, so that nobody knows what a dead process did. */
const modes = { views: ['--approve-all-medium'], direct: ['--autonomy', 'full', '--sandbox', 'none'] }
type Mode = keyof typeof modes

const turn = (mode: Mode) => ['agent', '-m', 'do it', '--output-format', 'stream-json', ...modes[mode]]
const goOn = (mode: Mode) => ['agent', '--continue-turn', '--output-format', 'stream-json', ...modes[mode]]

/** What the journal has of the conversation: how many replies, whether it has begun, and whether it has ended by itself. */
const recorded = (home: Home) =>
  withMemory(home, ({ journal }) => {
    const runs = journal.runs({ limit: 100 })
    const entries = runs.flatMap(({ runId }) => journal.events(runId))
    const count = (type: string) => entries.filter((entry) => entry.type === type).length
    return { replies: count('model.done'), begun: count('run.start') > 0, ended: runs.some(({ code }) => code === 'answered') }
  })

const lines = ({ workspace }: Home, file: string) =>
  existsSync(join(workspace, file)) ? readFileSync(join(workspace, file), 'utf8').split('\n').filter(Boolean).length : 0

type Deaths = { readonly kill?: (attempt: number) => number | undefined; readonly dieAt?: readonly string[] }

/** Goes on until the turn is answered; an attempt may be killed, or die at a commit. @returns every broken promise */
async function finish(home: Home, mode: Mode, { kill = () => undefined, dieAt = [] }: Deaths = {}): Promise<string[]> {
  const seen = { begun: 0 }
  for (let attempt = 0; attempt < 20; attempt += 1) {
    const before = recorded(home)
    if (!before.begun || before.ended) break
    seen.begun += 1
    const running = start(home, goOn(mode), replies.slice(before.replies), dieAt[attempt])
    const ms = kill(attempt)
    if (ms !== undefined) {
      await Bun.sleep(ms)
      running.kill()
    }
    const { code, stdout, stderr } = await running.result
    if (code === null) continue
    if (code !== 0) return [`going on ended with ${code}: ${stderr}${stdout}`]
  }
  const { begun, ended } = recorded(home)
  if (!begun) return []
  const checks = await Promise.all(
    [
      ['receipt', 'verify', '--deep'],
      ['replay', '--all'],
      ['rebuild', '--check'],
    ].map((args) => start(home, args).result),
  )
  const unknown = withMemory(home, ({ conversations }) =>
    conversations.list().flatMap(({ conversationId }) => conversations.show(conversationId)),
  )
    .filter(({ role, content }) => role === 'user' && content.includes('Nobody knows'))
    .map(({ content }) => content)
  const isUnknown = (file: string) => unknown.some((content) => content.includes(file))
  return [
    ...(ended ? [] : ['the turn was lost']),
    ...checks.flatMap(({ code, stdout, stderr }) => (code === 0 ? [] : [`a check ended with ${code}: ${stdout}${stderr}`])),
    ...files.flatMap((file) => (lines(home, file) > 1 ? [`${file} was written ${lines(home, file)} times`] : [])),
    ...files.flatMap((file) => (lines(home, file) === 0 && !isUnknown(file) ? [`${file} was never written`] : [])),
  ]
}

describe('a turn that was killed goes on', () => {
  for (const mode of ['views', 'direct'] as const)
    test(`at its commits (${mode})`, async () => {
      const counter = join(fresh().dir, 'commits')
      expect((await start(fresh(), turn(mode), replies, `count:${counter}`).result).code).toBe(0)
      const commits = Number(readFileSync(counter, 'utf8'))
      expect(commits).toBeGreaterThan(8)
      const points = Array.from({ length: commits }, (_, at) => [`${at + 1}:before`, `${at + 1}:after`]).flat()
      const tried = points.filter((_, at) => isDeep || at % 14 === (mode === 'views' ? 12 : 9))
      const hits: string[] = []
      for (const point of tried) {
        const home = fresh()
        // Two results that come at once share a commit, so a run may have fewer than the one that was counted.
        if ((await start(home, turn(mode), replies, point).result).code === null) hits.push(point)
        expect([point, await finish(home, mode)]).toEqual([point, []])
      }
      expect(hits.length).toBeGreaterThanOrEqual(tried.length - 4)
      expect(hits).not.toEqual([])
    }, 600_000)

  test('when the process that repairs dies too, at its first commits', async () => {
    for (const second of ['1:before', '1:after', ...(isDeep ? ['2:before'] : [])])
      for (const first of isDeep ? ['2:after', '3:after', '4:after'] : ['3:after'])
        for (const mode of ['views', 'direct'] as const) {
          const home = fresh()
          expect((await start(home, turn(mode), replies, first).result).code).toBe(null)
          expect([first, second, mode, await finish(home, mode, { dieAt: [second] })]).toEqual([first, second, mode, []])
          remove(home)
        }
  }, 600_000)

  test('while the changes of a command enter the workspace: all of them are there, once', async () => {
    const home = fresh()
    const names = Array.from({ length: 150 }, (_, at) => `f${at}.txt`)
    const many = { tool_calls: [shell('m', `for at in $(seq 0 ${names.length - 1}); do echo x >> f$at.txt; done`)] }
    // The second command keeps a quick process from ending the turn before the kill.
    const running = start(home, turn('views'), [many, { tool_calls: [shell('s', 'sleep 50')] }])
    await until(() => names.some((name) => existsSync(join(home.workspace, name))))
    running.kill()
    expect((await running.result).code).toBe(null)
    const { code } = await start(home, goOn('views'), [{ text: 'done' }]).result
    expect([code, names.filter((name) => lines(home, name) !== 1)]).toEqual([0, []])
    for (const check of [
      ['receipt', 'verify', '--deep'],
      ['replay', '--all'],
    ])
      expect((await start(home, check).result).code).toBe(0)
  })

  test('with a yes that was given meanwhile: it counts once', async () => {
    const home = fresh()
    const write = (id: string) => ({ tool_calls: [{ id, name: 'file_write', arguments: { path: 'd.txt', content: 'd\n' } }] })
    const open = async () => /run_\w+\/\w+/.exec((await start(home, ['approvals', 'list']).result).stdout)?.[0]
    // The question is open after one of the first commits.
    let question: string | undefined
    for (let commit = 2; commit < 8 && question === undefined; commit += 1) {
      await start(home, ['agent', '-m', 'write'], [write('w')], `${commit}:after`).result
      question = await open()
    }
    if (question === undefined) throw new Error('no question was open')
    expect((await start(home, ['approvals', 'allow', question]).result).code).toBe(0)
    const { code } = await start(home, ['agent', '--continue-turn'], [write('again'), { text: 'done' }]).result
    expect([code, lines(home, 'd.txt')]).toEqual([4, 1])
    const results = withMemory(home, ({ store }) => [...attempts(store)].map(({ callId, status }) => `${callId} ${status}`))
    expect(results).toEqual(['w allowed', 'again denied'])
  })

  const kills = Number(process.env.CRASH_KILLS ?? repetitions({ fast: 1, deep: 12 }))
  test(`at ${kills} random instants, and while it goes on`, async () => {
    console.log(`CRASH_SEED=${seed}`)
    const hits = { first: 0 }
    for (let number = 0; number < kills; number += 1) {
      const mode = random() < 0.5 ? 'views' : 'direct'
      const home = fresh()
      const running = start(home, turn(mode), replies)
      // Few kills must all hit: they come at once in the first half of the turn.
      if (!isDeep) await running.lines(Math.ceil(random() * 6))
      else if (random() < 0.3) await Bun.sleep(random() * 900)
      else {
        await running.lines(Math.ceil(random() * 13))
        await Bun.sleep(random() * 30)
      }
      running.kill()
      if ((await running.result).code === null) hits.first += 1
      expect([number, await finish(home, mode, { kill: () => (random() < 0.3 ? 150 + random() * 700 : undefined) })]).toEqual([number, []])
      remove(home)
    }
    expect(hits.first).toBeGreaterThan(isDeep ? kills / 2 : kills - 1)
  }, 3_600_000)
})
