import { describe, expect, test } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { exitCodeHelp } from '../../src/cli/exit.ts'
import { type Nest, nest } from '../support/cli.ts'
import { isDeep } from '../support/tier.ts'
import { asksFirst, call, home, turn } from '../support/turns.ts'

const limit = { timeoutMs: 5000 }
const answer = { text: 'The answer is: {{last_tool_result}}' }
const receiptLog = (at: Nest) => join(at.home, '.braidclaw/tool_receipts.log')

/** With nobody at stdin, under five seconds. */
const go: typeof turn = (at, responses, args, invocation) => turn(at, responses, args, { ...limit, ...invocation })
const closedStdin = ['sh', '-c', 'exec "$@" <&-', 'sh']

describe('0: answered', () => {
  test('the answer alone is on stdout', async () => {
    using at = home()
    expect(await go(at, [{ text: 'hello' }])).toEqual({ code: 0, stdout: 'hello\n', stderr: '' })
  })

  test('also with stdin, stdin and stderr closed rather than empty', async () => {
    using at = home()
    expect(await go(at, [{ text: 'hello' }], [], { through: closedStdin })).toEqual({ code: 0, stdout: 'hello\n', stderr: '' })
    const closed = { through: ['sh', '-c', 'exec "$@" <&- 2>&-', 'sh'] }
    expect(await go(at, [call('file_list', { path: '.' }), { text: 'hello' }], [], closed)).toMatchObject({ code: 0, stdout: 'hello\n' })
  })

  test('a tool without arguments needs no --json', async () => {
    using at = home()
    const { code, stdout } = await at.run(['tool', 'run', 'time'], limit)
    expect([code, stdout]).toEqual([0, expect.stringContaining('timezone: ')])
  })

  test('a refusal that a later allowed call makes good is no failure', async () => {
    using at = home()
    at.file('a.txt', 'here')
    const { code } = await go(at, [call('file_read', { path: '/etc/passwd' }), call('file_read', { path: 'a.txt' }), answer])
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
    const { code, stderr } = await go(at, [{ text: 'x' }], ['--resume', 'conversation-nope'])
    expect(code).toBe(1)
    expect(stderr).toContain('no conversation "conversation-nope"; see: braidclaw memory list')
    expect((await go(at, [{ text: 'x' }], ['--continue'])).stderr).toContain('no conversation exists yet')
  })

  test('a tool that fails under "tool run"', async () => {
    using at = home()
    const { code, stdout, stderr } = await at.run(['tool', 'run', 'file_read', '--json', '{"path":"missing.txt"}'], limit)
    expect([code, stdout]).toEqual([1, ''])
    expect(stderr).toContain('missing.txt')
  })
})

describe('2: usage', () => {
  const wrong: [string[], string][] = [
    [['agnet', '-m', 'x'], 'did you mean "agent"'],
    [['tool', 'rnu', 'x'], 'did you mean "run"'],
    [['agent', '--mesage', 'x'], 'did you mean "--message"'],
    [['agent', '--max-turns', 'many'], '"many" is not a whole number'],
    [['agent', '--autonomy', 'godmode', '-m', 'x'], '--autonomy is one of readonly, supervised, full; got "godmode"'],
    [['agent', '--hlep'], 'did you mean "--help"'],
    [['agent', '-x'], 'no flag "-x"; here: a flag of the filter'],
    [['agent', '-p', 'one', 'two'], '"one" and "two" are two messages'],
    [['agent', 'list'], '"agent" has no command "list". To ask something: braidclaw agent -m list'],
    [['agent', '--yolo', '-m', 'x'], 'no flag "--yolo"; here: --autonomy full'],
    [['-V'], 'no flag "-V"; here: -v, or --version'],
    [['-i', 'a.png', 'what is it'], 'no flag "-i"; here: --image FILE'],
    [['--image', 'a.png', 'what is it'], 'image "a.png": "a.png" does not exist'],
    [['agent', '--image', 'a.png', '--wiggum', 'x'], '--image belongs to one message'],
    [['--no-color', 'hi'], 'no flag "--no-color"; here: NO_COLOR=1'],
    [['-f', 'x'], 'no flag "-f"; here: -a FILE'],
    [['--schema', 's.json', 'hi'], '--schema "s.json" looks like a file, and there is none'],
    [
      ['extension', 'install', 'x'],
      'no command "extension"; MCP servers: braidclaw mcp list (docs/mcp.md); plugins: braidclaw plugin list',
    ],
    [['agent', '--model'], '--model needs a value'],
    [['agent', '--max-turns', '0', '-m', 'x'], '--max-turns: limits.max_tool_rounds: 0 is out of range'],
    [['agent', 'what', 'time', 'is', 'it'], "braidclaw agent -m 'what time is it'"],
    [['agnet'], 'braidclaw agent -m agnet'],
    [['-m', 'what time is it'], "braidclaw 'what time is it'"],
    [['-s', 'be brief'], 'nothing to answer'],
    [['--verison'], 'no flag "--verison"'],
    [['agent'], 'nothing to answer'],
    [['tool', 'run', 'time', '--json', '[1]'], '--json must be one JSON object'],
    [['memory', 'clear'], '--yes'],
    [['provider', 'test', 'nobody'], 'there are: '],
    [['completion', 'powershell'], 'bash, zsh, fish'],
    [['onboard'], 'needs a terminal'],
    [['policy', 'explain'], 'nothing to explain'],
    [['policy', 'explain', 'rm', '-rf', '/'], 'behind --: braidclaw policy explain -- rm -rf /'],
    [['policy', 'explain', 'rm', '-rf', 'my $HOME'], "-- rm -rf 'my $HOME'\n"],
    [['agent', 'what', 'is', '`id`?'], "To ask something: braidclaw agent -m 'what is `id`?'\n"],
    [['provider', 'test'], '<name> is missing'],
    [['tool', 'run', '--json', '{}'], '<name> is missing'],
    [['receipt', 'verify', '--against', 'rubbish'], 'neither an anchor line'],
  ]

  test.each(isDeep ? wrong : wrong.filter((_, at) => at % 3 === 0))('%j', async (args, says) => {
    using at = home()
    const { code, stdout, stderr } = await at.run(args, limit)
    expect([code, stdout]).toEqual([2, ''])
    expect(stderr).toStartWith('error: ')
    expect(stderr).toContain(says)
  })

  test('no words at all: the help for a person, an error for a script', async () => {
    using at = nest()
    const { code, stdout } = await at.terminal([], [['Connect one now?', 'n\r']], limit)
    expect(code).toBe(2)
    expect(stdout).toContain('braidclaw help all')
    expect(await at.run([], limit)).toEqual({ code: 2, stdout: '', stderr: 'error: nothing to answer: give a message, or pipe text in\n' })
  })
})

