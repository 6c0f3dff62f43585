import { describe, expect, test } from 'bun:test'
import { chmodSync, copyFileSync, cpSync, mkdirSync, readdirSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isDeep } from '../../test/support/tier.ts'
import { confined, hasBubblewrap, place, type Running } from './fixture.ts'
import { install } from './install.ts'
import { landlockVersion } from './landlock/landlock-launch.ts'
import { dropRights } from './left-rights.ts'
import { openLibc } from './libc.ts'
import { fixedPath } from './trial-key.ts'

const kinds = (['bubblewrap', 'landlock'] as const).filter((kind) =>
  kind === 'bubblewrap' ? hasBubblewrap() : landlockVersion(openLibc()) > 0,
)
if (kinds.length < 2) console.warn(`programs with rights are tested only in ${kinds.join() || 'no sandbox'}: ${install}`)

/** Only root can start the programs as another user; otherwise the tests check the modes alone. */
const canSwitch = process.getuid?.() === 0 && Bun.which('setpriv') !== null
if (!canSwitch) console.warn('no other user tries to use what a command left: this is no root that could become one')
const asOther = ['setpriv', '--reuid', '65534', '--regid', '65534', '--clear-groups']

/** A workspace that every user can enter. */
async function open(kind: (typeof kinds)[number]): Promise<Running & Disposable> {
  const box = await confined({ kind })
  for (const path of [box.root, box.workspace]) chmodSync(path, 0o755)
  return box
}

const withRights = (folder: string) =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name))
    .filter((path) => (statSync(path).mode & 0o4000) !== 0 || (statSync(path).mode & 0o2010) === 0o2010)

/** Perl accepts only strings that it may change as arguments of system calls. */
function raw(calls: string): string {
  const names = 'my ($f, $g, $h, $here) = ("f", "g", "h", "."); my $how = pack "QQQ", 0101, 04755, 0;'
  const link = 'sub linkat_ { my $from = "/proc/self/fd/$_[0]"; syscall(265, -100, $from, -100, $h, 0x400) }'
  return `perl -e 'umask 0; ${names} ${link} ${calls}'`
}

/** Every way in which a file can get such a bit. */
const ways: readonly (readonly [what: string, script: string])[] = [
  ['chmod', 'cp /usr/bin/id f; chmod 4755 f; chmod u+s f; chmod 6755 f'],
  ['chmod of the group', 'cp /usr/bin/id f; chmod 2755 f; cp f g; chmod g+s g; mkdir -p a/b; cp f a/b/h; chmod 2711 a/b/h'],
  ['a group with a folder that its owner cannot look into', 'mkdir d; cp /usr/bin/id d/f; chmod 2755 d/f; chmod 311 d'],
  ['install', 'install -m 4755 /usr/bin/id f; install -m 2755 /usr/bin/id g'],
  ['cp -p', 'cp -p given/set-user f; cp -a given g'],
  ['tar -xp', 'mkdir t; tar -xpf given.tar -C t'],
  ['an opening call', `perl -MFcntl -e 'umask 0; sysopen(F, "f", O_CREAT | O_WRONLY, 04755); sysopen(G, "g", O_CREAT | O_WRONLY, 02755)'`],
  ['descriptors', `perl -e 'open F, ">", "f"; chmod 04755, *F; open G, ">", "g"; chmod 02755, *G'`],
  ...(process.arch === 'x64'
    ? ([
        [
          'creat, mknod and an unnamed file',
          raw('syscall(85, $f, 04755); syscall(133, $g, 0106755, 0); linkat_(syscall(2, $here, 020200002, 06755))'),
        ],
        [
          'chmod, fchmodat and fchmodat2',
          raw('open F, ">", "f"; syscall(90, $f, 04755); syscall(268, -100, $f, 04755); syscall(452, -100, $f, 04755, 0)'),
        ],
        ['openat2', raw('syscall(437, -100, $f, $how, 24)')],
        [
          'the calls of the 32-bit pointer mode',
          raw('open F, ">", "f"; syscall(0x40000000 + 90, $f, 04755); syscall(0x40000000 + 85, $g, 04755)'),
        ],
      ] as const)
    : []),
]

