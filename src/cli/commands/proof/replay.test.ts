import { afterAll, describe, expect, test } from 'bun:test'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { nest } from '../../../../test/support/cli.ts'
import { asReplayed } from '../../../../test/support/replayed.ts'
import { isDeep } from '../../../../test/support/tier.ts'
import type { CliContext } from '../../../channels/terminal/context.ts'
import { printTo } from '../../../channels/terminal/printer.ts'
import { openMemory } from '../../../memory/memory.ts'
import type { AnyCommand } from '../../args/command.ts'
import { createContext } from '../../context.ts'
import { exitOf } from '../../exit.ts'
import { list, show } from '../records/run.ts'
import { replay } from './replay.ts'
import { verify } from './verify.ts'

const home = nest()
const streamedParts: string[] = []
afterAll(() => home[Symbol.dispose]())
home.file('notes.txt', 'hello')

/** Runs the real executable; returns its stdout without partial texts. */
async function live(): Promise<string> {
  const fixture = home.fixture([
    { tool_calls: [{ name: 'file_list', arguments: { path: '.' } }] },
    { tool_calls: [{ name: 'shell', arguments: { command: 'rm -rf /' } }] },
    { thinking: 'hm', text: 'Files: one and two', chunks: 4 },
  ])
  const { stdout } = await home.run(['agent', '-m', 'go', '--output-format', 'stream-json'], { env: { BRAIDCLAW_MOCK_FIXTURE: fixture } })
  const lines = stdout.split('\n')
  streamedParts.push(...lines.filter((line) => line.includes('"isPartial":true')))
  return asReplayed(stdout)
}

/** Runs a command in this process; returns its output and its exit code. */
async function run(command: AnyCommand, flags: object = {}, id?: string) {
  const said = { stdout: '', stderr: '', code: 0 }
  const base = createContext(home.env)
  const write = (stream: 'stdout' | 'stderr') =>
    printTo((text) => {
      said[stream] += text
    }, false)
  const context: CliContext = {
    ...base,
    cwd: home.workspace,
    process: { ...base.process, stdout: write('stdout'), stderr: write('stderr') },
  }
  try {
    await command.run(context, { ...flags }, id === undefined ? {} : { run: id })
  } catch (error) {
    const { code, message } = exitOf(error)
    Object.assign(said, { code, stderr: said.stderr + message })
  }
  return said
}

/** Adds one more run to the database, made of the entries of the last one. */
function forge(runId: string, change: (text: string) => string): void {
  const opened = openMemory({ path: join(home.home, '.braidclaw/memory.sqlite'), log: () => {}, now: () => 1 })
  if (!opened.ok) throw new Error(opened.failure.message)
  const { journal, close } = opened.memory
  const [last] = journal.runs({ limit: 1 })
  if (!last) throw new Error('no run')
  const identity = { ...last, runId, turnId: `turn_${runId}` }
  for (const { kind, type, at, body } of journal.events(last.runId))
    journal.append({ run: identity, kind, type, at: at + 1, body: JSON.parse(change(JSON.stringify(body))) })
  close()
}

const streamed = await live()

describe('replay', () => {
  test('of the last run prints what the run printed, byte for byte but for the partial texts, and says so', async () => {
    const { stdout, stderr, code } = await run(replay, {}, 'last')
    expect(stdout).toBe(streamed)
    expect(streamedParts.map((line) => JSON.parse(line).content).join('')).toBe('Files: one and two')
    expect(stdout).toContain('{"type":"text","content":"Files: one and two","isPartial":false}')
    expect(stderr).toMatch(/run_\w+: the same, \d+ events, digest [0-9a-f]{64}\n$/)
    expect(code).toBe(0)
  })

  test('finds a run by the beginning of its id, and says when there is none or several', async () => {
    const [found] = JSON.parse((await run(list, { limit: 1, json: true })).stdout)
    expect((await run(replay, { json: true }, found.runId.slice(0, 12))).code).toBe(0)
    expect(await run(replay, {}, 'run_zzz')).toMatchObject({ code: 1, stderr: 'error: no run "run_zzz"; see: braidclaw run list' })
    expect(await run(replay, {}, '')).toMatchObject({ code: 1 })
  })

  test('needs one run, or all', async () => {
    expect(await run(replay, {})).toMatchObject({ code: 2 })
    expect(await run(replay, { all: true }, 'last')).toMatchObject({ code: 2 })
  })

  test('of an altered run names the event and ends with 9', async () => {
    forge('run_forged', (text) => text.replaceAll('"notes.txt', '"other.txt').replace('"path":"."', '"path":"x"'))
    const { stderr, code } = await run(replay, {}, 'run_forged')
    expect(code).toBe(9)
    expect(stderr).toMatch(/^run_forged: ALTERED|\nrun_forged: ALTERED/)
    expect(stderr).toMatch(/event \d+: the journal has .*\(journal entry \d+\)/)
    expect(await run(replay, { all: true })).toMatchObject({ code: 9, stdout: '' })
    const reports = (await run(replay, { all: true, json: true })).stdout.trim().split('\n')
    expect(reports.map((line) => 'divergence' in JSON.parse(line))).toEqual([false, true])
  })
})

