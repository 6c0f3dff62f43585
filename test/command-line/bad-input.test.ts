import { describe, expect, test } from 'bun:test'
import { chmodSync, existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { minimumConfig, type Nest, nest } from '../support/cli.ts'
import { given, needs } from '../support/needs.ts'
import { call, everyTool, home, refused, turn } from '../support/turns.ts'

const ours = (at: Nest, name: string) => join(at.home, '.braidclaw', name)

describe('the configuration', () => {
  test('every problem at once, each with its line, its column and what is meant', async () => {
    using at = nest()
    at.config(
      'default_provider = "lokal"\nworkspce_dir = "/x"\n[security]\nautonomy = "godmode"\nworkspace_only = "yes"\n[limits]\nmax_tool_rounds = -3\n',
    )
    const result = await at.run(['config', 'validate'])
    refused(result, 1, '5 problems found')
    for (const line of [
      'config.toml:1:20: default_provider: unknown provider "lokal"; did you mean "local"?',
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

  test('a current folder that was removed', async () => {
    using at = nest()
    const through = ['sh', '-c', 'mkdir gone && cd gone && rmdir ../gone && exec "$@"', 'sh']
    // The one-file executable ends before any code of ours: docs/status.md.
    if (process.env.BRAIDCLAW_TEST_BINARY) return refused(await at.run(['agent', '-m', 'x'], { through }), 1, 'directory was deleted')
    refused(await at.run(['agent', '-m', 'x'], { through }), 1, 'gone (deleted)" does not exist')
    at.config(everyTool)
    expect((await at.run(['agent', '-m', 'x'], { through })).code).toBe(0)
  })

  test('a tool that does not exist in tools_allow is said, and the rest still works', async () => {
    using at = nest()
    at.config(minimumConfig.replace('"shell"]', '"shel"]'))
    const { code, stderr } = await turn(at, [{ text: 'fine' }])
    expect(code).toBe(0)
    expect(stderr).toContain('"shel", which is not a tool; did you mean "shell"?')
    at.config(minimumConfig.replace('"shell"]', '"constructor"]'))
    expect((await turn(at, [{ text: 'fine' }])).stderr).toContain('"constructor", which is not a tool')
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

  test.each([
    ['unset', ['env', '-u', 'HOME'], 'HOME is not set'],
    ['empty', ['env', 'HOME='], 'HOME is not set'],
    ['relative', ['env', 'HOME=somewhere'], 'HOME is not an absolute path: "somewhere"'],
  ])('HOME that is %s: nothing is read or made, least of all in the home of the user database', async (_, through, says) => {
    using at = nest()
    for (const words of [['init'], ['hello there'], ['config', 'show']])
      expect(await at.run(words, { through })).toEqual({ code: 1, stdout: '', stderr: `error: ${says}; set HOME or BRAIDCLAW_HOME\n` })
    expect((await at.run(['--help'], { through })).code).toBe(0)
  })

  test('without HOME, but with BRAIDCLAW_HOME, ~ in a forbidden path still is the home of the user database', async () => {
    using at = nest()
    const env = { BRAIDCLAW_HOME: join(at.dir, 'records') }
    const { code, stdout } = await at.run(['config', 'show', '--json'], { env, through: ['env', '-u', 'HOME'] })
    const { memory, security } = JSON.parse(stdout)
    expect([code, memory.path]).toEqual([0, join(at.dir, 'records/memory.sqlite')])
    expect(security.forbidden_paths).toContain(join(passwdHome(), '.ssh'))
  })

  describe('of another user', () => {
    const stranger = ['setpriv', '--reuid', '65534', '--regid', '65534', '--clear-groups']
    const possible = given(process.getuid?.() === 0, 'root') && needs('setpriv')

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
  }, 120_000)

  test('beyond the bound is refused before anything begins', async () => {
    using at = home()
    refused(await turn(at, echo, [], { stdin: new Uint8Array(34_000_000) }), 2, '32 MiB')
    expect(existsSync(ours(at, 'memory.sqlite'))).toBe(false)
  })

  test('that is not UTF-8, or holds a NUL', async () => {
    using at = home()
    const latin1 = [0x63, 0x61, 0x66, 0xe9]
    for (const bytes of [[0x61, 0xff, 0xfe, 0x62], latin1, [...latin1, 0x0a], [0xe2, 0x82], [...'x'.repeat(70_000)].map(() => 0x80)])
      refused(await turn(at, echo, [], { stdin: new Uint8Array(bytes) }), 2, 'stdin is not UTF-8 text, so nothing was sent')
    expect(existsSync(ours(at, 'memory.sqlite'))).toBe(false)
    const { code, stdout } = await turn(at, echo, [], { stdin: new Uint8Array([0xef, 0xbb, 0xbf, 0x61, 0xe2, 0x82, 0xac, 0x00, 0x62]) })
    expect([code, stdout]).toEqual([0, 'You said go\n\na€\0b\n'])
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

  test('two processes on one silent pipe do not wait for each other', async () => {
    using at = home()
    const both = [
      'bash',
      '-c',
      'exec 7<> <(:); exec 8< /proc/self/fd/7 9> /proc/self/fd/7; "$@" <&8 7<&- 8<&- 9>&- & "$@" <&8 7<&- 8<&- 9>&-; wait',
    ]
    const done = await at.run(['agent', '-m', 'hi'], { env: { BRAIDCLAW_MOCK_FIXTURE: at.fixture(echo) }, through: [...both, 'bash'] })
    expect([done.stdout, done.stderr.match(/continuing without it/g)?.length]).toEqual(['You said hi\nYou said hi\n', 2])
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
    expect(silent.stderr).toContain('continuing without it')
    expect(waited).toMatchObject({ code: 0, stdout: 'You said hi\n\nlate\n' })
  })
})

describe('stdout', () => {
  const long = { text: 'a line of text\n'.repeat(100_000), chunks: 2000 }
  const intoHead = { through: ['bash', '-c', '"$@" | head -1; exit ${PIPESTATUS[0]}', 'bash'] }

  test('closed early: the turn is cancelled, quietly, and the next command works', async () => {
    using at = home()
    const { code, stdout, stderr } = await turn(at, [{ ...long, ...call('time', {}) }, { text: 'never' }], [], intoHead)
    expect([code, stdout]).toEqual([130, 'a line of text\n'])
    expect(stderr).toBe('cancelled: nobody reads stdout any more\n')
    const listed = await at.run(['memory', 'export'], { through: ['bash', '-c', '"$@" | head -c 1; exit ${PIPESTATUS[0]}', 'bash'] })
    expect(listed).toEqual({ code: 0, stdout: '{', stderr: '' })
  })

  test('closed within the answer: the turn was over before, and is no failure', async () => {
    using at = home()
    expect(await turn(at, [long], [], intoHead)).toEqual({ code: 0, stdout: 'a line of text\n', stderr: '' })
  })

  test.each([['agent -m hi'], ['memory list'], ['config show'], ['--help'], ['tool run time --json {}']])('full: %s', async (command) => {
    using at = home()
    await turn(at, [{ text: 'first' }])
    const result = await at.run(command.split(' '), { through: ['sh', '-c', 'exec "$@" > /dev/full', 'sh'] })
    refused(result, 1, 'stdout cannot be written (ENOSPC)')
    expect(result.stderr).not.toContain('nobody reads')
  })
})

function passwdHome(): string {
  return Bun.spawnSync(['sh', '-c', 'getent passwd "$(id -u)" | cut -d: -f6']).stdout.toString().trim()
}
