import { expect, test } from 'bun:test'
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { needs } from '../../../test/support/needs.ts'
import { createSandbox } from '../create-sandbox.ts'
import { confined, place } from '../fixture.ts'
import { openLibc } from '../libc.ts'
import { fixedPath } from '../trial-key.ts'
import { subMountOf } from '../verify.ts'
import { overlayLaunch, overlayTakes, tryOverlay } from './overlay-support.ts'

const real = test.if(needs('bwrap'))
const namespaces = test.if(needs('bwrap', 'unshare'))

real.each([['a,b:c'], ['with space'], ['new\nline'], ['back\\slash'], ['it\'s "quoted" $HOME'], ['日本']])(
  'a workspace may have any name: %j',
  async (name) => {
    using box = await confined({ name })
    writeFileSync(join(box.workspace, 'file'), 'old')
    const { view, stdout } = await box.change('pwd; echo new > file')
    expect(stdout).toBe(`${box.workspace}\n`)
    expect((await view.changes()).map(({ path }) => path)).toEqual(['file'])
    expect(readFileSync(join(box.workspace, 'file'), 'utf8')).toBe('old')
    view.drop()
  },
)

real('what the trial found is kept for the next process, and a trial leaves nothing behind', async () => {
  using box = await confined()
  const file = join(box.settings.stateHome, 'run/overlay-works')
  const kept = readFileSync(file, 'utf8')
  expect(JSON.parse(kept)).toMatchObject({ support: { ok: true, way: expect.stringMatching(/^(unshare|bubblewrap)$/) } })
  expect(box.describe().join('\n')).toContain('private views of the workspace: commands can have them')
  const waiting = readdirSync(join(box.settings.stateHome, 'changes'))
  expect(waiting.filter((name) => existsSync(join(box.settings.stateHome, 'changes', name, 'trial')))).toEqual([])
})

real('a state folder inside the workspace holds no view: another folder does, which nobody else can read', async () => {
  using at = place()
  const stateHome = join(at.workspace, '.state')
  mkdirSync(stateHome)
  using box = await confined({ workspace: at.workspace, stateHome })
  const { view } = await box.change('echo x > made; ls -A', { cwd: at.workspace })
  expect(view.folder.startsWith(at.workspace)).toBe(false)
  expect((await view.changes()).map(({ path }) => path)).toEqual(['made'])
  view.drop()
})

real('without a private view the command is refused, and the sandbox says why', async () => {
  for (const kind of ['none', 'landlock'] as const) {
    using at = place({ kind })
    const created = await createSandbox(at.settings)
    if (!created.ok) throw new Error(created.missing)
    const { spawn, privateViews, close } = created.sandbox
    const plan = { cwd: at.workspace, env: { PATH: fixedPath }, signal: new AbortController().signal, onOutput() {} }
    const argv = ['/bin/sh', '-c', 'echo x > made']
    expect(await spawn({ ...plan, argv, view: 'private' })).toEqual({ ok: false, message: expect.stringContaining('private view') })
    expect(await privateViews()).toEqual({ ok: false, why: expect.any(String) })
    expect(readdirSync(at.workspace)).toEqual([])
    expect(await spawn({ ...plan, argv, view: 'direct' })).toMatchObject({ ok: true, mode: 'direct' })
    expect(readdirSync(at.workspace)).toEqual(['made'])
    close?.()
  }
})

real('a trial that fails tells what the system says', async () => {
  using at = place()
  const broken = join(at.root, 'bwrap')
  writeFileSync(broken, '#!/bin/sh\necho "bwrap: no way" >&2\nexit 1\n')
  chmodSync(broken, 0o755)
  const { workspace, home, stateHome } = at.settings
  const tried = await tryOverlay({ places: { workspace, home, stateHome }, bubblewrap: broken, libc: openLibc() })
  expect(tried).toEqual({ ok: false, why: `${join(stateHome, 'changes')}: bwrap: no way` })
  expect(readdirSync(join(stateHome, 'changes'))).toEqual([])
})

real('bubblewrap mounts the overlay itself where it has the option', async () => {
  using at = place()
  const newer = join(at.root, 'bwrap')
  const log = join(at.root, 'words')
  writeFileSync(newer, `#!/bin/sh\n# --overlay-src SRC\nprintf '%s\\n' "$@" > ${log}\nexit 1\n`)
  chmodSync(newer, 0o755)
  const { workspace, home, stateHome } = at.settings
  await tryOverlay({ places: { workspace, home, stateHome }, bubblewrap: newer, libc: openLibc() })
  const words = readFileSync(log, 'utf8').split('\n')
  expect(words.slice(words.indexOf('--overlay-src'), words.indexOf('--overlay') + 4)).toEqual([
    '--overlay-src',
    workspace,
    '--overlay-src',
    expect.stringMatching(/\/cache$/),
    '--overlay',
    expect.stringMatching(/\/up$/),
    expect.stringMatching(/\/work$/),
    workspace,
  ])
})

