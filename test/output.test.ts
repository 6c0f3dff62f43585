/** What each command prints, for people and for programs, and where: the answer on stdout, everything else on stderr. */

import { describe, expect, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { version } from '../package.json'
import { executable, type Invocation, minimumConfig, type Nest, nest } from './support/cli.ts'

const everyTool = minimumConfig.replace(/tools_allow = .*\n/, '')
const call = (name: string, args: object) => ({ tool_calls: [{ name, arguments: args }] })
const alone = ['setsid', '-w']

function home(more = ''): Nest {
  const fresh = nest()
  fresh.config(`${everyTool}${more}`)
  return fresh
}

const turn = (at: Nest, responses: readonly object[], args: readonly string[] = [], invocation: Invocation = {}) =>
  at.run(['agent', '-m', 'go', ...args], { ...invocation, env: { BRAIDCLAW_MOCK_FIXTURE: at.fixture(responses), ...invocation.env } })

const json = async (at: Nest, ...args: string[]) => JSON.parse((await at.run(args)).stdout)

describe('agent', () => {
  const withTool = [call('file_read', { path: 'a.txt' }), { text: 'It says: {{last_tool_result}}', chunks: 4 }]

  test('text: the answer on stdout, what it did on stderr', async () => {
    using at = home()
    at.file('a.txt', 'hello')
    const { code, stdout, stderr } = await turn(at, withTool)
    expect(code).toBe(0)
    expect(stdout).toStartWith('It says: ')
    expect(stdout).toContain('hello')
    expect(stderr).toBe('· file_read {"path":"a.txt"}\n')
  })

  test.each([['--json'], ['--output-format=json']])('%s: one object, also over a refusal', async (flag) => {
    using at = home()
    at.file('a.txt', 'hello')
    const good = await turn(at, withTool, [flag])
    expect([good.code, good.stderr, good.stdout.trimEnd().split('\n').length]).toEqual([0, '', 1])
    expect(JSON.parse(good.stdout)).toMatchObject({
      ending: 'answered',
      stopReason: 'end_turn',
      exitCode: 0,
      runId: expect.stringMatching(/^run_/),
      conversationId: expect.stringMatching(/^conversation_/),
      tools: [{ name: 'file_read', status: 'completed' }],
      errors: [],
    })
    const bad = await turn(at, [call('file_read', { path: '/etc/passwd' }), { text: 'Done!' }], [flag])
    expect(bad.code).toBe(3)
    expect(JSON.parse(bad.stdout)).toMatchObject({ result: 'Done!', ending: 'denied', exitCode: 3, tools: [{ status: 'failed' }] })
    const broken = await turn(at, [{ error: 'auth' }], [flag])
    expect(JSON.parse(broken.stdout)).toMatchObject({ result: null, ending: 'provider', exitCode: 8, errors: [{ code: 'provider.auth' }] })
  })

  test('stream-json: one AgentEvent a line, as they come', async () => {
    using at = home()
    at.file('a.txt', 'hello')
    const { code, stdout } = await turn(at, withTool, ['--output-format', 'stream-json'])
    const events = stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(code).toBe(0)
    expect(events.map(({ type, isPartial }) => (isPartial ? 'partial' : type)).join(' ')).toMatch(
      /^init tool_use tool_result (partial )+text done$/,
    )
    const partial = events.filter(({ isPartial }) => isPartial).map(({ content }) => content)
    expect(partial.join('')).toBe(events.find(({ type, isPartial }) => type === 'text' && !isPartial).content)
    expect(events.at(-1)).toMatchObject({ type: 'done', stopReason: 'end_turn' })
  })

  test('-C works in another folder, --model asks another provider', async () => {
    using at = nest()
    at.config(`${everyTool}\n[providers.models.second]\nkind = "mock"\nmodel = "other"\n`)
    at.file('deep/inside.txt', 'x')
    const elsewhere = await at.run(['agent', '-C', 'deep', '-m', 'What files are in this project?'])
    expect(elsewhere.stdout).toContain('inside.txt')
    await turn(at, [{ text: 'hi' }], ['--model', 'second/special'])
    const [, answer] = await json(at, 'memory', 'show', 'last', '--json')
    expect(answer).toMatchObject({ provider: 'second', model: 'special' })
  })

  test('stdin is appended to -m, or is the message', async () => {
    using at = home()
    const echo = [{ text: '<{{last_user_message}}>' }]
    expect((await turn(at, echo, [], { stdin: 'line 1\nline 2\n' })).stdout).toBe('<go\n\nline 1\nline 2>\n')
    const env = { BRAIDCLAW_MOCK_FIXTURE: at.fixture(echo) }
    expect((await at.run(['agent'], { stdin: 'alone\n', env })).stdout).toBe('<alone>\n')
  })

  test('-c goes on with the latest conversation, --resume with any, and the model sees what was said', async () => {
    using at = nest()
    const bodies: string[] = []
    const server = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      async fetch(request) {
        bodies.push(await request.text())
        return Response.json({
          id: 'x',
          object: 'chat.completion',
          created: 1,
          model: 'm',
          choices: [{ index: 0, message: { role: 'assistant', content: `answer ${bodies.length}` }, finish_reason: 'stop' }],
          usage: { prompt_tokens: 1, completion_tokens: 1 },
        })
      },
    })
    at.config(
      `default_provider = "far"\n[providers.models.far]\nkind = "openai-compatible"\nbase_url = "http://127.0.0.1:${server.port}/v1"\nmodel = "m"\nstream = false\n`,
    )
    const say = (message: string, ...args: string[]) => at.run(['agent', '-m', message, '--json', ...args])
    const first = JSON.parse((await say('my name is Ada')).stdout)
    const second = JSON.parse((await say('something else')).stdout)
    const third = JSON.parse((await say('and now?', '--resume', first.conversationId)).stdout)
    const fourth = JSON.parse((await say('still there?', '-c')).stdout)
    await server.stop(true)
    expect(second.conversationId).not.toBe(first.conversationId)
    expect([third.conversationId, fourth.conversationId]).toEqual([first.conversationId, first.conversationId])
    const said = bodies.map((body) =>
      JSON.parse(body)
        .messages.map(({ content }: { content: string }) => content)
        .slice(1),
    )
    expect(said).toEqual([
      ['my name is Ada'],
      ['something else'],
      ['my name is Ada', 'answer 1', 'and now?'],
      ['my name is Ada', 'answer 1', 'and now?', 'answer 3', 'still there?'],
    ])
    const both = await say('x', '-c', '--resume', 'y')
    expect([both.code, both.stderr]).toEqual([2, 'error: --continue and --resume name two conversations; pass one\n'])
  })

  test('--approve-all-medium is off by default, and never opens what is high', async () => {
    using at = home()
    const writes = [call('file_write', { path: 'x.txt', content: 'x' }), { text: 'ok' }]
    expect((await turn(at, writes, [], { through: alone })).code).toBe(4)
    expect(existsSync(join(at.workspace, 'x.txt'))).toBe(false)
    expect((await turn(at, writes, ['--approve-all-medium'], { through: alone })).code).toBe(0)
    expect(existsSync(join(at.workspace, 'x.txt'))).toBe(true)
    const high = [call('shell', { command: 'python3 -c "print(1)"' }), { text: 'ok' }]
    expect((await turn(at, high, ['--approve-all-medium'], { through: alone })).code).toBe(3)
  })

  test('questions go to the terminal, wherever stdout and stderr go', async () => {
    using at = home()
    const through = ['script', '-qec', `'${executable}' agent -m go > out.txt 2> err.txt < /dev/null`, '/dev/null']
    const script = Bun.spawn(through, {
      cwd: at.workspace,
      env: { ...at.env, BRAIDCLAW_MOCK_FIXTURE: at.fixture([call('file_write', { path: 'x.txt', content: 'x' }), { text: 'ok' }]) },
      stdin: 'pipe',
      stdout: 'pipe',
      stderr: 'ignore',
    })
    let seen = ''
    for await (const piece of script.stdout) {
      seen += new TextDecoder().decode(piece)
      if (!seen.includes('[y/N/a]')) continue
      seen = ''
      script.stdin.write('y\n')
    }
    expect(await script.exited).toBe(0)
    expect(readFileSync(join(at.workspace, 'out.txt'), 'utf8')).toBe('ok\n')
    expect(readFileSync(join(at.workspace, 'err.txt'), 'utf8')).not.toContain('Approve?')
    expect(existsSync(join(at.workspace, 'x.txt'))).toBe(true)
  })
})

