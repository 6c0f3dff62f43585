/** The emergency stop: whatever the file looks like, it stops every process of the home, at once and in words; and SIGTERM ends a turn. */

import { describe, expect, test } from 'bun:test'
import { mkdirSync, readFileSync, readlinkSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createAgent, type ModelCall } from '../../src/agent.ts'
import { type Nest, nest } from '../support/cli.ts'
import { needs } from '../support/needs.ts'
import { talk } from '../support/talk.ts'
import { isDeep, repetitions } from '../support/tier.ts'
import { call, everyTool as configured, home, scripted, turn } from '../support/turns.ts'
import { until } from '../support/until.ts'

const confined = test.if(needs('bwrap'))

const estopFile = (at: Nest) => join(at.home, '.braidclaw/ESTOP')
const stubborn = call('shell', { command: "trap '' TERM; sleep 300" })
const over = { text: 'never' }

/** Those that work in this workspace, dead ones that nobody has buried yet aside. */
function alive(at: Nest): string[] {
  return [...new Bun.Glob('[0-9]*').scanSync({ cwd: '/proc', onlyFiles: false })].filter((pid) => {
    try {
      return readlinkSync(`/proc/${pid}/cwd`) === at.workspace && readFileSync(`/proc/${pid}/comm`, 'utf8') === 'sleep\n'
    } catch {
      return false
    }
  })
}

describe('an ESTOP counts, and can be cleared, when it is', () => {
  const forms: readonly [string, (path: string) => unknown][] = [
    ['a folder with something in it', (path) => mkdirSync(join(path, 'x'), { recursive: true })],
    ['a named pipe', (path) => Bun.spawnSync(['mkfifo', path])],
    ['a link to what never ends', (path) => symlinkSync('/dev/zero', path)],
    ['not readable', (path) => writeFileSync(path, 'x', { mode: 0o000 })],
    [
      'no text',
      (path) =>
        writeFileSync(
          path,
          new Uint8Array(5000).map((_, at) => at % 256),
        ),
    ],
    ['a folder', (path) => mkdirSync(path)],
    ['a link to nowhere', (path) => symlinkSync('/nowhere/at/all', path)],
    ['empty', (path) => writeFileSync(path, '')],
  ]

  test.each(isDeep ? forms : forms.slice(0, 4))('%s', async (_, make) => {
    using at = home()
    mkdirSync(join(at.home, '.braidclaw'), { recursive: true })
    make(estopFile(at))
    const stopped = await turn(at, [call('time', {}), { text: 'I was stopped' }])
    expect([stopped.code, stopped.stdout]).toEqual([10, 'I was stopped\n'])
    expect((await at.run(['estop', '--clear'])).stdout).toContain('cleared')
    expect((await turn(at, [call('time', {}), { text: 'I went on' }])).code).toBe(0)
  })
})

