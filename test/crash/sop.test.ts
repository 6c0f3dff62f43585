/**
 * kill -9 of a procedure with ten steps at its commits, and at random instants; then `sop resume`: each effect on files, commands, git and a
 * server happens once, or a person is asked about it. CRASH_SEED repeats the random part, CRASH_KILLS=300 does more of it.
 */

import { afterAll, afterEach, test as always, beforeAll, describe, expect } from 'bun:test'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createSopStore } from '../../src/memory/journal/sop-store.ts'
import { needs } from '../support/needs.ts'
import { isDeep, repetitions } from '../support/tier.ts'
import { createHome, type Home, randomFrom } from './home.ts'
import { withMemory } from './oracle.ts'

const root = join(import.meta.dir, '../..')
const bun = [process.execPath, '--config=/dev/null', '--no-env-file', '--no-install']
const seed = Number(process.env.CRASH_SEED ?? crypto.getRandomValues(new Uint32Array(1))[0])
const random = randomFrom(seed)
const kills = Number(process.env.CRASH_KILLS ?? repetitions({ fast: 4, deep: 100 }))

const state: { server?: Bun.Server<undefined>; posts: string[]; homes: Home[] } = { posts: [], homes: [] }
beforeAll(() => {
  state.server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      state.posts.push(await request.text())
      return new Response('ok')
    },
  })
})
afterAll(() => void state.server?.stop(true))
afterEach(() => {
  for (const home of state.homes.splice(0)) home[Symbol.dispose]()
  state.posts = []
})

/** A step that fails in doubt does not end the run, so that every later effect is tried too. */
const step = (id: string, rest: string) => `[[steps]]\nid = "${id}"\non_failure = "continue"\n${rest}\n`
const shell = (id: string, command: string) => step(id, `kind = "tool"\ntool = "shell"\nargs = { command = ${JSON.stringify(command)} }`)
const post = (id: string, base: string) =>
  step(id, `kind = "tool"\ntool = "http"\nargs = { url = "${base}", method = "POST", body = "${base.split('/').pop()} ${id}" }`)
const commit = (id: string) => shell(id, `git -c user.name=a -c user.email=a@b.example commit -q --allow-empty -m ${id}`)

const steps = (base: string) => [
  step('write', 'kind = "tool"\ntool = "file_write"\nargs = { path = "write.txt", content = "write\\n" }'),
  shell('echo', 'echo echo >> echo.txt'),
  commit('commit'),
  post('post', base),
  step('agent', 'kind = "agent"\nprompt = "Say it."'),
  '[[steps]]\nid = "ok"\nkind = "approval"\nprompt = "Go on?"\n',
  shell('again', 'echo again >> again.txt'),
  post('postagain', base),
  commit('commitagain'),
  step('report', 'kind = "tool"\ntool = "file_write"\nargs = { path = "report.txt", content_from = "agent" }'),
]

function fresh(): Home {
  const home = createHome({ binary: join(root, 'src/main.ts') })
  state.homes.push(home)
  const { port } = state.server ?? {}
  const config = readFileSync(join(home.state, 'config.toml'), 'utf8')
  const network = `allowed_domains = ["127.0.0.1"]\nallowed_ports = [${port}]\negress = "open"\n`
  writeFileSync(
    join(home.state, 'config.toml'),
    config.replace(/allowed_domains = .*\n/, '').replace('[security]\n', `[security]\n${network}`),
  )
  const folder = join(home.state, 'sops', 'ten')
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'SOP.toml'), `name = "ten"\n${steps(`http://127.0.0.1:${port}/${home.dir.split('/').pop()}`).join('')}`)
  Bun.spawnSync(['git', 'init', '-q', home.workspace])
  return home
}

const level = ['--autonomy', 'full', '--sandbox', 'none', '--json']
const start = (home: Home, args: readonly string[], dieAt = '') =>
  home.start(args, [{ text: 'said' }], ['setsid', '-w', 'env', `DIE_AT=${dieAt}`, ...bun, `--preload=${root}/test/support/die-at.ts`])

const latest = (home: Home) =>
  withMemory(home, ({ store }) => {
    const runs = createSopStore(store, Date.now)
    const [run] = runs.list({ limit: 1 })
    return run && { ...run, steps: runs.steps(run.id) }
  })

const lines = (home: Home, file: string) =>
  existsSync(join(home.workspace, file)) ? readFileSync(join(home.workspace, file), 'utf8').split('\n').filter(Boolean).length : 0
const commits = (home: Home) =>
  Bun.spawnSync(['git', '-C', home.workspace, 'log', '--format=%s']).stdout.toString().split('\n').filter(Boolean)

/** Resumes until the run has ended, and answers what it asks; `kill` may end an attempt. @returns the steps that were asked about */
async function finish(home: Home, kill: (attempt: number) => number | undefined = () => undefined): Promise<Set<string>> {
  const asked = new Set<string>()
  for (let attempt = 0; attempt < 40; attempt += 1) {
    const run = latest(home)
    if (run === undefined || run.ended !== null) break
    for (const { step: id, state: ended } of run.steps) if (ended === 'asked') asked.add(id)
    const question = run.steps.find((each) => each.state === 'waiting')?.question
    if (question) await start(home, ['approvals', 'allow', question]).result
    const doubt = run.steps.some((each) => each.state === 'asked') ? ['--doubt', 'skip'] : []
    const running = start(home, ['sop', 'resume', run.id, ...level, ...doubt])
    const ms = kill(attempt)
    if (ms !== undefined) {
      await Bun.sleep(ms)
      running.kill()
    }
    const { code, stderr } = await running.result
    if (![null, 0, 4].includes(code)) throw new Error(`resume ended with ${code}: ${stderr}`)
  }
  return asked
}

