import { describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { needs } from '../../test/support/needs.ts'
import { createGroup, groupMemory } from './bubblewrap/cgroup.ts'
import { createSandbox } from './create-sandbox.ts'
import { limits, place } from './fixture.ts'
import { advice } from './install.ts'
import { isWithin, resolvePlaces } from './protect/places.ts'

describe('a folder that can be no workspace', () => {
  using at = place()
  const { home, stateHome } = at.settings
  test.each([
    ['/', 'home folder'],
    ['/etc', 'belongs to the system'],
    ['/etc/ssl', 'belongs to the system'],
    ['/usr', 'belongs to the system'],
    ['/proc/self', 'belongs to the system'],
    ['/tmp', 'home folder'],
    ['relative', 'not absolute'],
    ['/nowhere/at/all', 'the folder does not exist'],
    ['/etc/passwd', 'the folder does not exist'],
  ])('%s is refused', (workspace, why) => {
    expect(resolvePlaces({ workspace, home, stateHome })).toEqual({ ok: false, missing: expect.stringContaining(why) })
  })

  test('nor the home, what contains it, a link to it, or our state', () => {
    using own = place()
    symlinkSync(own.settings.home, join(own.root, 'link'))
    const refused = (workspace: string) => resolvePlaces({ ...own.settings, workspace })
    for (const workspace of [own.settings.home, own.root, join(own.root, 'link')])
      expect(refused(workspace)).toEqual({ ok: false, missing: expect.stringContaining('your home folder') })
    expect(refused(own.settings.stateHome)).toEqual({ ok: false, missing: expect.stringContaining('receipts') })
  })

  test('the sandbox says so instead of starting', async () => {
    using own = place()
    expect(await createSandbox({ ...own.settings, workspace: own.settings.home })).toMatchObject({ ok: false })
  })
})

test('a folder contains itself and what is below it, not its namesakes', () => {
  expect([isWithin('/a', '/a'), isWithin('/a/b', '/a'), isWithin('/a', '/')]).toEqual([true, true, true])
  expect([isWithin('/ab', '/a'), isWithin('/', '/a')]).toEqual([false, false])
})

test('no confinement only when it is asked for by name, and it says what it is', async () => {
  using at = place({ kind: 'none' })
  const created = await createSandbox(at.settings)
  expect(created).toMatchObject({ ok: true, sandbox: { name: 'none' } })
  expect(created.ok && created.sandbox.describe().join()).toContain('all the rights of this user')
})

test('allowed domains without a way to reach them are refused, not ignored', async () => {
  for (const kind of ['bubblewrap', 'landlock', 'auto'] as const) {
    using at = place({ kind, allowedDomains: ['example.org'] })
    expect(await createSandbox(at.settings)).toMatchObject({ ok: false, missing: expect.any(String) })
    const run = join(at.settings.stateHome, 'run')
    expect(existsSync(run) ? readdirSync(run).filter((name) => name.startsWith('sandbox-')) : []).toEqual([])
  }
})

test.if(needs('bwrap'))('a state folder that cannot be written to is named', async () => {
  using at = place()
  writeFileSync(join(at.settings.stateHome, 'run'), 'a file where a folder should be')
  expect(await createSandbox(at.settings)).toEqual({ ok: false, missing: expect.stringContaining(join(at.settings.stateHome, 'run')) })
})

describe('advice', () => {
  const only = (path: string, value: string) => ({ read: (asked: string) => (asked === path ? value : ''), exists: () => false })
  const nothing = { read: () => '', exists: () => false }
  test.each([
    ['/proc/sys/kernel/unprivileged_userns_clone', '0', 'sudo sysctl -w kernel.unprivileged_userns_clone=1'],
    ['/proc/sys/user/max_user_namespaces', '0', 'sudo sysctl -w user.max_user_namespaces=10000'],
    ['/proc/sys/kernel/apparmor_restrict_unprivileged_userns', '1', 'AppArmor'],
    ['/nothing', '1', 'container'],
  ])('%s = %s', (path, value, words) => {
    const { words: line, remedy } = advice('', only(path, value))
    expect([line, remedy.join('\n')]).toEqual([expect.stringContaining(words), expect.stringContaining(words)])
  })

  test('for AppArmor copies the profile of bubblewrap to where it is loaded from, and loads it', () => {
    const { words, remedy } = advice('', only('/proc/sys/kernel/apparmor_restrict_unprivileged_userns', '1'))
    const commands = [
      'sudo apt install apparmor-profiles',
      'sudo cp /usr/share/apparmor/extra-profiles/bwrap-userns-restrict /etc/apparmor.d/',
      'sudo apparmor_parser -r /etc/apparmor.d/bwrap-userns-restrict',
    ]
    expect(remedy.slice(1)).toEqual(commands.map((command) => `  ${command}`))
    expect(words).toEndWith(`: ${commands.join(' && ')}`)
  })

  test('takes the refusal of a uid map for AppArmor, also where its switch is not seen', () =>
    expect(advice('bwrap: setting up uid map: Permission denied', nothing).remedy.join('\n')).toContain('apparmor_parser -r'))

  test('for a container names its options, beside a switch that stands wrong', () => {
    const { remedy } = advice('', { ...nothing, exists: (path) => path === '/.dockerenv' })
    expect(remedy.join('\n')).toContain('docker run --security-opt seccomp=unconfined --security-opt apparmor=unconfined')
    const both = advice('', { ...only('/proc/sys/user/max_user_namespaces', '0'), exists: () => true }).remedy.join('\n')
    expect([both.includes('sysctl'), both.includes('podman run')]).toEqual([true, true])
  })

  test('does not blame switches that stand right', () => expect(advice('', nothing).words).not.toContain('sysctl'))
})

describe('control groups', () => {
  test('version 1: one folder in each hierarchy, entered by the thread itself', () => {
    using at = place()
    for (const name of ['pids', 'memory']) mkdirSync(join(at.root, name), { recursive: true })
    const own = readFileSync('/proc/self/cgroup', 'utf8')
    const paths = ['pids', 'memory'].map((name) => new RegExp(`:${name}:(.*)$`, 'm').exec(own)?.[1] ?? '/')
    for (const [at_, path] of paths.entries()) mkdirSync(join(at.root, ['pids', 'memory'][at_] ?? '', path), { recursive: true })
    const group = createGroup({ limits, root: at.root })
    expect(group?.join.every((file) => file.endsWith('/tasks'))).toBe(true)
    expect(group?.words).toBe(`pids.max ${limits.processes + 3}, memory.limit_in_bytes ${groupMemory(limits)}`)
  })

  test('version 2: only where the controllers are handed down', () => {
    using at = place()
    writeFileSync(join(at.root, 'cgroup.controllers'), 'pids memory')
    mkdirSync(join(at.root, 'never'))
    writeFileSync(join(at.root, 'cgroup.subtree_control'), 'cpu pids memory')
    const group = createGroup({ limits, root: at.root })
    expect(group?.join[0]).toMatch(/braidclaw-\d+-[\da-f]{8}\/cgroup\.procs$/)
    expect(readFileSync(join(group?.join[0] ?? '', '../memory.max'), 'utf8')).toBe(String(groupMemory(limits)))
  })

  test('nowhere to make one: none', () => {
    using at = place()
    expect(createGroup({ limits, root: join(at.root, 'nothing') })).toBeUndefined()
  })
})
