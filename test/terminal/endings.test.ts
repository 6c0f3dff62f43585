import { describe, expect, test } from 'bun:test'
import { mkdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Nest, nest } from '../support/cli.ts'
import { needs } from '../support/needs.ts'
import { call, everyTool, home, scripted, turn } from '../support/turns.ts'
import { until } from '../support/until.ts'

const limit = { timeoutMs: 5000 }
const answer = { text: 'The answer is: {{last_tool_result}}' }
const receiptLog = (at: Nest) => join(at.home, '.braidclaw/tool_receipts.log')

/** With nobody at stdin, under five seconds. */
const go: typeof turn = (at, responses, args, invocation) => turn(at, responses, args, { ...limit, ...invocation })

/** The second receipt says another tool than it did. */
function tamper(at: Nest): void {
  const lines = readFileSync(receiptLog(at), 'utf8').split('\n')
  writeFileSync(receiptLog(at), lines.map((line, index) => (index === 1 ? line.replace('"time"', '"shell"') : line)).join('\n'))
}

async function threeReceipts(at: Nest): Promise<void> {
  await go(at, [call('time', {}), call('time', {}), call('time', {}), { text: 'done' }])
}

describe('5: limit', () => {
  test('a model that never stops calling is stopped', async () => {
    using at = home()
    const { code, stdout, stderr } = await go(at, [call('time', {})], ['--max-turns', '5'])
    expect([code, stdout]).toEqual([5, ''])
    expect(stderr).toContain('--max-turns')
    expect(readFileSync(receiptLog(at), 'utf8').trimEnd().split('\n')).toHaveLength(6)
  })

  test('--max-turns sets how soon', async () => {
    using at = home()
    expect((await go(at, [call('time', {}), call('time', {}), { text: 'ok' }], ['--max-turns', '1'])).code).toBe(5)
    expect((await go(at, [call('time', {}), { text: 'ok' }], ['--max-turns', '1'])).code).toBe(0)
  })
})

describe('6: budget', () => {
  test('tokens', async () => {
    using at = home('\n[limits]\nmax_run_tokens = 100\n')
    const { code, stderr } = await go(at, [{ ...call('time', {}), usage: { input_tokens: 90, output_tokens: 5 } }, answer])
    expect(code).toBe(6)
    expect(stderr).toContain('limits.max_run_tokens (100 tokens)')
  })

  test('money', async () => {
    using at = nest()
    at.config(
      `${everyTool.replace('kind = "mock"\n', 'kind = "mock"\nprice_input = 1000\nprice_output = 1000\n')}\n[limits]\nmax_run_usd = 0.05\n`,
    )
    const { code, stderr } = await go(at, [{ ...call('time', {}), usage: { input_tokens: 40, output_tokens: 5 } }, answer])
    expect(code).toBe(6)
    expect(stderr).toContain('limits.max_run_usd')
  })
})

describe('7: timeout', () => {
  test('the model', async () => {
    using at = home()
    expect((await go(at, [{ error: 'timeout' }])).code).toBe(7)
  })

  test('the run', async () => {
    using at = home('\n[limits]\nmax_run_seconds = 0.2\n')
    const { code, stderr } = await go(at, [{ text: 'late', delay_ms: 60_000 }])
    expect(code).toBe(7)
    expect(stderr).toContain('limits.max_run_seconds (0.2 s)')
  })

  test('one model call', async () => {
    using at = nest()
    at.config(everyTool.replace('kind = "mock"\n', 'kind = "mock"\ntotal_timeout_s = 0.2\n'))
    expect((await go(at, [{ text: 'late', delay_ms: 60_000 }])).code).toBe(7)
  })
})

describe('8: provider', () => {
  test.each(['auth', 'network', 'server', 'bad_response', 'rate_limit', 'context_length'])('%s', async (error) => {
    using at = home()
    const { code, stdout, stderr } = await go(at, [{ error }])
    expect([code, stdout]).toEqual([8, ''])
    expect(stderr).toContain(error)
  })

  test('provider test', async () => {
    using at = home()
    const { code, stderr } = await at.run(['provider', 'test', 'local'], { ...limit, ...scripted(at, [{ error: 'auth' }]) })
    expect(code).toBe(8)
    expect(stderr).toContain('auth')
  })

  test('a fixture that is not there', async () => {
    using at = home()
    const { code, stderr } = await at.run(['agent', '-m', 'x'], { ...limit, env: { BRAIDCLAW_MOCK_FIXTURE: '/nowhere.json' } })
    expect(code).toBe(8)
    expect(stderr).toContain('/nowhere.json')
  })
})

