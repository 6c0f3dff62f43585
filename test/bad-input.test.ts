/** What goes wrong around the program: files, disks, pipes, providers, tools. A clear word, the right code, nothing lost, nothing hung. */

import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { appendFileSync, chmodSync, existsSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { executable, type Invocation, minimumConfig, type Nest, nest, type Result } from './support/cli.ts'

const everyTool = minimumConfig.replace(/tools_allow = .*\n/, '')
const ours = (at: Nest, name: string) => join(at.home, '.braidclaw', name)
const call = (name: string, args: object) => ({ tool_calls: [{ name, arguments: args }] })
const answer = { text: 'Got: {{last_tool_result}}' }

function home(more = ''): Nest {
  const fresh = nest()
  fresh.config(`${everyTool}${more}`)
  return fresh
}

const turn = (at: Nest, responses: readonly object[], args: readonly string[] = [], invocation: Invocation = {}) =>
  at.run(['agent', '-m', 'go', ...args], { ...invocation, env: { BRAIDCLAW_MOCK_FIXTURE: at.fixture(responses), ...invocation.env } })

/** No stack trace, no code without a word, nothing on stdout. */
function refused({ code, stdout, stderr }: Result, expected: number, ...says: string[]): void {
  expect([code, stdout]).toEqual([expected, ''])
  for (const words of says) expect(stderr).toContain(words)
  expect(stderr).not.toContain('    at ')
  expect(stderr).not.toContain('bug in BraidClaw')
}

describe('the configuration', () => {
  test('every problem at once, each with its line, its column and what is meant', async () => {
    using at = nest()
    at.config(
      'default_provider = "lokal"\nworkspce_dir = "/x"\n[security]\nautonomy = "godmode"\nworkspace_only = "yes"\n[limits]\nmax_tool_rounds = -3\n',
    )
    const result = await at.run(['config', 'validate'])
    refused(result, 1, '5 problems found')
    for (const line of [
      'config.toml:1:20: default_provider: there is no provider "lokal"; did you mean "local"?',
      'config.toml:2:1: workspce_dir: unknown key; did you mean "workspace_dir"?',
      'config.toml:4:12: security.autonomy:',
      'config.toml:5:18: security.workspace_only: must be true or false, found the text "yes"',
      'config.toml:7:19: limits.max_tool_rounds: -3 is out of range',
    ])
      expect(result.stderr).toContain(line)
  })

  test.each([
    ['no value', 'autonomy = \n', 'config.toml:1'],
    ['an unclosed text', 'default_model = "mock\n[security]\n', 'config.toml:1'],
    ['a key twice', 'default_model = "a"\ndefault_model = "b"\n', 'config.toml:2'],
    ['a NUL', 'default_model = "a\0b"\n', 'config.toml:1'],
    ['a list for a table', 'security = []\n', 'security'],
  ])('%s', async (_, text, says) => {
    using at = nest()
    at.config(text)
    refused(await at.run(['agent', '-m', 'x']), 1, says)
  })

  test('no text at all: bytes that are not UTF-8, a folder, a pipe, too much', async () => {
    using at = nest()
    at.config('')
    const file = ours(at, 'config.toml')
    writeFileSync(file, new Uint8Array([0x61, 0x20, 0x3d, 0x0a, 0xff, 0xfe]))
    refused(await at.run(['agent', '-m', 'x']), 1, 'config.toml:2', 'UTF-8')
    writeFileSync(file, '# a comment\n'.repeat(2_000_000))
    refused(await at.run(['agent', '-m', 'x']), 1, 'config.toml')
    Bun.spawnSync(['sh', '-c', `rm "$1" && mkfifo "$1"`, 'sh', file])
    refused(await at.run(['agent', '-m', 'x']), 1, 'config.toml')
    Bun.spawnSync(['sh', '-c', `rm "$1" && mkdir "$1"`, 'sh', file])
    refused(await at.run(['agent', '-m', 'x']), 1, 'config.toml')
  })

  test('a workspace that is missing, or a file', async () => {
    using at = nest()
    at.config(everyTool.replace('~/braidclaw-workspace', '~/nowhere'))
    const says = 'nowhere" does not exist; create it or run "braidclaw init"'
    refused(await at.run(['agent', '-m', 'x']), 1, says)
    refused(await at.run(['config', 'validate']), 1, 'config.toml:2', says)
    writeFileSync(join(at.home, 'nowhere'), '')
    refused(await at.run(['agent', '-m', 'x']), 1, 'nowhere')
    refused(await at.run(['agent', '-m', 'x', '-C', '/no/such/folder']), 1, '/no/such/folder')
  })

  test('a tool that does not exist in tools_allow is said, and the rest still works', async () => {
    using at = nest()
    at.config(minimumConfig.replace('"shell"]', '"shel"]'))
    const { code, stderr } = await turn(at, [{ text: 'fine' }])
    expect(code).toBe(0)
    expect(stderr).toContain('"shel", which is no tool; did you mean "shell"?')
  })
})

describe('the home', () => {
  test('BRAIDCLAW_HOME may be relative, begin with ~, end with a slash', async () => {
    using at = nest()
    for (const [given, path] of [
      ['sub/../kept', join(at.workspace, 'kept')],
      ['~/tilde/', join(at.home, 'tilde')],
    ] as const) {
      const { code } = await at.run(['agent', '-m', 'hello'], { env: { BRAIDCLAW_HOME: given } })
      expect([code, existsSync(join(path, 'memory.sqlite'))]).toEqual([0, true])
    }
  })

  test('BRAIDCLAW_HOME that is a file', async () => {
    using at = nest()
    const file = at.file('plain', 'x')
    refused(await at.run(['agent', '-m', 'hello'], { env: { BRAIDCLAW_HOME: file } }), 1, 'plain')
    refused(await at.run(['estop'], { env: { BRAIDCLAW_HOME: file } }), 1, 'plain')
    refused(await at.run(['init'], { env: { BRAIDCLAW_HOME: file } }), 1, 'plain')
  })

  test('without HOME the home of the user database counts, never the root of the disk', async () => {
    using at = nest()
    const { stdout } = await at.run(['config', 'show', '--json'], { through: ['env', '-u', 'HOME'] })
    expect(JSON.parse(stdout).memory.path).toBe(join(Bun.env.SUDO_HOME ?? passwdHome(), '.braidclaw/memory.sqlite'))
  })

  describe('of another user', () => {
    const stranger = ['setpriv', '--reuid', '65534', '--regid', '65534', '--clear-groups']
    const possible = process.getuid?.() === 0 && Bun.which('setpriv') !== null
    if (!possible) console.log('not tried here: homes of another user (needs root and setpriv)')

    test.if(possible)('a private one is refused by every command that needs it, in words', async () => {
      using at = home()
      for (const path of [at.dir, at.home, at.workspace]) chmodSync(path, 0o755)
      chmodSync(ours(at, ''), 0o700)
      for (const args of [['agent', '-m', 'x'], ['memory', 'list'], ['receipt', 'verify'], ['doctor'], ['estop'], ['config', 'show']])
        refused(await at.run(args, { through: stranger }), 1, 'permission denied')
    })

    test.if(possible)('one that cannot be made', async () => {
      using at = nest()
      for (const path of [at.dir, at.home, at.workspace]) chmodSync(path, 0o755)
      for (const args of [['agent', '-m', 'x'], ['memory', 'list'], ['estop'], ['trust']])
        refused(await at.run(args, { through: stranger }), 1, 'permission denied')
      const init = await at.run(['init'], { through: stranger })
      expect(init.code).toBe(1)
      expect(init.stderr).toContain('permission denied')
    })
  })
})

describe('the disk', () => {
  const mountable = process.getuid?.() === 0 && Bun.spawnSync(['unshare', '-m', 'true']).success
  if (!mountable) console.log('not tried here: read-only and full disks (needs root)')

  /** Each script runs in a mount namespace of its own: $1 is the home, $2 the executable. What it mounts goes with it. */
  const inNamespace = (at: Nest, script: string, env: { [name: string]: string } = {}): Result => {
    const argv = ['unshare', '-m', 'sh', '-c', `mount -t tmpfs -o size=2m none "$1" || exit 99\n${script}`, 'sh', at.home, executable]
    const { exitCode, stdout, stderr } = Bun.spawnSync(argv, { cwd: at.dir, env: { ...at.env, ...env }, stdin: 'ignore', timeout: 20_000 })
    return { code: exitCode, stdout: stdout.toString(), stderr: stderr.toString() }
  }
  const prepare = 'mkdir "$1/w"; "$2" init --workspace "$1/w" >/dev/null 2>&1; cd "$1/w"'

  test.if(mountable)('read-only: each command says so', async () => {
    using at = nest()
    for (const command of ['agent -m hello', 'estop', 'memory list', 'tool run time --json {}'])
      refused(inNamespace(at, `${prepare}; mount -o remount,ro "$1"; exec "$2" ${command}`), 1, 'read-only')
    const shown = inNamespace(at, `${prepare}; mount -o remount,ro "$1"; "$2" config show >/dev/null && "$2" config validate`)
    expect(shown.code).toBe(0)
  })

  test.if(mountable)(
    'full: nothing is begun that cannot be recorded, what was there stays, and it goes on when there is room',
    async () => {
      using at = nest()
      const fill = 'cat /dev/zero > "$1/fill" 2>/dev/null'
      const { code, stdout, stderr } = inNamespace(
        at,
        `${prepare}
      "$2" agent -m "What files are in this project?" >/dev/null 2>&1 || exit 90
      ${fill}; "$2" agent -m "What files are in this project?"; echo "code $?"
      rm "$1/fill"; "$2" agent -m "What files are in this project?" >/dev/null 2>&1; echo "code $?"
      "$2" receipt verify --deep; "$2" memory list --json`,
      )
      expect(code).toBe(0)
      expect(stderr).toContain('free s')
      const [full, later, verified, list = ''] = stdout.trim().split('\n').slice(-4)
      expect([full, later]).toEqual(['code 1', 'code 0'])
      expect(verified).toStartWith('valid: 2 receipts')
      expect(JSON.parse(list)).toHaveLength(2)
    },
  )

  test.if(mountable)('full: the emergency stop still stops', async () => {
    using at = nest()
    const { stdout } = inNamespace(
      at,
      `${prepare}; cat /dev/zero > "$1/fill" 2>/dev/null; "$2" estop; rm "$1/fill"; "$2" tool run time --json {}; echo $?`,
    )
    expect(stdout).toContain('stopped: no tool runs')
    expect(stdout).toEndWith('10\n')
  })
})

describe('the database', () => {
  async function used(): Promise<Nest> {
    const at = home()
    await turn(at, [call('time', {}), { text: 'first' }])
    return at
  }

  test('a damaged page ends with integrity, and the file is left for a rescue', async () => {
    using at = await used()
    const file = ours(at, 'memory.sqlite')
    const bytes = readFileSync(file)
    bytes.fill(0xa5, 4096)
    writeFileSync(file, bytes)
    const result = await turn(at, [{ text: 'x' }], ['--continue'])
    refused(result, 9, 'memory.sqlite', 'damaged')
    expect(statSync(file).size).toBe(bytes.length)
    refused(await at.run(['memory', 'list']), 9, 'damaged')
  })

  test('cut to half', async () => {
    using at = await used()
    truncateSync(ours(at, 'memory.sqlite'), 10_000)
    refused(await turn(at, [{ text: 'x' }]), 9, 'memory.sqlite')
  })

  test('written by a newer version', async () => {
    using at = await used()
    const db = new Database(ours(at, 'memory.sqlite'))
    db.run('PRAGMA user_version = 999')
    db.close()
    refused(await turn(at, [{ text: 'x' }]), 1, 'newer', 'update BraidClaw')
  })

  test('held by another process: said after the five seconds of waiting', async () => {
    using at = await used()
    const db = new Database(ours(at, 'memory.sqlite'))
    db.run('BEGIN EXCLUSIVE')
    const result = await turn(at, [{ text: 'x' }], [], { timeoutMs: 9000 })
    db.run('ROLLBACK')
    db.close()
    refused(result, 1, 'in use by another process')
    expect((await turn(at, [{ text: 'fine' }])).code).toBe(0)
  })
})

describe('the receipts', () => {
  async function used(): Promise<Nest> {
    const at = home()
    await turn(at, [call('time', {}), { text: 'first' }])
    return at
  }

  test('a torn last line is cut off, said, and the chain goes on', async () => {
    using at = await used()
    appendFileSync(ours(at, 'tool_receipts.log'), '{"args_hash":"abc","conv')
    const { code, stderr } = await turn(at, [call('time', {}), { text: 'second' }])
    expect(code).toBe(0)
    expect(stderr).toContain('recovered after a crash')
    expect((await at.run(['receipt', 'verify', '--deep'])).stdout).toStartWith('valid: 2 receipts')
  })

  test('an acknowledged last line that is torn is no crash but an alteration', async () => {
    using at = await used()
    const file = ours(at, 'tool_receipts.log')
    truncateSync(file, statSync(file).size - 20)
    refused(await turn(at, [call('time', {}), { text: 'x' }]), 9, 'receipt')
  })

  test.each([
    ['tool_receipts.log', 'missing or empty'],
    ['receipt.key', 'key'],
  ])('%s gone', async (name, says) => {
    using at = await used()
    Bun.spawnSync(['rm', ours(at, name)])
    refused(await turn(at, [call('time', {}), { text: 'x' }]), 9, says)
  })
})

describe('a provider that answers', () => {
  type Reply = { readonly body: string; readonly status?: number; readonly type?: string }
  const chunk = (delta: object, finish: string | null = null) =>
    `data: ${JSON.stringify({ id: 'x', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`
  const badCall = { tool_calls: [{ index: 0, id: 'a', type: 'function', function: { name: 'file_list', arguments: '{"path": ' } }] }

  /** One turn against a server on loopback that gives these replies in order, the last for ever. */
  async function ask(replies: readonly Reply[]): Promise<Result> {
    using at = nest()
    let count = 0
    const server = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      fetch() {
        const { body, status = 200, type = 'text/event-stream' } = replies[Math.min(count++, replies.length - 1)] ?? { body: '' }
        return new Response(body, { status, headers: { 'content-type': type } })
      },
    })
    at.config(
      `default_provider = "far"\n[providers.models.far]\nkind = "openai-compatible"\nbase_url = "http://127.0.0.1:${server.port}/v1"\nmodel = "m"\nmax_retries = 0\n`,
    )
    try {
      return await at.run(['agent', '-m', 'hi'])
    } finally {
      await server.stop(true)
    }
  }

  test.each<[string, Reply, number]>([
    ['HTML', { body: '<html><body>Please log in</body></html>', type: 'text/html' }, 8],
    ['HTML with 502', { body: '<html>Bad gateway</html>', status: 502, type: 'text/html' }, 8],
    ['401', { body: '{"error":{"message":"bad key"}}', status: 401, type: 'application/json' }, 8],
    ['429', { body: '{"error":{"message":"slow down"}}', status: 429, type: 'application/json' }, 8],
    ['nothing', { body: '' }, 8],
    ['a stream that breaks off', { body: chunk({ role: 'assistant', content: 'Half an ans' }) }, 8],
    ['a stream that is no JSON', { body: 'data: {"choices": [\n\ndata: [DONE]\n\n' }, 8],
    ['numbers where text should be', { body: `data: {"choices":[{"delta":{"content":17}}]}\n\ndata: [DONE]\n\n` }, 8],
  ])('%s', async (_, reply, expected) => {
    const { code, stderr } = await ask([reply])
    expect(code).toBe(expected)
    expect(stderr).toContain('error: ')
    expect(stderr).not.toContain('    at ')
  })

  test('with arguments that are no JSON: the model is told, and may answer', async () => {
    const { code, stdout, stderr } = await ask([
      { body: `${chunk(badCall)}${chunk({}, 'tool_calls')}data: [DONE]\n\n` },
      { body: `${chunk({ content: 'I see, sorry.' })}${chunk({}, 'stop')}data: [DONE]\n\n` },
    ])
    expect(stdout).toBe('I see, sorry.\n')
    expect(code).toBe(3)
    expect(stderr).toContain('file_list')
  })

  test('with terminal codes: a pipe gets them as they are, and the end is clean', async () => {
    const { code, stdout } = await ask([{ body: `${chunk({ content: '\u001b[2Jhi' })}${chunk({}, 'stop')}data: [DONE]\n\n` }])
    expect([code, stdout]).toEqual([0, '\u001b[2Jhi\n'])
  })

  test('not at all', async () => {
    using at = nest()
    at.config(
      'default_provider = "far"\n[providers.models.far]\nkind = "openai-compatible"\nbase_url = "http://127.0.0.1:1/v1"\nmodel = "m"\nmax_retries = 0\n',
    )
    refused(await at.run(['agent', '-m', 'hi']), 8, '127.0.0.1:1')
  })
})