describe('a stop reaches', () => {
  test('a model call that is under way', async () => {
    const seen = { asked: false, aborted: false }
    using server = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      fetch: (request) => {
        seen.asked = true
        request.signal.addEventListener('abort', () => {
          seen.aborted = true
        })
        return new Promise<Response>(() => {})
      },
    })
    using at = nest()
    at.config(
      configured
        .replace('http://localhost:1234/v1', `http://127.0.0.1:${server.port}/v1`)
        .replace('default_provider = "local"', 'default_provider = "openai_compatible"'),
    )
    const running = at.start(['agent', '-m', 'go'], { env: { OPENAI_API_KEY: 'key' } })
    await until(() => seen.asked)
    await at.run(['estop', '--reason', 'fire drill'])
    const { code, stdout } = await running.result
    expect([code, stdout]).toEqual([10, expect.stringContaining('Stopped: fire drill')])
    await until(() => seen.aborted)
    expect(seen.aborted).toBe(true)
  })

  confined('tool run', async () => {
    using at = home()
    const args = ['tool', 'run', 'shell', '--approve-all-medium', '--json', '{"command":"sleep 300"}']
    const running = at.start(args)
    await until(() => alive(at).length > 0)
    await at.run(['estop'])
    expect([(await running.result).code, alive(at)]).toEqual([10, []])
  })

  test('a conversation, every time: it goes on once the stop is cleared', async () => {
    using at = home()
    const late = { text: 'late', delay_ms: 60_000 }
    const seen = talk(
      at,
      [late, late, { text: 'all is well' }],
      [
        ['> ', 'first\r'],
        ['> ', 'second\r'],
        ['> ', 'third\r'],
        ['all is well', '\u0004'],
      ],
    )
    const asked = async (words: string) => {
      for (let tries = 0; tries < 200; tries++) {
        if ((await at.run(['memory', 'search', words])).stdout !== '') return
        await Bun.sleep(20)
      }
    }
    for (const words of ['first', 'second']) {
      await asked(words)
      await at.run(['estop', '--reason', `${words} drill`])
      await Bun.sleep(300)
      await at.run(['estop', '--clear'])
    }
    const { code, stdout } = await seen
    expect(code).toBe(0)
    for (const words of ['Stopped: first drill', 'Stopped: second drill', 'all is well']) expect(stdout).toContain(words)
  })

  test('a program that uses the library', async () => {
    using at = home()
    const agent = createAgent({ cwd: at.workspace, home: join(at.home, '.braidclaw'), env: at.env, modelCall: hanging })
    const said: string[] = []
    for await (const event of agent.run('go')) {
      if (event.type === 'init') setTimeout(() => writeFileSync(estopFile(at), 'enough\n'), 50)
      if (event.type === 'text') said.push(event.content)
    }
    expect([agent.ending()?.code, said]).toEqual(['estop', [expect.stringContaining('Stopped: ')]])
    await agent.close()
  })

  confined(
    'children that ignore SIGTERM',
    async () => {
      using at = home()
      const times: number[] = []
      const rounds = repetitions({ fast: 1, deep: 5 })
      for (let round = 0; round < rounds; round++) {
        const four = { tool_calls: Array.from({ length: 4 }, () => stubborn.tool_calls[0] ?? {}) }
        const running = at.start(['agent', '-m', 'go', '--approve-all-medium'], scripted(at, [four, over]))
        await until(() => alive(at).length >= 4)
        const waiting = new Set(alive(at))
        const began = performance.now()
        writeFileSync(estopFile(at), 'stop\n')
        for (let tries = 0; tries < 2000 && waiting.size > 0; tries++) {
          for (const pid of waiting) {
            if (isDead(pid)) {
              waiting.delete(pid)
              times.push(performance.now() - began)
            }
          }
          await Bun.sleep(1)
        }
        expect([[...waiting], (await running.result).code]).toEqual([[], 10])
        rmSync(estopFile(at))
      }
      times.sort((a, b) => a - b)
      expect(times.length).toBeGreaterThanOrEqual(4 * rounds)
      const at99 = times[Math.ceil(times.length * 0.99) - 1] ?? 0
      if (process.env.BRAIDCLAW_TEST_FIGURES) console.log(`estop to dead: ${times.length} children, p99 ${at99.toFixed(0)} ms`)
    },
    120_000,
  )

  // They left the process group: only the PID namespace of the sandbox ends them.
  confined('children that left the group with setsid', async () => {
    using at = home()
    const escaping = call('shell', { command: 'setsid sleep 300 & setsid -f sleep 300; sleep 300' })
    const running = at.start(['agent', '-m', 'go', '--approve-all-medium'], scripted(at, [escaping, over]))
    await until(() => alive(at).length >= 3)
    await at.run(['estop'])
    expect((await running.result).code).toBe(10)
    await until(() => alive(at).length === 0)
    expect(alive(at)).toEqual([])
  })
})

/** Neither ends nor says anything, not even when it is aborted. */
const hanging: ModelCall = async function* () {
  await new Promise(() => {})
  yield { type: 'done' }
}

function isDead(pid: string): boolean {
  try {
    return /\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    return true
  }
}

confined('SIGTERM ends the turn: children are gone, receipts are written, and the exit says cancelled', async () => {
  using at = home()
  const running = at.start(['agent', '-m', 'go', '--approve-all-medium'], scripted(at, [stubborn, over]))
  await until(() => alive(at).length >= 1)
  process.kill(running.pid, 'SIGTERM')
  process.kill(running.pid, 'SIGTERM')
  const { code, stdout } = await running.result
  expect([code, stdout, alive(at)]).toEqual([130, '', []])
  const receipts = JSON.parse((await at.run(['receipt', 'list', '--json'])).stdout)
  expect(receipts).toMatchObject([{ tool: 'shell', status: 'failed' }])
  expect((await at.run(['receipt', 'verify', '--deep'])).code).toBe(0)
  const [run] = JSON.parse((await at.run(['run', 'list', '--json'])).stdout)
  expect(run).toMatchObject({ code: 'cancelled', message: 'cancelled by SIGTERM' })
})