describe('9: integrity', () => {
  test('receipt verify names the receipt', async () => {
    using at = home()
    await threeReceipts(at)
    expect((await at.run(['receipt', 'verify'], limit)).code).toBe(0)
    tamper(at)
    const { code, stdout } = await at.run(['receipt', 'verify'], limit)
    expect(code).toBe(9)
    expect(stdout).toContain('invalid chain at receipt 2')
  })

  test('an agent does not go on over receipts that were cut', async () => {
    using at = home()
    await threeReceipts(at)
    writeFileSync(receiptLog(at), readFileSync(receiptLog(at), 'utf8').split('\n').slice(0, 2).join('\n').concat('\n'))
    const { code, stdout, stderr } = await go(at, [call('time', {}), answer])
    expect([code, stdout]).toEqual([9, ''])
    expect(stderr).toContain('receipt')
    expect((await at.run(['receipt', 'anchor'], limit)).code).toBe(9)
  })

  test('a database that is none', async () => {
    using at = home()
    writeFileSync(
      join(at.home, '.braidclaw/memory.sqlite'),
      'not a database, not at all, but long enough to be read as a header'.repeat(20),
    )
    const { code, stderr } = await go(at, [{ text: 'x' }])
    expect(code).toBe(9)
    expect(stderr).toContain('memory.sqlite')
  })
})

describe('10: stopped', () => {
  test('a tool call under estop; a text answer is still allowed', async () => {
    using at = home()
    await at.run(['estop', '--reason', 'fire drill'], limit)
    const stopped = await go(at, [call('time', {}), { text: 'Tools are stopped.' }])
    expect([stopped.code, stopped.stdout]).toEqual([10, 'Tools are stopped.\n'])
    expect(stopped.stderr).toContain('braidclaw estop --clear')
    expect((await go(at, [{ text: 'just words' }])).code).toBe(0)
    expect((await at.run(['tool', 'run', 'time', '--json', '{}'], limit)).code).toBe(10)
    await at.run(['estop', '--clear'], limit)
    expect((await go(at, [call('time', {}), answer])).code).toBe(0)
  })

  test.if(needs('bwrap'))('set while a command runs: the command is ended', async () => {
    using at = home()
    const invocation = { ...limit, ...scripted(at, [call('shell', { command: 'sleep 60' }), { text: 'never' }]) }
    const running = at.start(['agent', '-m', 'go', '--approve-all-medium'], invocation)
    await running.says('shell')
    await at.run(['estop'], limit)
    expect((await running.result).code).toBe(10)
    expect(readFileSync(receiptLog(at), 'utf8')).toContain('"status":"failed"')
  })

  test('an ESTOP that cannot be read counts as one', async () => {
    using at = home()
    mkdirSync(join(at.home, '.braidclaw/ESTOP'), { recursive: true })
    expect((await go(at, [call('time', {}), answer])).code).toBe(10)
  })
})

describe('130: cancelled', () => {
  test.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)('%s while the model thinks', async (signal) => {
    using at = home()
    const invocation = { ...limit, ...scripted(at, [call('time', {}), { text: 'late', delay_ms: 60_000 }]) }
    const running = at.start(['agent', '-m', 'go'], invocation)
    await running.says('time')
    process.kill(running.pid, signal)
    expect(await running.result).toMatchObject({ code: 130, stdout: '' })
    expect((await at.run(['memory', 'show', 'last'], limit)).stdout).toContain('go')
  })

  test('a hang-up that is ignored for us (nohup) changes nothing', async () => {
    using at = home()
    const through = ['sh', '-c', 'trap "" HUP; exec "$@"', 'sh']
    const invocation = { ...limit, through, ...scripted(at, [call('time', {}), { text: 'late', delay_ms: 300 }]) }
    const running = at.start(['agent', '-m', 'go'], invocation)
    await running.says('time')
    process.kill(running.pid, 'SIGHUP')
    expect(await running.result).toMatchObject({ code: 0, stdout: 'late\n' })
  })

  test.if(needs('bwrap'))('while a command runs: the whole group ends and the receipt says so', async () => {
    using at = home()
    const command = 'sleep 61 & sleep 62'
    const running = at.start(['agent', '-m', 'go', '--approve-all-medium'], {
      ...limit,
      ...scripted(at, [call('shell', { command }), answer]),
    })
    await running.says('shell')
    await until(() => processes(at).length >= 2)
    process.kill(running.pid, 'SIGINT')
    expect((await running.result).code).toBe(130)
    expect(processes(at)).toEqual([])
    expect(readFileSync(receiptLog(at), 'utf8')).toContain('"status":"failed"')
    expect((await at.run(['receipt', 'verify', '--deep'], limit)).code).toBe(0)
  })
})

/** Those that work in this workspace, by their folder. */
function processes(at: Nest): string[] {
  return [...new Bun.Glob('[0-9]*').scanSync({ cwd: '/proc', onlyFiles: false })].filter((pid) => {
    try {
      return readlinkSync(`/proc/${pid}/cwd`) === at.workspace && readFileSync(`/proc/${pid}/comm`, 'utf8') === 'sleep\n'
    } catch {
      return false
    }
  })
}