describe('a tool', () => {
  const shell = (at: Nest, command: string, more: readonly object[] = [answer]) =>
    turn(at, [call('shell', { command }), ...more], ['--approve-all-medium'])

  test('that floods is ended, its output cut with an exact notice', async () => {
    using at = home()
    const { code, stdout } = await shell(at, 'seq 100000000')
    expect(code).toBe(0)
    expect(stdout.length).toBeLessThan(66_000)
    expect(stdout).toContain('stopped after printing more than 67108864 bytes')
    expect(stdout).toContain('Got: ')
  })

  test('that hangs is ended after its time, with its children', async () => {
    using at = home('\n[limits]\nshell_timeout_s = 0.5\n')
    const { code, stdout } = await shell(at, 'echo begun; sleep 101 & sleep 102')
    expect(code).toBe(0)
    expect(stdout).toContain('begun')
    expect(stdout).toContain('timed out after 0.5 s')
    expect(Bun.spawnSync(['pgrep', '-f', '^sleep 10[12]$']).stdout.toString()).toBe('')
  })

  test('that dies is a failure with its signal, and the turn goes on', async () => {
    using at = home()
    const { code, stdout } = await turn(at, [call('shell', { command: 'echo begun; kill -9 $$' }), answer], ['--autonomy', 'full'])
    expect(code).toBe(0)
    expect(stdout).toContain('begun')
    expect(stdout).toContain('SIGKILL')
  })

  test('that cannot start, or fails', async () => {
    using at = home()
    expect((await shell(at, 'ls no-such-file')).stdout).toContain('No such file')
    expect((await at.run(['tool', 'run', 'shell', '--json', '{"command":"ls no-such-file"}', '--approve-all-medium'])).code).toBe(1)
  })

  test('given what is not in its schema says what is', async () => {
    using at = home()
    const { code, stdout } = await turn(at, [call('file_read', { file: 'a' }), answer])
    expect(code).toBe(3)
    expect(stdout).toContain('path')
  })
})

