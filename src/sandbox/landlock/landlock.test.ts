import { describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createSandbox } from '../create-sandbox.ts'
import { confined, spawnPlain } from '../fixture.ts'
import { openLibc } from '../libc.ts'
import { prepareGround } from '../probe/probe-fixture.ts'
import { probeSandbox } from '../run-probes.ts'
import { grantedAccess, handledAccess, landlockVersion, ruleBytes, rulesetBytes } from './landlock-launch.ts'

const version = landlockVersion(openLibc())
if (version === 0) console.warn('landlock is not tested: this kernel has none')
const real = test.if(version > 0)

describe('rules', () => {
  test('a version is asked only for what it knows', () => {
    expect([1, 2, 3, 4, 5, 7].map((abi) => handledAccess(abi).toString(16))).toEqual(['1fff', '3fff', '7fff', '7fff', 'ffff', 'ffff'])
    expect([1, 3, 4, 5, 6, 7].map((abi) => rulesetBytes(abi).length)).toEqual([8, 8, 16, 16, 24, 24])
  })
  test('a file is granted what one does to files, reading never includes writing', () => {
    const writing = 0b10 | (1 << 14) | 0b1111111110000
    for (const abi of [1, 2, 3, 5, 7]) {
      expect(grantedAccess({ grant: 'read', abi, folder: true }) & writing).toBe(0)
      expect(grantedAccess({ grant: 'write', abi, folder: false }) & ~0xc007).toBe(0)
      expect(grantedAccess({ grant: 'device', abi, folder: false }) & 1).toBe(0)
    }
  })
  test('a rule is twelve bytes, packed', () => expect([...ruleBytes(0x1fff, 258)]).toEqual([0xff, 0x1f, 0, 0, 0, 0, 0, 0, 2, 1, 0, 0]))
})

describe('landlock', () => {
  real('what lies outside is neither read nor written', async () => {
    using box = await confined({ kind: 'landlock' })
    writeFileSync(join(box.settings.home, 'key'), 'secret-bytes')
    const { stdout } = await box.run(
      `cat "${box.settings.home}/key" /etc/shadow; echo x > "${box.root}/out"; rm -rf "${box.settings.home}"; ls "${box.settings.stateHome}" /root; echo end`,
    )
    expect(stdout).toBe('end\n')
    expect(existsSync(join(box.settings.home, 'key'))).toBe(true)
    expect(readdirSync(box.root).toSorted()).toEqual(['home', 'state', 'workspace'])
  })

  real('it works in its workspace and its own TMPDIR, and ends as a plain command would', async () => {
    using box = await confined({ kind: 'landlock', name: 'with space é' })
    const ran = await box.run('mkdir d; echo x > d/f; mv d/f g; echo y > "$TMPDIR/z"; cat g "$TMPDIR/z"; yes | head -1; exit 3')
    expect(ran).toMatchObject({ code: 3, stdout: 'x\ny\ny\n' })
    expect(readFileSync(join(box.workspace, 'g'), 'utf8')).toBe('x\n')
    expect((await box.run('', { argv: ['/no/such'] })).ended).toEqual({
      ok: false,
      message: 'cannot start "/no/such": the program does not exist',
    })
    expect((await box.run('exit 126')).ended).toEqual({ ok: true, code: 126, leftBehind: false, mode: 'direct' })
  })

  real('there is no socket, no capability, no ignored signal, and no environment of ours', async () => {
    process.env.BRAIDCLAW_TEST_SECRET = 'leaked-bytes'
    using box = await confined({ kind: 'landlock' })
    const { stdout } = await box.run(
      'env; grep -E "^(CapEff|CapBnd|NoNewPrivs|Seccomp|SigIgn|SigBlk):" /proc/self/status; perl -e \'print socket(my $s, 2, 1, 0) ? "socket" : "none"\'',
    )
    delete process.env.BRAIDCLAW_TEST_SECRET
    expect(stdout).not.toContain('leaked-bytes')
    for (const line of [
      'CapEff:\t0000000000000000',
      'CapBnd:\t0000000000000000',
      'NoNewPrivs:\t1',
      'Seccomp:\t2',
      'SigIgn:\t0000000000000000',
      'SigBlk:\t0000000000000000',
    ])
      expect(stdout).toContain(line)
    expect(stdout).toEndWith('none')
  })

  real('the probe finds exactly what it is said to lack', async () => {
    const ground = prepareGround()
    mkdirSync(join(ground.settings.stateHome, 'run'), { recursive: true })
    // A secret in the workspace would close the folder above it to new names, and so to hooks.
    const created = await createSandbox({ ...ground.settings, secretPaths: [], forbiddenReads: [], kind: 'landlock', spawnPlain, log() {} })
    if (!created.ok) throw new Error(created.missing)
    const only = [
      'read a key in ~/.ssh',
      'delete a folder outside with find',
      'reach a server by address',
      'make a user namespace',
      'plant a git hook before a repository exists',
      'see a process outside',
    ]
    const results = await probeSandbox(created.sandbox, { ground, only })
    created.sandbox.close?.()
    ground.remove()
    const by = Object.fromEntries(results.filter(({ skipped }) => !skipped).map(({ attempt, layer }) => [attempt, layer]))
    expect(by).toMatchObject({
      'read a key in ~/.ssh': 'landlock',
      'delete a folder outside with find': 'landlock',
      'plant a git hook before a repository exists': 'none',
      'see a process outside': 'none',
    })
    expect(created.sandbox.describe().join()).toContain('protected paths INSIDE the workspace are not protected')
  })
})
