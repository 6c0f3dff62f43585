/** Every exit code that --help promises, through the real executable, with nobody at stdin and under five seconds. */

import { describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { exitCodeHelp } from '../src/cli/exit.ts'
import { type Invocation, minimumConfig, type Nest, nest } from './support/cli.ts'

const limit = { timeoutMs: 5000 }
const closedStdin = ['sh', '-c', 'exec "$@" <&-', 'sh']
const everyTool = minimumConfig.replace(/tools_allow = .*\n/, '')

/** A home with the seed's configuration and these lines added at the end. */
function home(more = ''): Nest {
  const fresh = nest()
  fresh.config(`${everyTool}${more}`)
  return fresh
}

const fixed = (at: Nest, responses: readonly object[]) => ({ env: { BRAIDCLAW_MOCK_FIXTURE: at.fixture(responses) } })

const turn = (at: Nest, responses: readonly object[], args: readonly string[] = [], invocation: Invocation = {}) =>
  at.run(['agent', '-m', 'go', ...args], { ...limit, ...fixed(at, responses), ...invocation })

const call = (name: string, args: object) => ({ tool_calls: [{ name, arguments: args }] })
const answer = { text: 'The answer is: {{last_tool_result}}' }
const receiptLog = (at: Nest) => join(at.home, '.braidclaw/tool_receipts.log')

/** The second receipt says another tool than it did. */
function tamper(at: Nest): void {
  const lines = readFileSync(receiptLog(at), 'utf8').split('\n')
  writeFileSync(receiptLog(at), lines.map((line, index) => (index === 1 ? line.replace('"time"', '"shell"') : line)).join('\n'))
}

async function threeReceipts(at: Nest): Promise<void> {
  await turn(at, [call('time', {}), call('time', {}), call('time', {}), { text: 'done' }])
}

describe('0: answered', () => {
  test('the answer alone is on stdout', async () => {
    using at = home()
    expect(await turn(at, [{ text: 'hello' }])).toEqual({ code: 0, stdout: 'hello\n', stderr: '' })
  })

  test('also with stdin, stdin and stderr closed rather than empty', async () => {
    using at = home()
    expect(await turn(at, [{ text: 'hello' }], [], { through: closedStdin })).toEqual({ code: 0, stdout: 'hello\n', stderr: '' })
    const closed = { through: ['sh', '-c', 'exec "$@" <&- 2>&-', 'sh'] }
    expect(await turn(at, [call('file_list', { path: '.' }), { text: 'hello' }], [], closed)).toMatchObject({ code: 0, stdout: 'hello\n' })
  })

  test('a refusal that a later allowed call makes good is no failure', async () => {
    using at = home()
    at.file('a.txt', 'here')
    const { code } = await turn(at, [call('file_read', { path: '/etc/passwd' }), call('file_read', { path: 'a.txt' }), answer])
    expect(code).toBe(0)
  })
})

describe('1: error', () => {
  test('a broken configuration, whatever the command', async () => {
    using at = nest()
    at.config('workspace_dir = ')
    for (const args of [['agent', '-m', 'x'], ['config', 'validate'], ['memory', 'list'], ['tool', 'list'], ['doctor']]) {
      const { code, stdout, stderr } = await at.run(args, limit)
      expect([code, stdout]).toEqual([1, ''])
      expect(stderr).toContain('config.toml:1')
    }
  })

  test('a conversation that is not there', async () => {
    using at = home()
    const { code, stderr } = await turn(at, [{ text: 'x' }], ['--resume', 'conversation-nope'])
    expect(code).toBe(1)
    expect(stderr).toContain('no conversation "conversation-nope"; see: braidclaw memory list')
    expect((await turn(at, [{ text: 'x' }], ['--continue'])).stderr).toContain('there is no conversation yet')
  })

  test('a tool that fails under "tool run"', async () => {
    using at = home()
    const { code, stdout, stderr } = await at.run(['tool', 'run', 'file_read', '--json', '{"path":"missing.txt"}'], limit)
    expect([code, stdout]).toEqual([1, ''])
    expect(stderr).toContain('missing.txt')
  })
})

describe('2: usage', () => {
  test.each([
    [['agnet', '-m', 'x'], 'did you mean "agent"'],
    [['tool', 'rnu', 'x'], 'did you mean "run"'],
    [['agent', '--mesage', 'x'], 'did you mean --message'],
    [['agent', '--max-turns', 'many'], '"many" is not a whole number'],
    [['agent', '--autonomy', 'godmode', '-m', 'x'], 'readonly|supervised|full'],
    [['agent', 'what', 'time', 'is', 'it'], 'braidclaw agent -m "what time is it"'],
    [['what'], 'braidclaw agent -m "what"'],
    [['--verison'], 'no flag "--verison"'],
    [['agent'], 'nothing to answer'],
    [['tool', 'run', 'time', '--json', '[1]'], '--json must be one JSON object'],
    [['memory', 'clear'], '--yes'],
    [['provider', 'test', 'nobody'], 'there are: '],
    [['completion', 'powershell'], 'bash, zsh, fish'],
    [['onboard'], 'needs a terminal'],
    [['policy', 'explain'], 'nothing to explain'],
    [['receipt', 'verify', '--against', 'rubbish'], 'is no anchor line'],
  ])('%j', async (args, says) => {
    using at = home()
    const { code, stdout, stderr } = await at.run(args, limit)
    expect([code, stdout]).toEqual([2, ''])
    expect(stderr).toStartWith('error: ')
    expect(stderr).toContain(says)
  })

  test('no words at all: the help', async () => {
    using at = nest()
    const { code, stdout } = await at.run([], limit)
    expect(code).toBe(2)
    expect(stdout).toContain('COMMANDS')
  })
})

describe('3: denied', () => {
  test.each([
    ['a path outside', call('file_read', { path: '/etc/passwd' })],
    ['a forbidden command', call('shell', { command: 'rm -rf /' })],
    ['a command of high risk', call('shell', { command: 'python3 -c 1' })],
    ['a private address', call('http', { url: 'http://169.254.169.254/latest/meta-data' })],
    ['our own home', call('file_read', { path: '~/.braidclaw/receipt.key' })],
    ['a tool that is not there', call('launch_missiles', {})],
  ])('%s: the answer over a refusal is shown, and is no success', async (_, wanted) => {
    using at = home()
    const { code, stdout, stderr } = await turn(at, [wanted, { text: 'All done!' }])
    expect([code, stdout]).toEqual([3, 'All done!\n'])
    expect(stderr).toContain('denied: ')
    expect(readFileSync(receiptLog(at), 'utf8')).toContain('"status":"denied"')
  })

  test('tool run', async () => {
    using at = home()
    const { code, stdout, stderr } = await at.run(['tool', 'run', 'shell', '--json', '{"command":"rm -rf /"}'], limit)
    expect([code, stdout]).toEqual([3, ''])
    expect(stderr).toContain('command.forbidden')
  })

  test('readonly autonomy', async () => {
    using at = home()
    const { code } = await turn(at, [call('file_write', { path: 'x', content: 'x' }), answer], ['--autonomy', 'readonly'])
    expect([code, existsSync(join(at.workspace, 'x'))]).toEqual([3, false])
  })
})

describe('4: approval needed, nobody to ask', () => {
  test('a turn, at once and with nothing written', async () => {
    using at = home()
    const { code, stderr } = await turn(at, [call('file_write', { path: 'x', content: 'x' }), answer], [], { through: ['setsid', '-w'] })
    expect([code, existsSync(join(at.workspace, 'x'))]).toEqual([4, false])
    expect(stderr).toContain('--approve-all-medium')
  })

  test('stdin that carries data cannot say yes', async () => {
    using at = home()
    const through = ['setsid', '-w']
    const { code } = await turn(at, [call('file_write', { path: 'x', content: 'x' }), answer], [], { stdin: 'y\ny\n', through })
    expect([code, existsSync(join(at.workspace, 'x'))]).toEqual([4, false])
  })

  test('tool run', async () => {
    using at = home()
    const args = ['tool', 'run', 'file_write', '--json', '{"path":"x","content":"y"}']
    expect((await at.run(args, { ...limit, through: ['setsid', '-w'] })).code).toBe(4)
    expect(existsSync(join(at.workspace, 'x'))).toBe(false)
  })
})

describe('5: limit', () => {
  test('a model that never stops calling is stopped', async () => {
    using at = home()
    const { code, stdout, stderr } = await turn(at, [call('time', {})])
    expect([code, stdout]).toEqual([5, ''])
    expect(stderr).toContain('--max-turns')
    expect(readFileSync(receiptLog(at), 'utf8').trimEnd().split('\n')).toHaveLength(6)
  })

  test('--max-turns sets how soon', async () => {
    using at = home()
    expect((await turn(at, [call('time', {}), call('time', {}), { text: 'ok' }], ['--max-turns', '1'])).code).toBe(5)
    expect((await turn(at, [call('time', {}), { text: 'ok' }], ['--max-turns', '1'])).code).toBe(0)
  })
})

describe('6: budget', () => {
  test('tokens', async () => {
    using at = home('\n[limits]\nmax_run_tokens = 100\n')
    const { code, stderr } = await turn(at, [{ ...call('time', {}), usage: { input_tokens: 90, output_tokens: 5 } }, answer])
    expect(code).toBe(6)
    expect(stderr).toContain('limits.max_run_tokens (100)')
  })

  test('money', async () => {
    using at = nest()
    at.config(
      `${everyTool.replace('kind = "mock"\n', 'kind = "mock"\nprice_input = 1000\nprice_output = 1000\n')}\n[limits]\nmax_run_usd = 0.05\n`,
    )
    const { code, stderr } = await turn(at, [{ ...call('time', {}), usage: { input_tokens: 40, output_tokens: 5 } }, answer])
    expect(code).toBe(6)
    expect(stderr).toContain('limits.max_run_usd')
  })
})

describe('7: timeout', () => {
  test('the model', async () => {
    using at = home()
    expect((await turn(at, [{ error: 'timeout' }])).code).toBe(7)
  })

  test('the run', async () => {
    using at = home('\n[limits]\nmax_run_seconds = 0.2\n')
    const { code, stderr } = await turn(at, [{ text: 'late', delay_ms: 60_000 }])
    expect(code).toBe(7)
    expect(stderr).toContain('limits.max_run_seconds (0.2 s)')
  })

  test('one model call', async () => {
    using at = nest()
    at.config(everyTool.replace('kind = "mock"\n', 'kind = "mock"\ntotal_timeout_s = 0.2\n'))
    expect((await turn(at, [{ text: 'late', delay_ms: 60_000 }])).code).toBe(7)
  })
})

describe('8: provider', () => {
  test.each(['auth', 'network', 'server', 'bad_response', 'rate_limit', 'context_length'])('%s', async (error) => {
    using at = home()
    const { code, stdout, stderr } = await turn(at, [{ error }])
    expect([code, stdout]).toEqual([8, ''])
    expect(stderr).toContain(error)
  })

  test('provider test', async () => {
    using at = home()
    const { code, stderr } = await at.run(['provider', 'test', 'local'], { ...limit, ...fixed(at, [{ error: 'auth' }]) })
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
    const { code, stdout, stderr } = await turn(at, [call('time', {}), answer])
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
    const { code, stderr } = await turn(at, [{ text: 'x' }])
    expect(code).toBe(9)
    expect(stderr).toContain('memory.sqlite')
  })
})

describe('10: stopped', () => {
  test('a tool call under estop; a text answer is still allowed', async () => {
    using at = home()
    await at.run(['estop', '--reason', 'fire drill'], limit)
    const stopped = await turn(at, [call('time', {}), { text: 'Tools are stopped.' }])
    expect([stopped.code, stopped.stdout]).toEqual([10, 'Tools are stopped.\n'])
    expect(stopped.stderr).toContain('braidclaw estop --clear')
    expect((await turn(at, [{ text: 'just words' }])).code).toBe(0)
    expect((await at.run(['tool', 'run', 'time', '--json', '{}'], limit)).code).toBe(10)
    await at.run(['estop', '--clear'], limit)
    expect((await turn(at, [call('time', {}), answer])).code).toBe(0)
  })

  test('set while a command runs: the command is ended', async () => {
    using at = home()
    const invocation = { ...limit, ...fixed(at, [call('shell', { command: 'sleep 60' }), { text: 'never' }]) }
    const running = at.start(['agent', '-m', 'go', '--approve-all-medium'], invocation)
    await running.says('shell')
    await at.run(['estop'], limit)
    expect((await running.result).code).toBe(10)
    expect(readFileSync(receiptLog(at), 'utf8')).toContain('"status":"failed"')
  })

  test('an ESTOP that cannot be read counts as one', async () => {
    using at = home()
    mkdirSync(join(at.home, '.braidclaw/ESTOP'), { recursive: true })
    expect((await turn(at, [call('time', {}), answer])).code).toBe(10)
  })
})

describe('130: cancelled', () => {
  test.each(['SIGINT', 'SIGTERM'] as const)('%s while the model thinks', async (signal) => {
    using at = home()
    const invocation = { ...limit, ...fixed(at, [call('time', {}), { text: 'late', delay_ms: 60_000 }]) }
    const running = at.start(['agent', '-m', 'go'], invocation)
    await running.says('time')
    process.kill(running.pid, signal)
    expect(await running.result).toMatchObject({ code: 130, stdout: '' })
    expect((await at.run(['memory', 'show', 'last'], limit)).stdout).toContain('go')
  })

  test('while a command runs: the whole group ends and the receipt says so', async () => {
    using at = home()
    const command = 'sleep 61 & sleep 62'
    const running = at.start(['agent', '-m', 'go', '--approve-all-medium'], {
      ...limit,
      ...fixed(at, [call('shell', { command }), answer]),
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

test('--help lists every code that is tested here', async () => {
  using at = nest()
  const { code, stdout } = await at.run(['--help'], limit)
  expect(code).toBe(0)
  for (const [number, meaning] of exitCodeHelp) expect(stdout).toContain(`${number}  ${meaning}`)
  expect(exitCodeHelp.map(([number]) => number)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 130])
})

/** Those that work in this workspace, by their folder. */
function processes(at: Nest): string[] {
  return [...new Bun.Glob('[0-9]*').scanSync({ cwd: '/proc', onlyFiles: false })].filter((pid) => {
    try {
      return readFileSync(`/proc/${pid}/environ`, 'utf8').includes(`HOME=${at.workspace}\0`)
    } catch {
      return false
    }
  })
}

async function until(holds: () => boolean): Promise<void> {
  for (let tries = 0; tries < 200 && !holds(); tries++) await Bun.sleep(10)
}
