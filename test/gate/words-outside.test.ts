/**
 * Real commands on private views that name places outside the workspace: nothing can be read by words that another program in the sandbox
 * could not read, and what no view contains stays refused.
 */

import { test as always, describe, expect } from 'bun:test'
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { needs } from '../support/needs.ts'
import { isDeep } from '../support/tier.ts'
import { call, everyTool, home, turn } from '../support/turns.ts'

const test = always.if(needs('bwrap', 'python3'))
const canary = 'outside-canary'

type Ended = { readonly type: string; readonly toolCallId: string; readonly status: string; readonly output: string }

/** Runs each command in one turn; returns what came of each. */
async function outcomes(at: ReturnType<typeof home>, commands: readonly string[], args: readonly string[] = ['--autonomy', 'full']) {
  const rounds = Array.from({ length: Math.ceil(commands.length / 20) }, (_, round) => ({
    tool_calls: commands
      .slice(round * 20, round * 20 + 20)
      .map((command, index) => ({ id: `c${round}-${index}`, ...call('shell', { command }).tool_calls[0] })),
  }))
  const { stdout, stderr } = await turn(at, [...rounds, { text: 'done' }], ['--output-format', 'stream-json', ...args], {
    env: { CANARY: canary },
  })
  expect(stderr).not.toContain('error:')
  const events = stdout
    .trimEnd()
    .split('\n')
    .map((line): Ended => JSON.parse(line))
  const byId = new Map(events.flatMap((event) => (event.type === 'tool_result' ? [[event.toolCallId, event] as const] : [])))
  return rounds.flatMap(({ tool_calls }) => tool_calls.flatMap(({ id }) => byId.get(id) ?? []))
}

const isDenied = ({ output }: Ended) => output.startsWith('Denied by ')

test('sensitive places are closed to words exactly as to programs', async () => {
  using at = home('\n[limits]\nmax_tool_rounds = 400\nshell_timeout_s = 5\n')
  const planted = [
    '.ssh/id_rsa',
    '.aws/credentials',
    'notes.txt',
    '.config/gh/hosts.yml',
    '.netrc',
    '.bash_history',
    '.braidclaw/note',
    '../other/home.txt',
  ]
  for (const path of planted.map((one) => join(at.home, one))) {
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, `${canary}\n`)
  }
  symlinkSync(join(at.home, 'notes.txt'), join(at.workspace, 'link'))
  const system = [
    '/etc/shadow',
    '/etc/gshadow',
    '/etc/sudoers',
    '/root/.bashrc',
    '/root/.ssh/id_rsa',
    '/home/user/.ssh/id_rsa',
    '/var/log/syslog',
    '/var/log/dpkg.log',
  ]
  const sockets = [
    '/run/secrets/key',
    '/var/run/docker.sock',
    '/run/docker.sock',
    '/run/systemd/private',
    '/proc/1/root/etc/shadow',
    '/boot/grub/grub.cfg',
    '/sys/class/dmi/id/product_uuid',
  ]
  const paths = [...planted.map((one) => join(at.home, one)), join(at.workspace, 'link'), '../notes.txt', ...system, ...sockets]
  const open = ['/etc/os-release', '/usr/lib/os-release', '/proc/meminfo', '/etc/passwd', 'mine.txt']
  at.file('mine.txt', 'mine\n')
  at.file(
    'probe.py',
    `for path in ${JSON.stringify([...paths, ...open])}:\n    try:\n        open(path, 'rb').read(64)\n        print('READ', path)\n    except OSError:\n        pass\n`,
  )
  const words = [...paths, ...open].map((path) => `cat ${path} && echo READ ${path}`)
  const patterns = [
    `cat ${at.home}/.s*/*`,
    `cat ${at.home}/*.txt`,
    'cat ../*.txt',
    'cd ..; cat *',
    'cd ~; cat notes.txt',
    'cat /proc/*/environ',
    'head /dev/fd/*',
  ]
  const [probe, ...results] = await outcomes(at, ['python3 probe.py', ...words, ...patterns])
  expect(results).toHaveLength(words.length + patterns.length)
  const readBy = (all: readonly (Ended | undefined)[]) =>
    all.flatMap((one) => [...(one?.output ?? '').matchAll(/^READ (.*)$/gm)].map(([, path]) => path))
  expect(readBy([probe])).toEqual(open)
  expect(readBy(results)).toEqual(open)
  const said = JSON.stringify([probe, ...results])
  expect(said).not.toContain(canary)
  if (existsSync('/etc/shadow') && process.getuid?.() === 0) expect(said).not.toContain(readFileSync('/etc/shadow', 'utf8').split('\n')[0])
}, 60_000)

/** Words and a part of what they print. */
const samples: readonly (readonly [command: string, prints: string])[] = [
  ['grep -n x a.txt /dev/null', 'a.txt:1:x'],
  ['diff /dev/null a.txt; cp a.txt /dev/null; echo over | tee /dev/stderr', 'over'],
  ['head -c 2 /dev/zero | od -c; cat /dev/null', '\\0'],
  ['ls > /tmp/out.txt; tail -n 1 /tmp/out.txt; rm /tmp/out.txt', 'sub'],
  ['cd sub; ls; cd ..; ls', 'inner.txt\na.txt'],
  ['cd sub || exit 1; cat inner.txt; cd ..; cat a.txt', 'inner\nx'],
  ['for d in sub other; do cd $d; ls; cd ..; done', 'inner.txt\no.txt'],
  ['(cd ..; ls); pushd sub > /dev/null; ls; popd > /dev/null; cd sub; cd - > /dev/null; ls', 'braidclaw-workspace\ninner.txt\na.txt'],
  ['cat /etc/os-release | head -n 1; grep -c . /etc/passwd', '='],
  ['head -n 1 /proc/meminfo; ls /usr/lib > /dev/null && ls .. && cat /proc/self/cwd/a.txt', 'MemTotal'],
  ['git diff --no-index /dev/null a.txt', '+x'],
]