describe('the message', () => {
  const echo = [{ text: 'You said {{last_user_message}}' }]

  test('of 10 MB through a pipe or from a file arrives whole and is kept', async () => {
    using at = home()
    const big = 'All work and no play makes Jack. '.repeat(320_000)
    const piped = await turn(at, [{ text: 'noted' }], [], { stdin: big })
    expect([piped.code, piped.stdout]).toEqual([0, 'noted\n'])
    const file = at.file('big.txt', big)
    const through = ['sh', '-c', 'exec "$@" < "$0"', file]
    const env = { BRAIDCLAW_MOCK_FIXTURE: at.fixture(echo) }
    const fromFile = await at.run(['agent'], { through, env })
    expect([fromFile.code, fromFile.stdout.length]).toEqual([0, 'You said '.length + big.trimEnd().length + 1])
    const [, last] = (await at.run(['memory', 'show', 'last', '--json'])).stdout.split(big.trimEnd())
    expect(last).toBeDefined()
  }, 30_000)

  test('beyond the bound is refused before anything begins', async () => {
    using at = home()
    refused(await turn(at, echo, [], { stdin: new Uint8Array(34_000_000) }), 2, '32 MiB')
    expect(existsSync(ours(at, 'memory.sqlite'))).toBe(false)
  })

  test('that is not UTF-8, or holds a NUL', async () => {
    using at = home()
    const { code, stdout } = await turn(at, echo, [], { stdin: new Uint8Array([0x61, 0xff, 0xfe, 0xe2, 0x82, 0x00, 0x62]) })
    expect([code, stdout]).toEqual([0, 'You said go\n\na\ufffd\ufffd\ufffd\0b\n'])
  })

  test.each([[''], ['  \n\t ']])('that is empty: %j', async (stdin) => {
    using at = home()
    refused(await at.run(['agent'], { stdin }), 2, 'nothing to answer')
    refused(await at.run(['agent', '-m', ' '], { stdin }), 2, 'nothing to answer')
  })

  test('with nobody at a terminal there is no conversation, and the way out is said', async () => {
    using at = home()
    refused(await at.run(['agent']), 2, 'pass -m "message"', 'terminal')
  })

  test('a pipe that its owner forgot is given up, with a word; one in a pipeline is waited for', async () => {
    using at = home()
    const env = { BRAIDCLAW_MOCK_FIXTURE: at.fixture(echo) }
    const forgotten = ['bash', '-c', 'exec 7<> <(:); exec "$@" <&7', 'bash']
    const pipeline = ['sh', '-c', '(sleep 3.5; echo late) | "$@"', 'sh']
    const [silent, waited] = await Promise.all([
      at.run(['agent', '-m', 'hi'], { env, through: forgotten }),
      at.run(['agent', '-m', 'hi'], { env, through: pipeline }),
    ])
    expect(silent).toMatchObject({ code: 0, stdout: 'You said hi\n' })
    expect(silent.stderr).toContain('going on without it')
    expect(waited).toMatchObject({ code: 0, stdout: 'You said hi\n\nlate\n' })
  })
})