describe.each(kinds.map((kind) => [kind]))('in %s no program with rights is left', (kind) => {
  // By a program, from an archive, by a call of its own and by a call that a filter easily forgets.
  const some = ways.filter(([what]) => isDeep || ['chmod', 'tar -xp', 'an opening call', 'openat2'].includes(what))

  test.each(some.map(([what, script]) => [what, script]))('by %s', async (_, script) => {
    using box = await open(kind)
    const given = join(box.root, 'given')
    mkdirSync(given)
    for (const [name, mode] of [
      ['set-user', 0o4755],
      ['set-group', 0o2755],
    ] as const) {
      copyFileSync('/usr/bin/id', join(given, name))
      chmodSync(join(given, name), mode)
    }
    // The command did not set this bit: a file of the user stays as it is, and can be copied.
    Bun.spawnSync(['tar', '-cpf', join(box.workspace, 'given.tar'), '-C', given, '.'])
    cpSync(given, join(box.workspace, 'given'), { recursive: true })
    await box.run(script)
    const left = withRights(box.workspace).filter((path) => !path.includes('/given/'))
    expect(left).toEqual([])
    if (!canSwitch) return
    const start = (path: string) => Bun.spawnSync([...asOther, path], { env: { PATH: fixedPath }, stderr: 'ignore' }).stdout.toString()
    expect(start(join(given, 'set-user'))).toContain('euid=0(root)')
    const others = readdirSync(box.workspace, { recursive: true, encoding: 'utf8' }).filter((path) =>
      statSync(join(box.workspace, path)).isFile(),
    )
    for (const path of others.filter((path) => !path.startsWith('given/')))
      expect(start(join(box.workspace, path))).not.toContain('=0(root)')
  })

  test('the result says what was taken away, and the command that asked for it did not succeed silently', async () => {
    using box = await open(kind)
    const { ended } = await box.run('cp /usr/bin/id f; chmod 2755 f')
    expect(ended).toMatchObject({ ok: true, code: 0, undone: [expect.stringContaining('set-group-ID bit of "f"')] })
    expect((await box.run('cp /usr/bin/id u; chmod 4755 u')).stderr).toContain('Operation not permitted')
    expect((await box.run('chmod 755 f')).ended).toEqual({ ok: true, code: 0, leftBehind: false, mode: 'direct' })
  })

  test('what the filter should have refused is taken away as well', async () => {
    if (kind === 'landlock') return
    using box = await confined({ kind, without: ['seccomp'] })
    const { ended } = await box.run('cp /usr/bin/id f; chmod 4755 f; cp f g; chmod 6711 g; mkdir -m 1777 d; install -m 4700 f d/h')
    expect(ended).toMatchObject({ ok: true, undone: ['f', 'g', 'd/h'].map((name) => expect.stringContaining(`bit of "${name}" was`)) })
    expect(['f', 'g', 'd/h', 'd'].map((name) => (statSync(join(box.workspace, name)).mode & 0o7777).toString(8))).toEqual([
      '755',
      '711',
      '700',
      '1777',
    ])
  })

  test('neither a capability of a file nor a device can be made', async () => {
    using box = await open(kind)
    const set = process.arch === 'x64' ? 188 : 5
    const capability = 'my ($f, $n) = ("f", "security.capability"); my $v = pack "V5", 0x02000001, 0xffffffff, 0, 0, 0;'
    const { stdout } = await box.run(
      `touch f; perl -e '${capability} print syscall(${set}, $f, $n, $v, 20, 0) == 0 ? "set" : "refused: $!"'; mknod c c 1 3 || mknod b b 8 0 || echo; ls`,
    )
    expect(stdout).toBe('refused: Operation not permitted\nf\n')
    expect(readdirSync(box.workspace)).toEqual(['f'])
  })

  test('everyday work goes on: folders of a group, copies, archives, packages and repositories', async () => {
    using box = await open(kind)
    const steps = [
      ...['mkdir -m 2775 shared', 'mkdir -p shared/below', 'chmod g+s shared/below', 'install -d -m 2770 more', 'cp -a shared copied'],
      ...['echo x > f', 'chmod 755 f', 'cp -p f g', 'install -m 644 f h', 'tar -cf t.tar shared f', 'mkdir out', 'tar -xpf t.tar -C out'],
      ...[
        'git init -q one',
        'git init -q --shared=group two',
        'git init -q --bare --shared three.git',
        'git clone -q one four 2>/dev/null',
      ],
      ...['mkdir -p dep', `echo '{"name":"dep","version":"1.0.0","bin":"run.js"}' > dep/package.json`, 'echo > dep/run.js'],
      ...(Bun.which('npm', { PATH: fixedPath }) ? ['npm install --silent --offline --no-audit --no-fund --install-links ./dep'] : []),
    ]
    const { code, stderr } = await box.run(
      steps.map((step) => `{ ${step}; } || { echo "failed: ${step.replaceAll(/["$`]/g, '')}" >&2; exit 1; }`).join('\n'),
    )
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    const mode = (path: string) => (statSync(join(box.workspace, path)).mode & 0o7777).toString(8)
    expect(['shared', 'shared/below', 'more', 'copied', 'out/shared', 'two/.git'].map(mode)).toEqual([
      '2775',
      '2755',
      '2770',
      '2775',
      '2775',
      '2775',
    ])
  }, 120_000)
})

describe('what is looked for', () => {
  const program = (path: string, mode = 0o2755) => {
    writeFileSync(path, '')
    chmodSync(path, mode)
  }

  test('only programs that got the bit since the command began; folders, and files that nobody of the group can start, keep it', async () => {
    using at = place()
    for (const [name, mode] of [
      ['program', 0o2755],
      ['mark', 0o2644],
      ['plain', 0o755],
    ] as const)
      program(join(at.workspace, name), mode)
    mkdirSync(join(at.workspace, 'folder'))
    chmodSync(join(at.workspace, 'folder'), 0o2755)
    utimesSync(join(at.workspace, 'program'), 1, 1)
    expect(await dropRights({ workspace: at.workspace, since: Date.now() + 60_000 })).toEqual([])
    expect(await dropRights({ workspace: at.workspace, since: Date.now() })).toEqual(['program'])
    expect(withRights(at.workspace)).toEqual([])
    expect(statSync(join(at.workspace, 'folder')).mode & 0o7777).toBe(0o2755)
    expect(statSync(join(at.workspace, 'mark')).mode & 0o7777).toBe(0o2644)
  })

  test('a large workspace is looked through when somebody else can get there, and not when nobody can', async () => {
    using at = place()
    for (let folder = 0; folder < 60; folder++) {
      mkdirSync(join(at.workspace, `d${folder}`))
      for (let file = 0; file < 10; file++) writeFileSync(join(at.workspace, `d${folder}/f${file}`), '')
    }
    program(join(at.workspace, 'd59/program'))
    const look = () => dropRights({ workspace: at.workspace, since: Date.now() })
    chmodSync(at.root, 0o700)
    expect(await look()).toEqual([])
    chmodSync(at.root, 0o711)
    expect(await look()).toEqual(['d59/program'])
  })
})
