import { afterAll, describe, expect, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { executable, minimumConfig, type Nest, nest } from '../support/cli.ts'
import { needs } from '../support/needs.ts'
import { asReplayed } from '../support/replayed.ts'
import { isDeep } from '../support/tier.ts'
import { alone, asksFirst, call, everyTool, home, refused, turn } from '../support/turns.ts'
import { unknownQuestion } from '../support/window-questions.ts'

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

  test('--show-output prints what a tool returned below its line, and the answer alone stays on stdout', async () => {
    using at = home()
    at.file('a.txt', 'hello')
    const { stdout, stderr } = await turn(at, withTool, ['--show-output'])
    expect(stdout).toStartWith('It says: ')
    expect(stderr).toStartWith('· file_read {"path":"a.txt"}\nhello')
  })

  test('a terminal gets Markdown, with --plain and TERM=dumb the plain text, and a pipe exactly the text', async () => {
    using at = home()
    const markdown = '# Title\n\n- **one**'
    const env = { BRAIDCLAW_MOCK_FIXTURE: at.fixture([{ text: markdown, chunks: 5 }]) }
    const shown = await at.terminal(['agent', '-m', 'go'], [], { env })
    expect(Bun.stripANSI(shown.stdout)).toMatch(/Title\n═════\n[\s\S]*\n {2}• one\n/)
    for (const [args, more] of [
      [['--plain'], {}],
      [[], { TERM: 'dumb' }],
    ] as const) {
      const plain = await at.terminal(['agent', '-m', 'go', ...args], [], { env: { ...env, ...more } })
      expect(plain.stdout).toBe(`${markdown}\n`)
    }
    expect((await at.run(['agent', '-m', 'go'], { env })).stdout).toBe(`${markdown}\n`)
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

  test('stream-json: what was thought comes before the text it led to, once, and a replay has the same order', async () => {
    using at = home()
    const replies = [
      { ...call('time', {}), thinking: 'let me see', text: 'I look', chunks: 2 },
      { thinking: 'so it is', text: 'It is late', chunks: 2 },
    ]
    const { stdout } = await turn(at, replies, ['--output-format', 'stream-json'])
    const lines = stdout.trimEnd().split('\n')
    const events = lines.map((line) => JSON.parse(line))
    const kinds = events.map(({ type, isPartial, content }) => (type === 'thinking' ? `"${content}"` : isPartial ? 'partial' : type))
    expect(kinds.join(' ')).toMatch(/^init "let me see" (partial )+text tool_use tool_result "so it is" (partial )+text done$/)
    expect((await at.run(['replay', 'last'])).stdout).toBe(asReplayed(stdout))
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
        const unknown = unknownQuestion(request)
        if (unknown) return unknown
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
    using at = home('', asksFirst)
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
  test.if(needs('bwrap'))('list marks what is not active', async () => {
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
      'shell_output',
      'shell_stop',
      'memory_search',
    ])
    expect((await at.run(['tool', 'run', 'file_write', '--json', '{"path":"x","content":"y"}'])).code).toBe(3)
  })

  test.if(needs('bwrap'))('run prints the output alone, reads arguments from stdin with "-", and leaves a receipt', async () => {
    using at = home()
    at.file('a.txt', 'hello\n')
    const { code, stdout, stderr } = await at.run(['tool', 'run', 'file_read', '--json', '{"path":"a.txt"}'])
    expect([code, stdout.trimEnd().endsWith('hello'), stderr]).toEqual([0, true, ''])
    const piped = await at.run(['tool', 'run', 'file_read', '--json', '-'], { stdin: '{"path":"a.txt"}' })
    expect(piped).toMatchObject({ code: 0, stdout })
    const allowed = await at.run(['tool', 'run', 'shell', '--json', '{"command":"echo one two | tee out.txt"}', '--approve-all-medium'])
    expect(allowed).toMatchObject({ code: 0, stdout: 'one two\n' })
    expect(await json(at, 'receipt', 'list', '--json')).toMatchObject([
      { tool: 'file_read', status: 'allowed' },
      { tool: 'file_read', status: 'allowed' },
      { tool: 'shell', status: 'allowed', risk: 'medium' },
    ])
  })
})

describe('policy explain', () => {
  /** The sandbox is tried once in a home, so that these tests share one. */
  const at = home('', asksFirst)
  afterAll(() => at[Symbol.dispose]())

  test.each([
    [['--', 'rm', '-rf', '/'], 'deny', 'high', 'command.forbidden'],
    [['--', 'git', 'add', '.'], 'ask', 'medium', 'autonomy.medium_asks'],
    [['--autonomy', 'full', '--', 'git', 'add', '.'], 'allow', 'medium', 'autonomy.full'],
    [['--', 'grep -r "rm -rf /" . > out'], 'ask', 'medium', 'autonomy.medium_asks'],
    [['--tool', 'file_read', '--args', '{"path":"/etc/passwd"}'], 'deny', 'high', 'path.outside_workspace'],
    [['--tool', 'file_read', '--args', '{"path":"a.txt"}'], 'allow', 'low', 'autonomy.low'],
    [['--tool', 'file_red', '--args', '{}'], 'deny', 'high', 'tool.unknown'],
  ])('%j', async (args, verdict, risk, rule) => {
    if (isDeep || rule === 'command.forbidden') {
      const said = await at.run(['policy', 'explain', ...args])
      expect(said.code).toBe(0)
      expect(said.stdout).toMatch(new RegExp(`^verdict: +${verdict}\nrisk: +${risk}\nrule: +${rule}`))
    }
    const machine = await at.run(['policy', 'explain', '--json', ...args])
    expect(JSON.parse(machine.stdout)).toMatchObject({ verdict, risk, rule, levels: { readonly: {}, supervised: {}, full: {} } })
  })

  test.each([
    [['--tool', 'file_read', '{"path":"a"}'], `braidclaw policy explain --tool file_read --args '{"path":"a"}'`],
    [['--tool', 'file_read', 'ls'], '--tool and a command are two questions'],
    [['--args', '{}', '--', 'ls'], 'name it with --tool'],
    [['--tool', 'file_read', '--args', 'path'], '--args must be one JSON object'],
    [['--json'], 'nothing to explain'],
  ])('%j is a wrong use that says what is right', async (args, says) => {
    refused(await at.run(['policy', 'explain', ...args]), 2, says)
  })

  test('runs nothing, keeps nothing but the empty folders of a sandbox that was tried', async () => {
    using at = home()
    await at.run(['policy', 'explain', '--autonomy', 'full', '--', 'touch made'])
    expect(existsSync(join(at.workspace, 'made'))).toBe(false)
    const kept = readdirSync(join(at.home, '.braidclaw')).filter((name) => !['changes', 'caches', 'run'].includes(name))
    expect(kept).toEqual(['config.toml'])
  })
})