describe('config', () => {
  test('show prints valid TOML, with --origin who said it, with --json an object', async () => {
    using at = home('\n[limits]\nmax_tool_rounds = 7\n')
    const env = { BRAIDCLAW_AUTONOMY: 'readonly' }
    const { stdout } = await at.run(['config', 'show', '--origin'], { env })
    expect(stdout).toMatch(/max_tool_rounds = 7 +# user: .*config.toml:\d+/)
    expect(stdout).toMatch(/autonomy = "readonly" +# environment: BRAIDCLAW_AUTONOMY/)
    expect(stdout).toMatch(/max_parallel = \d+ +# default: built in/)
    expect(Bun.TOML.parse(stdout)).toMatchObject({ limits: { max_tool_rounds: 7 }, security: { autonomy: 'readonly' } })
    expect(await json(at, 'config', 'show', '--json')).toMatchObject({ limits: { max_tool_rounds: 7 } })
  })

  test('validate: fine, or every problem, also as JSON', async () => {
    using at = home()
    expect(await at.run(['config', 'validate'])).toEqual({
      code: 0,
      stdout: `${join(at.home, '.braidclaw/config.toml')} is valid\n`,
      stderr: '',
    })
    at.config('a = 1\nb = 2\n')
    const { code, stdout } = await at.run(['config', 'validate', '--json'])
    expect(code).toBe(1)
    expect(JSON.parse(stdout).problems).toHaveLength(2)
    expect((await at.run(['config', 'validate'])).stderr).toContain('2 problems found')
  })

  test('schema is a JSON Schema that knows the keys', async () => {
    using at = nest()
    const schema = await json(at, 'config', 'schema')
    expect(schema.$schema).toContain('json-schema.org')
    expect(Object.keys(schema.properties)).toContain('security')
  })
})

describe('tool', () => {
  test('list marks what is not active', async () => {
    using at = nest()
    at.config(minimumConfig)
    const { stdout } = await at.run(['tool', 'list'])
    expect(stdout).toMatch(/^ {2}file_read +low/m)
    expect(stdout).toMatch(/^- file_write +medium .*\(not in channels.cli.tools_allow\)$/m)
    const rows: { name: string; active: boolean; parameters: object }[] = await json(at, 'tool', 'list', '--json')
    expect(rows.filter(({ active }) => active).map(({ name }) => name)).toEqual([
      'time',
      'file_list',
      'file_read',
      'shell',
      'memory_search',
    ])
    expect((await at.run(['tool', 'run', 'file_write', '--json', '{"path":"x","content":"y"}'])).code).toBe(3)
  })

  test('run prints the output alone, reads arguments from stdin with "-", and leaves a receipt', async () => {
    using at = home()
    at.file('a.txt', 'hello\n')
    const { code, stdout, stderr } = await at.run(['tool', 'run', 'file_read', '--json', '{"path":"a.txt"}'])
    expect([code, stdout.trimEnd().endsWith('hello'), stderr]).toEqual([0, true, ''])
    const piped = await at.run(['tool', 'run', 'file_read', '--json', '-'], { stdin: '{"path":"a.txt"}' })
    expect(piped).toMatchObject({ code: 0, stdout })
    const allowed = await at.run(['tool', 'run', 'shell', '--json', '{"command":"echo one two"}', '--approve-all-medium'])
    expect(allowed).toMatchObject({ code: 0, stdout: 'one two\n' })
    expect(await json(at, 'receipt', 'list', '--json')).toMatchObject([
      { tool: 'file_read', status: 'allowed' },
      { tool: 'file_read', status: 'allowed' },
      { tool: 'shell', status: 'allowed', risk: 'medium' },
    ])
  })
})

describe('policy explain', () => {
  test.each([
    [['--', 'rm', '-rf', '/'], 'deny', 'high', 'command.forbidden'],
    [['--', 'git', 'status'], 'ask', 'medium', 'autonomy.medium_asks'],
    [['--autonomy', 'full', '--', 'git', 'status'], 'allow', 'medium', 'autonomy.full'],
    [['--', 'grep -r "rm -rf /" .'], 'ask', 'medium', 'autonomy.medium_asks'],
    [['--tool', 'file_read', '--json', '{"path":"/etc/passwd"}'], 'deny', 'high', 'path.outside_workspace'],
    [['--tool', 'file_read', '--json', '{"path":"a.txt"}'], 'allow', 'low', 'autonomy.low'],
    [['--tool', 'file_red', '--json', '{}'], 'deny', 'high', 'tool.unknown'],
  ])('%j', async (args, verdict, risk, rule) => {
    using at = home()
    const said = await at.run(['policy', 'explain', ...args])
    expect(said.code).toBe(0)
    expect(said.stdout).toMatch(new RegExp(`^verdict: +${verdict}\nrisk: +${risk}\nrule: +${rule}`))
    const machine = await at.run(['policy', 'explain', '--output', 'json', ...args])
    expect(JSON.parse(machine.stdout)).toMatchObject({ verdict, risk, rule, levels: { readonly: {}, supervised: {}, full: {} } })
  })

  test('runs nothing, keeps nothing', async () => {
    using at = home()
    await at.run(['policy', 'explain', '--autonomy', 'full', '--', 'touch made'])
    expect(existsSync(join(at.workspace, 'made'))).toBe(false)
    expect(readdirSync(join(at.home, '.braidclaw'))).toEqual(['config.toml'])
  })
})

test('provider list and test', async () => {
  using at = home()
  const { stdout } = await at.run(['provider', 'list'], { env: { OPENAI_API_KEY: 'sk-planted-secret-000111222' } })
  expect(stdout).toMatch(/^\* local +mock +mock$/m)
  expect(stdout).toMatch(/^ {2}openai_compatible +openai-compatible +local-model {2}OPENAI_API_KEY is set$/m)
  expect((await at.run(['provider', 'list'])).stdout).toContain('OPENAI_API_KEY is not set')
  const rows = await json(at, 'provider', 'list', '--json')
  expect(rows.find(({ name }: { name: string }) => name === 'local')).toMatchObject({ default: true, kind: 'mock' })
  const tested = await at.run(['provider', 'test', 'local'])
  expect(tested.code).toBe(0)
  expect(tested.stdout).toMatch(/^ok: local \(mock\) answered in \d+ ms: /)
})

test('memory list, search, show, export, clear', async () => {
  using at = home()
  await turn(at, [{ text: 'The aardvark answers.' }])
  await turn(at, [call('time', {}), { text: 'Late.' }])
  const list = await json(at, 'memory', 'list', '--json')
  expect(list).toHaveLength(2)
  expect((await at.run(['memory', 'list', '--limit', '1'])).stdout.trimEnd().split('\n')).toHaveLength(1)
  const [hit] = await json(at, 'memory', 'search', 'AARDVARK', '--json')
  expect(hit.conversationId).toBe(list[1].conversationId)
  const none = await at.run(['memory', 'search', 'zebra'])
  expect(none).toEqual({ code: 0, stdout: '', stderr: 'nothing found for "zebra"\n' })
  expect((await at.run(['memory', 'show', list[1].conversationId])).stdout).toContain('The aardvark answers.')
  expect((await at.run(['memory', 'show', 'last'])).stdout).toContain('Late.')
  expect((await at.run(['memory', 'show', 'nope'])).code).toBe(1)
  const lines = (await at.run(['memory', 'export'])).stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))
  expect(lines.filter(({ role }) => role === 'user')).toHaveLength(2)
  expect(Object.keys(lines[0])).toEqual([
    'conversation_id',
    'turn_id',
    'timestamp',
    'role',
    'content',
    'tool_calls',
    'tool_results',
    'provider',
    'model',
    'metadata',
  ])
  expect((await at.run(['memory', 'clear'])).code).toBe(2)
  expect((await at.run(['memory', 'clear', '--yes'])).stdout).toContain('forgot 2 conversations')
  expect(await at.run(['memory', 'list'])).toEqual({ code: 0, stdout: '', stderr: 'no conversations yet\n' })
  expect((await at.run(['receipt', 'verify'])).stdout).toContain('valid: 1 receipts')
})

test('receipt list, show, verify, anchor', async () => {
  using at = home()
  expect((await at.run(['receipt', 'list'])).stderr).toBe('no receipts yet\n')
  expect((await at.run(['receipt', 'anchor'])).code).toBe(1)
  await turn(at, [call('time', {}), call('file_read', { path: '/etc/passwd' }), { text: 'x' }])
  expect((await at.run(['receipt', 'list'])).stdout).toMatch(/^ +1 .*allowed +low +time .*\n +2 .*denied +high +file_read /)
  const second = await json(at, 'receipt', 'show', '2')
  expect(await json(at, 'receipt', 'show', second.id, '--json')).toEqual(second)
  expect(second).toMatchObject({ seq: 2, status: 'denied' })
  expect((await at.run(['receipt', 'show', '99'])).code).toBe(1)
  const line = (await at.run(['receipt', 'anchor'])).stdout
  expect(line).toMatch(/^bc1:\S+:2:\S+\n$/)
  const anchor = at.file('anchor', line)
  await turn(at, [call('time', {}), { text: 'x' }])
  expect((await at.run(['receipt', 'verify', '--deep', '--against', anchor])).stdout).toContain('valid: 3 receipts')
  expect(await json(at, 'receipt', 'verify', '--against', line.trim(), '--json')).toMatchObject({ ok: true, count: 3 })
  const log = join(at.home, '.braidclaw/tool_receipts.log')
  writeFileSync(log, readFileSync(log, 'utf8').split('\n')[0]?.concat('\n') ?? '')
  expect((await at.run(['receipt', 'verify', '--against', anchor])).code).toBe(9)
})

test('init, doctor, trust, estop', async () => {
  using at = nest()
  const init = await at.run(['init'], { env: { OPENAI_API_KEY: 'sk-planted-secret-000111222' } })
  expect(init.stdout).toContain('created')
  expect(init.stderr).toContain('provider test openai')
  expect(readFileSync(join(at.home, '.braidclaw/config.toml'), 'utf8')).not.toContain('planted')
  expect(statSync(join(at.home, '.braidclaw')).mode & 0o777).toBe(0o700)
  const doctor = await at.run(['doctor'], { env: { OPENAI_API_KEY: 'x' } })
  expect([doctor.code, doctor.stdout.includes('✗')]).toEqual([0, false])
  const missing = await at.run(['doctor'])
  expect([missing.code, /✗ provider \* +openai .*OPENAI_API_KEY is not set/.test(missing.stdout)]).toEqual([1, true])

  at.file('.braidclaw/config.toml', '[limits]\nmax_tool_rounds = 3\n')
  const rounds = async () => (await json(at, 'config', 'show', '--json')).limits.max_tool_rounds
  expect(await rounds()).toBe(5)
  expect((await at.run(['config', 'show'])).stderr).toContain('braidclaw trust')
  expect((await at.run(['trust'])).stdout).toContain(': trusted')
  expect(await rounds()).toBe(3)
  expect((await at.run(['trust', '--list'])).stdout).toBe(`${at.workspace}\n`)
  await at.run(['trust', '--remove'])
  expect(await rounds()).toBe(5)

  expect(await json(at, 'estop', '--reason', 'drill', '--json')).toMatchObject({ stopped: true, reason: 'drill' })
  expect((await at.run(['doctor'])).stdout).toContain('drill')
  expect((await at.run(['estop', '--clear'])).stdout).toContain('cleared')
  expect((await at.run(['estop', '--clear'])).stdout).toContain('nothing to clear')
})

describe('help', () => {
  const commands = [
    'agent', 'init', 'onboard', 'doctor', 'trust', 'estop', 'completion',
    'config show', 'config validate', 'config schema', 'provider list', 'provider test', 'tool list', 'tool run', 'policy explain',
    'memory list', 'memory search', 'memory show', 'memory clear', 'memory export',
    'receipt list', 'receipt show', 'receipt verify', 'receipt anchor',
  ] // biome-ignore format: a list to be read

  test.each(commands)('%s: an example with its meaning', async (command) => {
    using at = nest()
    const { code, stdout, stderr } = await at.run([...command.split(' '), '--help'])
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toMatch(new RegExp(`^USAGE\n  braidclaw ${command} ?.*\n    \\S`))
    expect((await at.run(['help', ...command.split(' ')])).stdout).toBe(stdout)
  })

  test('--version', async () => {
    using at = nest()
    expect(await at.run(['--version'])).toEqual({ code: 0, stdout: `${version}\n`, stderr: '' })
    expect(await at.run(['-v'])).toEqual({ code: 0, stdout: `${version}\n`, stderr: '' })
  })
})

describe('completion', () => {
  test('in a real bash: commands, sub-commands, flags, values and names', async () => {
    using at = home()
    symlinkSync(executable, join(at.dir, 'braidclaw'))
    const script = `source <(braidclaw completion bash)
      try() { COMP_LINE="$*"; COMP_POINT=\${#COMP_LINE}; COMP_WORDS=($COMP_LINE); [[ $COMP_LINE == *" " ]] && COMP_WORDS+=("")
        COMP_CWORD=$((\${#COMP_WORDS[@]}-1)); COMPREPLY=(); _braidclaw; echo "\${COMPREPLY[*]}"; }
      complete -p braidclaw
      try "braidclaw me"; try "braidclaw memory s"; try "braidclaw agent --out"; try "braidclaw agent --output-format j"
      try "braidclaw provider test op"; try "braidclaw tool run file_w"; try "braidclaw completion z"; try "braidclaw nonsense "`
    const env = { ...at.env, PATH: `${at.dir}:${at.env.PATH}` }
    const bash = Bun.spawn(['bash', '--norc', '-c', script], { cwd: at.workspace, env, stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' })
    const [stdout, stderr] = await Promise.all([bash.stdout.text(), bash.stderr.text()])
    expect(stderr).toBe('')
    expect(stdout.split('\n').map((line) => line.trim())).toEqual([
      'complete -o default -F _braidclaw braidclaw',
      'memory',
      'search show',
      '--output-format',
      'json',
      'openai_compatible',
      'file_write',
      'zsh',
      '',
      '',
    ])
  })

  test.each(['zsh', 'fish'])('%s gets a script of its own that asks us, with meanings', async (shell) => {
    using at = nest()
    const { code, stdout } = await at.run(['completion', shell])
    expect([code, stdout.includes(`braidclaw __complete ${shell}`)]).toEqual([0, true])
    const asked = await at.run(['__complete', shell, 'mem'])
    expect(asked.stdout).toMatch(/^memory[:\t]List, search/)
    const found = Bun.which(shell)
    if (found) expect(Bun.spawnSync([found, '-n', '-c', stdout]).exitCode).toBe(0)
  })
})

describe('the log', () => {
  test('BRAIDCLAW_LOG=json: every event by its name, every line of stderr JSON', async () => {
    using at = home()
    const env = { BRAIDCLAW_LOG: 'json' }
    const runs = [
      await turn(at, [call('time', {}), { text: 'ok' }], [], { env }),
      await turn(at, [call('file_read', { path: '/etc/passwd' }), { text: 'ok' }], [], { env }),
      await turn(at, [call('file_read', { path: 'missing' }), { text: 'ok' }], [], { env }),
      await turn(at, [{ error: 'auth' }], [], { env }),
      await at.run(['agent', '--resume', 'nope', '-m', 'x'], { env }),
      await at.run(['estop'], { env }),
      await at.run(['estop', '--clear'], { env }),
    ]
    const screen = await at.terminal(['agent', '-m', 'go'], [['[y/N', 'y\r']], {
      env: { ...env, BRAIDCLAW_MOCK_FIXTURE: at.fixture([call('file_write', { path: 'x', content: 'x' }), { text: 'ok' }]) },
    })
    const lines = runs
      .flatMap(({ stderr }) => stderr.trimEnd().split('\n'))
      .filter(Boolean)
      .map((line) => JSON.parse(line))
    for (const { ts, level, event } of lines) expect([typeof ts, typeof level, typeof event]).toEqual(['string', 'string', 'string'])
    const events = new Set(lines.map(({ event }) => event))
    for (const name of [
      'startup',
      'config path',
      'workspace path',
      'provider selected',
      'channel started',
      'conversation started',
      'tool requested',
      'tool denied',
      'tool completed',
      'tool failed',
      'receipt written',
      'memory persisted',
      'estop triggered',
    ])
      expect(events).toContain(name)
    expect(screen.stdout).toContain('"event":"tool approved"')
  })

  test('for people: quiet by default, wordy on demand, silent on demand', async () => {
    using at = home()
    expect((await turn(at, [{ text: 'ok' }])).stderr).toBe('')
    expect((await turn(at, [{ text: 'ok' }], [], { env: { BRAIDCLAW_LOG: 'info' } })).stderr).toContain(
      'info: conversation started conversation=',
    )
    at.config('[log]\nlevel = "info"\n')
    expect((await turn(at, [{ text: 'ok' }])).stderr).toContain('info: startup')
    expect((await turn(at, [{ text: 'ok' }], [], { env: { BRAIDCLAW_LOG: 'off' } })).stderr).toBe('')
  })
})

test('secrets are in no stream and no file, in none of four spellings', async () => {
  const secret = 'sk-plan"ted/secret+0123 456789&äö\\'
  const spellings = [secret, JSON.stringify(secret).slice(1, -1), encodeURIComponent(secret), Buffer.from(secret).toString('base64')]
  using at = home()
  const env = { OPENAI_API_KEY: secret }
  at.file('leak.txt', `raw ${spellings.join(' and ')} end`)
  const streams: string[] = []
  const note = ({ stdout, stderr }: { stdout: string; stderr: string }) => void streams.push(stdout, stderr)
  const everything = { text: `I say ${secret} and {{last_tool_result}}`, chunks: 40 }
  for (const args of [['--json'], ['--output-format', 'stream-json'], []]) {
    note(await turn(at, [call('file_read', { path: 'leak.txt' }), everything], args, { env, stdin: `here: ${secret}` }))
    note(await turn(at, [call('time', { [secret]: secret }), everything], args, { env: { ...env, BRAIDCLAW_LOG: 'json:debug' } }))
    note(await turn(at, [call('shell', { command: `echo '${secret}'; env` }), everything], [...args, '--approve-all-medium'], { env }))
  }
  for (const args of [
    ['config', 'show', '--origin'],
    ['memory', 'export'],
    ['memory', 'search', 'raw'],
    ['memory', 'show', 'last'],
    ['receipt', 'list', '--json'],
    ['provider', 'list'],
    ['doctor'],
    ['init'],
    ['tool', 'run', 'file_read', '--json', '{"path":"leak.txt"}'],
    ['provider', 'test', secret],
    ['agent', '--resume', secret, '-m', 'x'],
    ['estop', '--reason', secret],
  ])
    note(await at.run(args, { env }))
  const files = [...new Bun.Glob('**/*').scanSync({ cwd: join(at.home, '.braidclaw'), dot: true, absolute: true })]
  expect(files.length).toBeGreaterThan(4)
  for (const [index, spelling] of spellings.entries()) {
    expect([index, streams.filter((text) => text.includes(spelling))]).toEqual([index, []])
    expect([index, files.filter((file) => readFileSync(file).includes(spelling))]).toEqual([index, []])
  }
  expect(streams.join('')).toContain('OPENAI_API_KEY')
})