/** Returns every broken promise. */
function broken(home: Home, asked: ReadonlySet<string>): string[] {
  const run = latest(home)
  if (run === undefined) return []
  const posts = (id: string) => state.posts.filter((body) => body === `${home.dir.split('/').pop()} ${id}`).length
  const counts: { readonly [id: string]: number } = {
    ...{
      write: lines(home, 'write.txt'),
      echo: lines(home, 'echo.txt'),
      again: lines(home, 'again.txt'),
      report: lines(home, 'report.txt'),
    },
    ...{ post: posts('post'), postagain: posts('postagain') },
    ...Object.fromEntries(['commit', 'commitagain'].map((id) => [id, commits(home).filter((subject) => subject === id).length])),
  }
  // The kill may take the command a moment before the process, which then records that the command failed: the step says so.
  const sawFailure = new Set(run.steps.flatMap(({ step: id, why }) => (why.startsWith('interrupted: the call ended') ? [id] : [])))
  return [
    ...(run.state === 'done' ? [] : [`the run is ${run.state}: ${run.why}`]),
    ...(run.steps.length === 10 ? [] : [`${run.steps.length} steps have ended`]),
    ...Object.entries(counts).flatMap(([id, count]) => {
      if (count > 1) return [`${id} happened ${count} times`]
      return count === 0 && !asked.has(id) && !sawFailure.has(id) ? [`${id} never happened, and nobody was asked`] : []
    }),
    ...run.steps.flatMap(({ step: id, state: ended, why }) =>
      ended === 'done' || asked.has(id) || sawFailure.has(id) ? [] : [`${id} ${ended}: ${why}`],
    ),
  ]
}

const test = always.if(needs('git', 'setsid'))

describe('a procedure that was killed continues', () => {
  test('at its commits', async () => {
    const counter = join(fresh().dir, 'commits')
    const first = fresh()
    expect((await start(first, ['sop', 'run', 'ten', ...level], `count:${counter}`).result).code).toBe(4)
    expect([...(await finish(first))]).toEqual([])
    expect(broken(first, new Set())).toEqual([])
    const commitsOfRun = Number(readFileSync(counter, 'utf8'))
    expect(commitsOfRun).toBeGreaterThan(20)
    const points = Array.from({ length: commitsOfRun }, (_, at) => [`${at + 1}:before`, `${at + 1}:after`]).flat()
    const tried = points.filter((_, at) => isDeep || at % 16 === 15)
    const seen = { hits: 0, asked: 0 }
    for (const point of tried) {
      const home = fresh()
      if ((await start(home, ['sop', 'run', 'ten', ...level], point).result).code === null) seen.hits += 1
      const asked = await finish(home)
      seen.asked += asked.size
      expect([point, broken(home, asked)]).toEqual([point, []])
      const verified = await start(home, ['receipt', 'verify', '--deep']).result
      expect([point, verified.code]).toEqual([point, 0])
    }
    expect(seen.hits).toBeGreaterThanOrEqual(tried.length - 2)
    // A harness that never strikes between an effect and its record proves nothing.
    if (isDeep) expect(seen.asked).toBeGreaterThan(0)
  }, 1_800_000)

  test('a command that takes its process with it is asked about, never repeated silently, and every answer counts', async () => {
    for (const [answer, count, ended] of [
      ['done', 1, 'done'],
      ['skip', 1, 'failed'],
      ['again', 2, 'asked'],
    ] as const) {
      const home = fresh()
      const folder = join(home.state, 'sops', 'dies')
      mkdirSync(folder, { recursive: true })
      writeFileSync(join(folder, 'SOP.toml'), `name = "dies"\n${shell('echo', 'echo x >> x.txt; kill -9 $PPID')}`)
      expect((await start(home, ['sop', 'run', 'dies', ...level]).result).code).toBe(null)
      for (const _ of [1, 2]) expect((await start(home, ['sop', 'resume', 'last', ...level]).result).code).toBe(4)
      const asked = JSON.parse((await start(home, ['approvals', 'list', '--json']).result).stdout)
      expect(asked.map(({ id, tool }: { id: string; tool: string }) => [id, tool])).toEqual([
        [`${latest(home)?.id}/echo.doubt`, 'sop.doubt'],
      ])
      // A yes to the question is the answer "again".
      if (answer === 'again') await start(home, ['approvals', 'allow', asked[0].id]).result
      await start(home, ['sop', 'resume', 'last', ...level, ...(answer === 'again' ? [] : ['--doubt', answer])]).result
      // A second death brings the step into doubt again: the first answer is used up.
      if (answer === 'again') for (const _ of [1, 2]) expect((await start(home, ['sop', 'resume', 'last', ...level]).result).code).toBe(4)
      expect([answer, lines(home, 'x.txt'), latest(home)?.steps[0]?.state]).toEqual([answer, count, ended])
    }
  }, 60_000)

  test(
    `${kills} times at random instants`,
    async () => {
      console.log(`CRASH_SEED=${seed}`)
      const known = { usualMs: 1_500, died: 0 }
      for (let kill = 0; known.died < kills && kill < 3 * kills; kill += 1) {
        const home = fresh()
        const begin = performance.now()
        const running = start(home, ['sop', 'run', 'ten', ...level])
        await Bun.sleep(random() * known.usualMs)
        running.kill()
        if ((await running.result).code === null) known.died += 1
        else known.usualMs = (performance.now() - begin) * 0.9
        const asked = await finish(home, (attempt) => (attempt < 2 ? random() * known.usualMs : undefined))
        expect([kill, broken(home, asked)]).toEqual([kill, []])
      }
      expect(known.died).toBeGreaterThanOrEqual(kills)
    },
    kills * 20_000 + 60_000,
  )
})