test('a file system mounted inside the workspace is found by its whole path, one beside it is not', () => {
  const line = (at: string) => `36 35 0:30 / ${at} rw,relatime - tmpfs tmpfs rw\n`
  expect(subMountOf('/home/me/work', line('/home/me/work/data'))).toBe('/home/me/work/data')
  expect(subMountOf('/home/me/a b', line('/home/me/a\\040b/data'))).toBe('/home/me/a b/data')
  for (const at of ['/home/me/work', '/home/me/workshop', '/home']) expect(subMountOf('/home/me/work', line(at))).toBeUndefined()
})

/** Runs in a mount namespace of its own, because a test must not mount anything on the machine. */
const mounted = `
const { createSandbox } = await import(${JSON.stringify(join(import.meta.dir, '../create-sandbox.ts'))})
const { spawnPlain } = await import(${JSON.stringify(join(import.meta.dir, '../fixture.ts'))})
const settings = JSON.parse(process.argv[1])
const created = await createSandbox({ ...settings, spawnPlain, log() {} })
if (!created.ok) throw new Error(created.missing)
const plan = { argv: ['/bin/sh', '-c', 'echo x > data/made'], cwd: settings.workspace, env: {}, signal: new AbortController().signal, onOutput() {} }
console.log(JSON.stringify([await created.sandbox.privateViews(), await created.sandbox.spawn({ ...plan, view: 'private' }), (await created.sandbox.spawn(plan)).mode]))
created.sandbox.close()`

namespaces('a workspace with another file system in it has no private views', async () => {
  using at = place()
  const data = join(at.workspace, 'data')
  mkdirSync(data)
  const bun = [process.execPath, '--config=/dev/null', '--no-env-file', '-e', mounted, JSON.stringify(at.settings)]
  const words = ['unshare', '-Urm', '/bin/sh', '-c', 'mount -t tmpfs tmpfs "$0" && exec "$@"', data, ...bun]
  const child = Bun.spawn(words, { env: { PATH: fixedPath }, stdio: ['ignore', 'pipe', 'inherit'] })
  const [views, refused, mode] = JSON.parse(await child.stdout.text())
  const why = `another file system is mounted inside the workspace, at ${JSON.stringify(data)}`
  expect([views, refused]).toEqual([
    { ok: false, why },
    { ok: false, message: `the command cannot have a private view of the workspace: ${why}` },
  ])
  expect(mode).toBe('direct')
  expect(readdirSync(data)).toEqual([])
})

real('a sandbox that waits is not used when another folder has taken the place of the workspace', async () => {
  using box = await confined()
  await box.change(':')
  await Bun.sleep(30)
  renameSync(box.workspace, `${box.workspace}-old`)
  mkdirSync(box.workspace)
  writeFileSync(join(box.workspace, 'new'), '')
  expect((await box.change('ls')).stdout).toBe('new\n')
})

real('a link in the place of the folder for temporary files is not followed', async () => {
  using at = place()
  const stateHome = join(at.workspace, '.state')
  const [target, temporary] = [join(at.root, 'target'), join(at.root, 'tmp')]
  for (const folder of [stateHome, target, temporary]) mkdirSync(folder)
  symlinkSync(target, join(temporary, `braidclaw-${process.geteuid?.()}`))
  const { workspace, home } = at.settings
  const before = process.env.TMPDIR
  process.env.TMPDIR = temporary
  try {
    await tryOverlay({ places: { workspace, home, stateHome }, bubblewrap: '/usr/bin/bwrap', libc: openLibc() })
  } finally {
    // An undefined value would become the word "undefined".
    if (before === undefined) delete process.env.TMPDIR
    else process.env.TMPDIR = before
  }
  expect(readdirSync(target)).toEqual([])
})

real(
  'a folder outside the workspace is tried once, and kept; where no overlay of it works, or there is none, the answer is no',
  async () => {
    using box = await confined()
    const { settings, workspace } = box
    const trying = { places: { ...settings, workspace }, bubblewrap: Bun.which('bwrap', { PATH: fixedPath }) ?? '', libc: openLibc() }
    const support = await tryOverlay(trying)
    const git = join(settings.home, 'git')
    mkdirSync(git)
    const file = join(settings.stateHome, 'run/overlay-works-git')
    for (const folder of [join(git, 'missing'), '/proc/self']) expect(await overlayTakes(folder, { ...trying, support })).toBe(false)
    expect(existsSync(file)).toBe(false)
    expect(await overlayTakes(git, { ...trying, support })).toBe(true)
    expect([JSON.parse(readFileSync(file, 'utf8')).key, readdirSync(git)]).toEqual([expect.stringContaining(git), []])
  },
)

test('both ways mount the git directory before the workspace, which may lie in it', () => {
  const given = { folder: '/tx', workspace: '/bare/wt', programs: { unshare: 'unshare', mount: 'mount' }, outside: '/bare' }
  for (const way of ['bubblewrap', 'unshare'] as const) {
    const { mounts } = overlayLaunch({ ...given, way })
    expect(mounts.lastIndexOf('/bare')).toBeGreaterThanOrEqual(0)
    expect(mounts.lastIndexOf('/bare')).toBeLessThan(mounts.lastIndexOf('/bare/wt'))
    expect(mounts.some((word) => word.startsWith('/tx/'))).toBe(true)
  }
})