describe('8: provider', () => {
  test.each([
    [['hi there'], { BRAIDCLAW_MODEL: 'gpt' }, 'set OPENAI_API_KEY'],
    [['-m', 'gpt', 'hi there'], { BRAIDCLAW_PROVIDER: 'local', ANTHROPIC_API_KEY: 'sk-ant-not-chosen-1' }, '-m anthropic/gpt'],
  ])('the offline helper does not answer for a model that was named: %j', async (args, env, says) => {
    using at = nest()
    const { code, stdout, stderr } = await at.run(args, { ...limit, env })
    expect([code, stdout]).toEqual([8, ''])
    expect(stderr).toStartWith('error: no provider is configured for the model "gpt"')
    expect(stderr).toContain(says)
  })

  test.each([
    [['-m', 'openai/gpt-5', 'hi there'], 'OPENAI_API_KEY'],
    [['agent', '--model', 'anthropic/claude-sonnet-5', '-m', 'hi there'], 'ANTHROPIC_API_KEY'],
    [['-m', 'openrouter/openrouter/auto', 'hi there'], 'OPENROUTER_API_KEY'],
    [['-m', 'openai', 'hi there'], 'OPENAI_API_KEY'],
  ])('without its key a known provider is not asked, and the variable is named: %j', async (args, variable) => {
    using at = nest()
    const { code, stdout, stderr } = await at.run(args, limit)
    expect([code, stdout]).toEqual([8, ''])
    expect(stderr).toStartWith('error: the provider "')
    expect(stderr).toContain(`${variable} is not set. Set it (export ${variable}=…)`)
  })

  test('by its own name it does', async () => {
    using at = nest()
    for (const name of ['local', 'mock', 'local/mock']) expect((await at.run(['-m', name, 'hi'], limit)).code).toBe(0)
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
    using at = home('', asksFirst)
    const { code, stdout, stderr } = await go(at, [wanted, { text: 'All done!' }])
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
    const { code } = await go(at, [call('file_write', { path: 'x', content: 'x' }), answer], ['--autonomy', 'readonly'])
    expect([code, existsSync(join(at.workspace, 'x'))]).toEqual([3, false])
  })
})

describe('4: approval needed, nobody to ask', () => {
  test('a turn, at once and with nothing written', async () => {
    using at = home()
    const { code, stderr } = await go(at, [call('file_write', { path: 'x', content: 'x' }), answer], [], { through: ['setsid', '-w'] })
    expect([code, existsSync(join(at.workspace, 'x'))]).toEqual([4, false])
    expect(stderr).toContain('--approve-all-medium')
  })

  test('stdin that carries data cannot say yes', async () => {
    using at = home()
    const through = ['setsid', '-w']
    const { code } = await go(at, [call('file_write', { path: 'x', content: 'x' }), answer], [], { stdin: 'y\ny\n', through })
    expect([code, existsSync(join(at.workspace, 'x'))]).toEqual([4, false])
  })

  test('tool run', async () => {
    using at = home()
    const args = ['tool', 'run', 'file_write', '--json', '{"path":"x","content":"y"}']
    expect((await at.run(args, { ...limit, through: ['setsid', '-w'] })).code).toBe(4)
    expect(existsSync(join(at.workspace, 'x'))).toBe(false)
  })
})

test('help all lists every code with its meaning', async () => {
  using at = nest()
  const { code, stdout } = await at.run(['help', 'all'], limit)
  expect(code).toBe(0)
  for (const [number, meaning] of exitCodeHelp) expect(stdout).toContain(`${number}  ${meaning}`)
  expect(exitCodeHelp.map(([number]) => number)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 130])
})
