import { describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { needs } from '../../../test/support/needs.ts'
import type { Layer } from '../contract.ts'
import { confined } from '../fixture.ts'
import { overlayLaunch } from './overlay-support.ts'

const real = test.if(needs('bwrap'))
const python = test.if(needs('bwrap', 'python3'))

/** Prints one line for each call: what the kernel answers. */
const calls = `
import ctypes, errno, os
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
ws = os.getcwd().encode()
os.makedirs('in', exist_ok=True)
def call(name, *words):
    ctypes.set_errno(0)
    result = libc.syscall(*words)
    print(name, 'done' if result >= 0 else errno.errorcode.get(ctypes.get_errno(), '?'))
handle = (ctypes.c_ubyte * 136)(128)
at = ctypes.c_int()
call('mount an overlay', 165, b'overlay', ws + b'/in', b'overlay', 0, b'lowerdir=/usr:/etc,userxattr')
call('mount a tmpfs', 165, b'tmpfs', ws + b'/in', b'tmpfs', 0, 0)
call('bind the workspace', 165, ws, ws + b'/in', 0, 0x1000, 0)
call('remount the workspace', 165, 0, ws, 0, 0x1020, 0)
call('unmount the workspace', 166, ws, 2)
call('open the tree', 428, -100, ws, 1)
call('move a mount', 429, -100, ws, -100, ws + b'/in', 0)
call('open a file system', 430, b'overlay', 0)
call('change a mount', 442, -100, ws, 0, (ctypes.c_uint64 * 4)(), 32)
call('pivot the root', 155, ws, ws + b'/in')
call('enter a namespace of mounts', 308, os.open('/proc/self/ns/mnt', os.O_RDONLY), 0x20000)
call('name a handle', 303, -100, ws, handle, ctypes.byref(at), 0)
call('open a handle', 304, os.open(ws, os.O_RDONLY), handle, 0)
call('change the root', 161, ws + b'/in')
call('make a mark of a removed name', 133, ws + b'/white', 0o20000, 0)
for name in ('trusted.overlay.opaque', 'security.mine'):
    call('set ' + name, 188, ws + b'/in', name.encode(), b'y', 1, 0)
call('a user namespace', 272, 0x10000000 | 0x20000)
call('then unmount the workspace', 166, ws, 2)
call('then mount over it', 165, b'tmpfs', ws, b'tmpfs', 0, 0)
`

const answers = (stdout: string) =>
  new Map(
    stdout
      .trim()
      .split('\n')
      .map((line) => [line.slice(0, line.lastIndexOf(' ')), line.split(' ').at(-1)]),
  )

describe('a private view is as tight as the workspace itself', () => {
  const open: readonly (readonly [string, readonly Layer[]])[] = [
    ['with the filter', []],
    ['without the filter', ['seccomp']],
    ['without the filter, with user namespaces', ['seccomp', 'nested namespaces']],
  ]
  python.each(open)('the same calls are answered in the same way: %s', async (_, without) => {
    using box = await confined({ without })
    const script = `cat > /tmp/calls.py <<'EOF'\n${calls}\nEOF\npython3 /tmp/calls.py`
    const direct = answers((await box.run(script)).stdout)
    const own = answers((await box.change(script)).stdout)
    expect(own.size).toBe(20)
    const differing = [...own].flatMap(([name, answer]) => (direct.get(name) === answer ? [] : [`${name}: ${answer}`]))
    // An overlay refuses what the workspace itself allows: handles, and a device with the number 0, its own mark of a removed name.
    const tighter = ['name a handle: ENOTSUP', 'make a mark of a removed name: EPERM']
    expect(differing.filter((each) => !tighter.includes(each))).toEqual([])
    const done = [...own].flatMap(([name, answer]) => (answer === 'done' ? [name] : []))
    expect(done.filter((name) => !['a user namespace', 'then mount over it'].includes(name))).toEqual([])
  })

  real('its mount lets no program gain rights and no device work, and tells no path of ours', async () => {
    using box = await confined()
    const { stdout, view } = await box.change('cat /proc/self/mountinfo')
    const [line = ''] = stdout.split('\n').filter((each) => each.split(' ')[4] === box.workspace)
    expect(line.split(' ')[5]?.split(',')).toEqual(expect.arrayContaining(['rw', 'nosuid', 'nodev']))
    expect(line).toContain('lowerdir=cache:lower')
    expect(stdout).not.toContain(view.id)
    expect(stdout).not.toContain(`${box.settings.stateHome}/changes`)
    view.drop()
  })

  real('its layers cannot be reached by path', async () => {
    using box = await confined()
    const seen = await box.change(
      `ls ${box.settings.stateHome} ${box.settings.stateHome}/changes ${box.root}; find / -name up -path '*tx-*' 2>/dev/null`,
    )
    expect(seen.stdout.replaceAll(/\S+:\n/g, '').trim()).toBe('workspace')
    const descriptors = await box.change('ls -l /proc/self/fd /proc/1/cwd /proc/1/root 2>&1')
    expect(descriptors.stdout).not.toContain('tx-')
  })

  real('no process outlives its command, also one in a session of its own', async () => {
    using box = await confined()
    const { view } = await box.change(
      "setsid sh -c 'while :; do echo x >> alive; sleep 0.01; done' >/dev/null 2>&1 & while [ ! -s alive ]; do sleep 0.01; done",
    )
    const alive = () => readFileSync(join(view.folder, 'up/alive'), 'utf8')
    const before = alive()
    await Bun.sleep(60)
    expect(alive()).toBe(before)
    view.drop()
  })

  real('a cancelled command leaves a view as well, and no process', async () => {
    using box = await confined()
    const stop = new AbortController()
    const running = box.change('echo x > made; setsid sleep 60 & sleep 60', { signal: stop.signal })
    await Bun.sleep(300)
    stop.abort()
    const { view, code } = await running
    expect([code, (await view.changes()).map(({ path }) => path)]).toEqual([null, ['made']])
    view.drop()
    expect(existsSync(view.folder)).toBe(false)
  })
})

describe('files that no command may read', () => {
  real('stay hidden in a private view, cannot be replaced there, and are no change', async () => {
    using ground = await confined()
    const [secret, folder] = [join(ground.workspace, 'key.pem'), join(ground.workspace, 'private/deep')]
    mkdirSync(folder, { recursive: true })
    for (const path of [secret, join(folder, 'file')]) writeFileSync(path, 'secret-bytes')
    using box = await confined({ workspace: ground.workspace, secretPaths: [secret], forbiddenPaths: () => [folder] })
    const { stdout, stderr, view } = await box.change(
      'cat key.pem private/deep/file; echo x > key.pem; mv key.pem y; rm -rf private; ln key.pem z; cp -r . /tmp/copy; grep -r secret-bytes /tmp/copy .',
      { cwd: ground.workspace },
    )
    expect(stdout + stderr).not.toContain('secret-bytes')
    expect((await view.changes()).map(({ path }) => path)).toEqual([])
    expect(readFileSync(secret, 'utf8')).toBe('secret-bytes')
    view.drop()
  })
})

describe('the words that start it', () => {
  const programs = { unshare: '/usr/bin/unshare', mount: '/usr/bin/mount' }
  const launch = { folder: '/state/changes/tx-1', workspace: '/home/me/a,b:c', programs }

  test('bubblewrap 0.11 mounts the overlay itself: the workspace lowest, then its caches', () =>
    expect(overlayLaunch({ ...launch, way: 'bubblewrap' })).toEqual({
      before: [],
      mounts: [
        ...['--overlay-src', '/home/me/a,b:c', '--overlay-src', '/state/changes/tx-1/cache'],
        ...['--overlay', '/state/changes/tx-1/up', '/state/changes/tx-1/work', '/home/me/a,b:c'],
      ],
    }))

  test('before that a shell mounts it by names that need no quotes', () => {
    const { before, mounts } = overlayLaunch({ ...launch, way: 'unshare' })
    expect(mounts).toEqual(['--bind', '/state/changes/tx-1/mnt', '/home/me/a,b:c'])
    expect(before.slice(0, 2)).toEqual(['/usr/bin/unshare', '-Urm'])
    expect(before.join(' ')).toContain('lowerdir=cache:lower,upperdir=up,workdir=work,userxattr,volatile')
    expect(before.join(' ')).not.toContain('a,b:c')
  })
})