describe('stdout', () => {
  const long = [{ text: 'a line of text\n'.repeat(100_000), chunks: 2000 }]

  test('closed early: the turn is cancelled, quietly, and the next command works', async () => {
    using at = home()
    const { code, stdout, stderr } = await turn(at, long, [], { through: ['bash', '-c', '"$@" | head -1; exit ${PIPESTATUS[0]}', 'bash'] })
    expect([code, stdout]).toEqual([130, 'a line of text\n'])
    expect(stderr).toBe('cancelled: nobody reads stdout any more\n')
    const listed = await at.run(['memory', 'export'], { through: ['bash', '-c', '"$@" | head -c 1; exit ${PIPESTATUS[0]}', 'bash'] })
    expect(listed).toEqual({ code: 0, stdout: '{', stderr: '' })
  })

  test.each([['agent -m hi'], ['memory list'], ['config show'], ['--help'], ['tool run time --json {}']])('full: %s', async (command) => {
    using at = home()
    await turn(at, [{ text: 'first' }])
    const result = await at.run(command.split(' '), { through: ['sh', '-c', 'exec "$@" > /dev/full', 'sh'] })
    refused(result, 1, 'stdout cannot be written (ENOSPC)')
  })
})

function passwdHome(): string {
  return Bun.spawnSync(['sh', '-c', 'getent passwd "$(id -u)" | cut -d: -f6']).stdout.toString().trim()
}