function project(lines = everyTool.replace(/forbidden_commands = .*\n/, '')): ReturnType<typeof home> {
  const at = home()
  at.config(lines)
  for (const [path, text] of Object.entries({ 'a.txt': 'x\n', 'sub/inner.txt': 'inner\n', 'other/o.txt': 'o\n' })) at.file(path, text)
  return at
}

describe('the workspace keeps its files, and', () => {
  test('words outside the workspace just work in a view', async () => {
    using at = project()
    const results = await outcomes(
      at,
      samples.map(([command]) => command),
    )
    for (const [index, [command, prints]] of samples.entries())
      expect([command, results[index]?.output]).toEqual([command, expect.stringContaining(prints)])
    expect(existsSync('/tmp/out.txt')).toBe(false)
  })

  test('the same words are refused without a sandbox, and for a call on the workspace itself', async () => {
    using at = project()
    const commands = samples.map(([command]) => command)
    const results = await outcomes(at, commands, ['--autonomy', 'full', '--sandbox', 'none'])
    expect(commands.filter((_, at) => !results[at] || !isDenied(results[at]))).toEqual([])
  })

  test('what removes everything never runs, at any level, with or without rm in the list', async () => {
    const spellings = [
      'rm -rf /',
      'rm -rf *',
      'rm -rf ~',
      'rm -rf .',
      'rm -r -f "$HOME"',
      'rm -fr ./*',
      'rm -rf $PWD',
      'cd / && rm -rf *',
      '/bin/rm -rf /*',
      'busybox rm -rf /',
    ]
    const others = [
      "sh -c 'rm -rf *'",
      'echo / | xargs rm -rf',
      'env rm -rf ..',
      'find . -delete',
      'find / -delete',
      'python3 -c "import os; os.system(\'rm -rf *\')"',
      'eval "rm -rf $HOME"',
    ]
    const commands = [...spellings, ...others]
    const combined = ['', 'forbidden_commands = []\n'].flatMap((list) => ['auto', 'none'].map((sandbox) => [list, sandbox] as const))
    for (const [list, sandbox] of isDeep ? combined : combined.filter((_, at) => at % 3 === 0)) {
      using at = project(everyTool.replace(/forbidden_commands = .*\n/, '').replace('[security]\n', `[security]\n${list}`))
      const results = await outcomes(at, commands, ['--autonomy', 'full', '--sandbox', sandbox])
      expect([list, sandbox, commands.filter((_, index) => !results[index] || !isDenied(results[index]))]).toEqual([list, sandbox, []])
      expect(existsSync(join(at.workspace, 'sub/inner.txt'))).toBe(true)
    }
  })
})

describe('rm', () => {
  test('runs in a view and asks for what it removed; its undo is exact', async () => {
    using at = project()
    const script = [call('shell', { command: 'rm -r sub a.txt' }), { text: 'done' }]
    const { stdout } = await at.terminal(['agent', '-m', 'go'], [['[y/N/', 'y\r']], { env: { BRAIDCLAW_MOCK_FIXTURE: at.fixture(script) } })
    expect(stdout).toContain('sub/inner.txt')
    expect([existsSync(join(at.workspace, 'a.txt')), existsSync(join(at.workspace, 'sub'))]).toEqual([false, false])
    expect((await at.run(['undo'])).code).toBe(0)
    expect([readFileSync(join(at.workspace, 'a.txt'), 'utf8'), readFileSync(join(at.workspace, 'sub/inner.txt'), 'utf8')]).toEqual([
      'x\n',
      'inner\n',
    ])
  })

  test('is forbidden where the file lists it, and on the workspace itself also inside a script', async () => {
    using listed = home()
    listed.file('x', 'x')
    const [refused] = await outcomes(listed, ['rm x'])
    expect(refused?.output).toMatch(/^Denied by command.forbidden: .*file_delete/)
    using at = project()
    at.file('script.sh', 'rm a.txt\n')
    const direct = [
      call('shell', { command: 'bash script.sh', direct: true }),
      call('shell', { command: 'rm a.txt', direct: true }),
      { text: 'done' },
    ]
    const { stderr } = await turn(at, direct, ['--autonomy', 'full'], { env: { BRAIDCLAW_SECURITY_DIRECT: 'allow' } })
    expect(stderr).toContain('rm is forbidden')
    expect(readFileSync(join(at.workspace, 'a.txt'), 'utf8')).toBe('x\n')
    expect((await outcomes(at, ['bash script.sh']))[0]?.status).toBe('completed')
    expect(existsSync(join(at.workspace, 'a.txt'))).toBe(false)
  })

  test('is shown as forbidden where there is no view, and policy explain says what happens', async () => {
    using at = project()
    const shown = await at.run(['security', 'show', '--json'])
    expect(JSON.parse(shown.stdout).forbiddenCommands).toEqual(['shutdown', 'reboot', 'mkfs', 'dd'])
    const explained = await at.run(['policy', 'explain', '--', 'rm -r sub'])
    expect(explained.stdout).toMatch(/verdict: +allow[\s\S]*private view/)
    expect((await at.run(['policy', 'explain', '--', 'rm -rf *'])).stdout).toMatch(/verdict: +deny[\s\S]*file_delete/)
  })
})
