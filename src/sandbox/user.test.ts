import { expect, test } from 'bun:test'
import { chmodSync, chownSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { hasBubblewrap, place } from './fixture.ts'
import { fixedPath } from './trial-key.ts'

/** Only root can switch to an ordinary user, and tests as root prove nothing about ordinary users. */
const canSwitch = hasBubblewrap() && process.getuid?.() === 0 && Bun.which('setpriv') !== null
if (!canSwitch)
  console.warn('the sandbox of an ordinary user is not tested apart: this is no root that could become one, or there is no bwrap')

const NOBODY = 65534

const script = (module: string) => `
const { createSandbox } = await import(${JSON.stringify(join(module, 'create-sandbox.ts'))})
const { probeSandbox } = await import(${JSON.stringify(join(module, 'run-probes.ts'))})
const { prepareGround } = await import(${JSON.stringify(join(module, 'probe/probe-fixture.ts'))})
const { spawnPlain } = await import(${JSON.stringify(join(module, 'fixture.ts'))})
const ground = prepareGround()
const created = await createSandbox({ ...ground.settings, kind: 'bubblewrap', spawnPlain, log() {} })
if (!created.ok) { console.log(created.missing); process.exit(1) }
const results = await probeSandbox(created.sandbox, { ground, only: JSON.parse(process.argv[1]) })
created.sandbox.close()
ground.remove()
console.log(JSON.stringify(results.filter(({ skipped }) => !skipped).map(({ attempt, layer }) => [attempt, layer])))`

test.if(canSwitch)(
  'an ordinary user is confined as well, and its forks are counted by the kernel',
  async () => {
    using at = place()
    const home = join(at.root, 'user')
    mkdirSync(home)
    chownSync(home, NOBODY, NOBODY)
    chmodSync(at.root, 0o755)
    const program = join(home, 'bun')
    await Bun.$`cp --reflink=auto ${process.execPath} ${program} && cp -r ${import.meta.dir} ${import.meta.dir}/../security ${import.meta.dir}/../kit ${home} && chmod -R a+rX ${home}`
    const only = [
      'read a key in ~/.ssh',
      'read /etc/shadow',
      'fork without end',
      'kill a process outside',
      'write start-up and editor files',
      'become root',
      'take memory without end',
    ]
    const words = [
      'setpriv',
      '--reuid',
      String(NOBODY),
      '--regid',
      String(NOBODY),
      '--clear-groups',
      program,
      '--config=/dev/null',
      '-e',
      script(join(home, 'sandbox')),
      JSON.stringify(only),
    ]
    const child = Bun.spawn(words, { env: { PATH: fixedPath, HOME: home, TMPDIR: home }, cwd: home, stdio: ['ignore', 'pipe', 'pipe'] })
    const [stdout, stderr] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
    expect(stderr).toBe('')
    expect(Object.fromEntries(JSON.parse(stdout))).toEqual({
      'read a key in ~/.ssh': 'mount namespace',
      'read /etc/shadow': 'file permissions',
      'fork without end': 'limits',
      'kill a process outside': 'pid namespace',
      'write start-up and editor files': 'protected paths',
      'become root': 'user namespace',
      'take memory without end': 'limits',
    })
  },
  120_000,
)