describe('replay with another policy', () => {
  const policy = (text: string) => {
    const path = join(home.dir, 'policy.toml')
    writeFileSync(path, text)
    return path
  }

  test('says which calls it would judge otherwise and where the run would have parted, and ends with 0', async () => {
    const path = policy(`[security]\nforbidden_paths = ["${home.workspace}"]\n`)
    const asked = await run(replay, { policy: path, all: true, json: true })
    expect(asked.stderr).toBe('')
    const [report = ''] = asked.stdout.split('\n')
    const { calls, divergence } = JSON.parse(report)
    expect(
      calls.map(({ tool, before, after }: { tool: string; before: { verdict: string }; after: { verdict: string } }) => [
        tool,
        before.verdict,
        after.verdict,
      ]),
    ).toEqual([
      ['file_list', 'allow', 'deny'],
      ['shell', 'deny', 'deny'],
    ])
    expect(divergence).toMatchObject({ before: expect.stringContaining('act'), after: expect.stringContaining('deny') })
    const { stdout, code } = await run(replay, { policy: path, all: true })
    expect(code).toBe(0)
    expect(stdout).toContain('1 of 2 calls would be judged otherwise')
  })

  test('that is the same finds nothing, though the emergency stop is set now', async () => {
    const path = policy('')
    writeFileSync(join(home.home, '.braidclaw/ESTOP'), 'stop')
    const [report = ''] = (await run(replay, { policy: path, all: true, json: true })).stdout.split('\n')
    expect(JSON.parse(report).calls.every(({ changed }: { changed: boolean }) => !changed)).toBe(true)
    expect(JSON.parse(report).divergence).toBeUndefined()
  })

  test('that is not there, or is broken, ends with 2 and its own name', async () => {
    expect(await run(replay, { policy: '/gone/x.toml' }, 'last')).toMatchObject({
      code: 2,
      stderr: 'error: /gone/x.toml does not exist; --policy takes a config.toml',
    })
    const path = policy('[security]\nautonmy = "full"\n')
    const { code, stderr } = await run(replay, { policy: path }, 'last')
    expect(code).toBe(2)
    expect(stderr).toContain(path)
    expect(stderr).toContain('autonomy')
  })
})

test('run list and run show tell what ran, with the numbers that a divergence names', async () => {
  const listed = (await run(list, { limit: 9 })).stdout
  expect(listed).toMatch(/run_\w+ {2}\d{4}-\d\d-\d\d \d\d:\d\d:\d\d {2}/)
  const [, first] = JSON.parse((await run(list, { limit: 9, json: true })).stdout)
  const { stdout } = await run(show, {}, first?.runId ?? 'last')
  expect(stdout).toMatch(/ {3}1 {2}external {2}run\.start\n/)
  expect(JSON.parse((await run(show, { json: true }, 'last')).stdout).entries.length).toBeGreaterThan(5)
})

describe('verify', () => {
  const threads = (text: string) => {
    const path = join(home.dir, 'threads.json')
    writeFileSync(path, text)
    return path
  }

  test('of a rule that asks for something ends with 2 and says why', async () => {
    const { code, stderr } = await run(verify, { threads: threads('{"name": "x", "on": {"type": "propose"}, "request": []}') })
    expect({ code, stderr }).toMatchObject({ code: 2, stderr: expect.stringContaining('a rule can only block') })
    expect(await run(verify, { threads: 'gone.json' })).toMatchObject({
      code: 2,
      stderr: `error: ${home.workspace}/gone.json does not exist`,
    })
  })

  test('prints every property and what was explored, with the rules of this home', async () => {
    mkdirSync(join(home.home, '.braidclaw/rules'), { recursive: true })
    writeFileSync(join(home.home, '.braidclaw/rules/a.json'), '{"name": "no-net", "on": {"type": "propose", "tool": "http"}}')
    const { code, stdout } = await run(verify, {})
    expect(code).toBe(0)
    expect(stdout).toContain('✓ P1  No call runs that the gate forbade')
    expect(stdout).toContain('✓ P6  A wiggum run ends well only after all its checks passed')
    expect(stdout).not.toContain('· P')
    expect(stdout).toMatch(/[\d,]+ states and [\d,]+ transitions explored, with rule\.no-net\n$/)
  }, 120_000)

  // It explores the whole program once more.
  if (isDeep)
    test('as JSON', async () => {
      const report = JSON.parse((await run(verify, { json: true, threads: threads('[]') })).stdout)
      expect(report).toMatchObject({ ok: true, idleRules: [], reached: { answer: true } })
    }, 120_000)
})
