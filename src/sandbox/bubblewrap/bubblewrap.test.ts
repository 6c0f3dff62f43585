import { describe, expect, test } from 'bun:test'
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isDeep } from '../../../test/support/tier.ts'
import { createSandbox } from '../create-sandbox.ts'
import { confined, hasBubblewrap, place } from '../fixture.ts'
import { install } from '../install.ts'

if (!hasBubblewrap()) console.warn(`sandbox tests with bubblewrap are left out: ${install}`)
const real = test.if(hasBubblewrap())

describe('what a command cannot do', () => {
  real('it neither changes nor leaves behind anything that is protected', async () => {
    using box = await confined()
    const { code, stderr } = await box.run(
      'mkdir .git/hooks; rm -rf .git; rmdir .bashrc; mv .vscode x; echo a > .mcp.json; echo a > .envrc',
    )
    expect(code).not.toBe(0)
    expect(stderr.split('\n').length).toBeGreaterThan(5)
    expect(readdirSync(box.workspace)).toEqual([])
  })

  real('it cannot move a repository, or a folder above one, out of the way', async () => {
    using ground = place()
    mkdirSync(join(ground.workspace, 'a/b/.git/hooks'), { recursive: true })
    writeFileSync(join(ground.workspace, 'a/b/.git/config'), 'mine')
    using box = await confined({ workspace: ground.workspace })
    const { stdout } = await box.run(
      'for path in a a/b a/b/.git a/b/.git/hooks; do mv $path moved 2>/dev/null && echo $path; done; echo x >> a/b/.git/config; echo x > a/b/.git/commondir; echo done',
      { cwd: ground.workspace },
    )
    expect(stdout).toBe('done\n')
    expect(readFileSync(join(ground.workspace, 'a/b/.git/config'), 'utf8')).toBe('mine')
    expect(readdirSync(join(ground.workspace, 'a/b/.git')).toSorted()).toEqual(['config', 'hooks'])
  })

  real('a protected name that is a symbolic link stops the command before it starts', async () => {
    using box = await confined()
    symlinkSync(box.root, join(box.workspace, '.vscode'))
    expect((await box.run('touch ran')).ended).toEqual({
      ok: false,
      message: expect.stringContaining('.vscode: this protected name is a symbolic link'),
    })
    expect(readdirSync(box.workspace)).toEqual(['.vscode'])
  })

  real('extra protected paths hold too, whether they exist or not', async () => {
    using box = await confined({ protectedPaths: ['deploy.sh', 'keys'] })
    writeFileSync(join(box.workspace, 'deploy.sh'), 'mine')
    await box.run('echo x > deploy.sh; rm deploy.sh; mkdir -p keys/new')
    expect(readFileSync(join(box.workspace, 'deploy.sh'), 'utf8')).toBe('mine')
    expect(readdirSync(box.workspace)).toEqual(['deploy.sh'])
  })

  real('secrets in the workspace, and our state if it lies there, cannot be read', async () => {
    using ground = place()
    const inside = join(ground.workspace, 'state')
    mkdirSync(inside)
    for (const name of ['state/receipt.key', 'key.pem']) writeFileSync(join(ground.workspace, name), 'secret-bytes')
    const created = await createSandbox({ ...ground.settings, stateHome: inside, secretPaths: [join(ground.workspace, 'key.pem')] })
    if (!created.ok) throw new Error(created.missing)
    let output = ''
    const onOutput = (chunk: Uint8Array) => {
      output += Buffer.from(chunk).toString()
    }
    await created.sandbox.spawn({
      argv: ['/bin/sh', '-c', 'cat key.pem state/receipt.key; ls -R state; chmod 700 key.pem; cat key.pem'],
      cwd: ground.workspace,
      env: {},
      signal: new AbortController().signal,
      onOutput,
    })
    created.sandbox.close?.()
    expect(output).not.toContain('secret-bytes')
    expect(output).toContain('Permission denied')
  })

  real('system folders, the home and /run are not there or not writable', async () => {
    using box = await confined()
    const { stdout } = await box.run(
      'for path in /usr/x /etc/x /x /var/x /dev/x /proc/sys/kernel/core_pattern "$1"; do { true >> $path; } 2>/dev/null && echo $path; done; ls /run /home /root /sys /var/run /mnt 2>/dev/null; echo end',
    )
    expect(stdout).toBe('end\n')
  })

  real('the environment is what the plan says, and not ours', async () => {
    process.env.BRAIDCLAW_TEST_SECRET = 'leaked-bytes'
    using box = await confined()
    const { stdout } = await box.run("env; tr '\\0' '\\n' < /proc/1/environ; cat /proc/$PPID/environ")
    delete process.env.BRAIDCLAW_TEST_SECRET
    expect(stdout).not.toContain('leaked-bytes')
    expect(stdout).toContain('HOME=/tmp\n')
  })

  real('it has the user that owns our files and no rights of root', async () => {
    using box = await confined()
    const { stdout } = await box.run('id -u; grep -E "^(CapEff|CapPrm|CapBnd|NoNewPrivs|Seccomp):" /proc/self/status')
    const [uid, ...rest] = stdout.trim().split('\n')
    expect(Number(uid)).toBe(process.geteuid?.() ?? -1)
    expect(rest.map((line) => line.replace(/\s+/, ' '))).toEqual([
      'CapPrm: 0000000000000000',
      'CapEff: 0000000000000000',
      'CapBnd: 0000000000000000',
      'NoNewPrivs: 1',
      'Seccomp: 2',
    ])
  })

  real('a process that escapes into a session of its own dies with the command', async () => {
    using box = await confined()
    const { ended } = await box.run(
      "setsid sh -c 'while :; do echo x > alive; sleep 0.01; done' >/dev/null 2>&1 & while [ ! -e alive ]; do sleep 0.01; done",
    )
    expect(ended).toMatchObject({ ok: true, code: 0 })
    await Bun.$`rm ${join(box.workspace, 'alive')}`
    await Bun.sleep(60)
    expect(readdirSync(box.workspace)).toEqual([])
  })

  real('an abort ends all of it at once, and nothing stays', async () => {
    using box = await confined()
    const stop = new AbortController()
    const running = box.run("setsid sh -c 'sleep 0.3; echo x > alive' & trap '' TERM INT HUP; echo up > up; while :; do sleep 1; done", {
      signal: stop.signal,
    })
    while (!existsSync(join(box.workspace, 'up'))) await Bun.sleep(2)
    stop.abort()
    expect((await running).ended).toEqual({ ok: true, code: null, signal: 'SIGKILL', leftBehind: false, mode: 'direct' })
    await Bun.sleep(350)
    expect(readdirSync(box.workspace)).toEqual(['up'])
  })

  real('an abort before the start starts nothing', async () => {
    using box = await confined()
    expect((await box.run('touch ran', { signal: AbortSignal.abort() })).ended).toMatchObject({ ok: false })
    expect(readdirSync(box.workspace)).toEqual([])
  })

  real('a sandbox that cannot enter its limits runs nothing', async () => {
    const limits = { memoryBytes: 2 ** 29, processes: -1, fileBytes: 1, cpuSeconds: 1 }
    using box = await confined({ limits }).catch((error: unknown) => ({ error, [Symbol.dispose]() {} }))
    expect(box).toHaveProperty('error')
  })
})

describe('what a command can do', () => {
  real('it works in its workspace, writes /tmp and pipes', async () => {
    using box = await confined()
    const ran = await box.run(
      'printf "b\\na\\n" | sort > sorted; mkdir -p d/e; mv sorted d/e/; cp d/e/sorted /tmp/x; cat /tmp/x; echo warn >&2; yes | head -1; exit 7',
    )
    expect(ran).toMatchObject({ code: 7, stdout: 'a\nb\ny\n', stderr: 'warn\n' })
    expect(existsSync('/tmp/x')).toBe(false)
    expect(readFileSync(join(box.workspace, 'd/e/sorted'), 'utf8')).toBe('a\nb\n')
  })

  real('git commits in a repository whose hooks and settings it cannot change', async () => {
    using box = await confined()
    await Bun.$`git init -q ${box.workspace}`.env({ PATH: '/usr/bin:/bin', HOME: box.settings.home })
    const { code, stdout, stderr } = await box.run(
      'echo x > f && git add f && git -c user.name=a -c user.email=a@b commit -qm one && git log --format=%s && git status --short',
    )
    expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: 'one\n', stderr: '' })
  })

  const names = ['quote\'"$x`y`', 'with space', 'ünïcödé 日本', 'back\\slash', 'line\nbreak', '-dash', 'a:b,c']
  real.each(isDeep ? names : names.slice(0, 1))('in a workspace named %j', async (name) => {
    using box = await confined({ name })
    const { code, stdout } = await box.run('pwd; touch made; touch .bashrc/x')
    expect({ code, stdout }).toEqual({ code: 1, stdout: `${box.workspace}\n` })
    expect(readdirSync(box.workspace)).toEqual(['made'])
  })

  real('in a workspace reached through a symbolic link', async () => {
    using ground = place()
    await Bun.$`ln -s ${ground.workspace} ${ground.root}/link`
    const created = await createSandbox({ ...ground.settings, workspace: join(ground.root, 'link') })
    if (!created.ok) throw new Error(created.missing)
    const plan = {
      argv: ['/bin/touch', 'made'],
      cwd: join(ground.root, 'link'),
      env: {},
      signal: new AbortController().signal,
      onOutput() {},
    }
    expect(await created.sandbox.spawn(plan)).toMatchObject({ ok: true, code: 0 })
    created.sandbox.close?.()
    expect(readdirSync(ground.workspace)).toEqual(['made'])
  })

  real('in a workspace that lies in our state or in the home', async () => {
    using ground = place()
    for (const folder of [ground.settings.stateHome, ground.settings.home]) {
      const workspace = join(folder, 'work')
      mkdirSync(workspace)
      writeFileSync(join(folder, 'secret'), 'secret-bytes')
      const created = await createSandbox({ ...ground.settings, workspace })
      if (!created.ok) throw new Error(created.missing)
      let output = ''
      const onOutput = (chunk: Uint8Array) => {
        output += Buffer.from(chunk).toString()
      }
      await created.sandbox.spawn({
        argv: ['/bin/sh', '-c', 'ls -A ..; cat ../secret; touch made'],
        cwd: workspace,
        env: {},
        signal: new AbortController().signal,
        onOutput,
      })
      created.sandbox.close?.()
      expect(output).not.toContain('secret-bytes')
      expect(output).toStartWith('work\n')
      expect(readdirSync(workspace)).toEqual(['made'])
    }
  })

  real('a workspace that is read-only needs no place holders', async () => {
    using box = await confined()
    chmodSync(box.workspace, 0o555)
    const { stdout } = await box.run('echo ran')
    chmodSync(box.workspace, 0o755)
    expect(stdout).toBe('ran\n')
    expect(readdirSync(box.workspace)).toEqual([])
  })

  real('many at once share the place holders', async () => {
    using box = await confined()
    const all = await Promise.all(Array.from({ length: 6 }, (_, at) => box.run(`sleep 0.0${at}; touch .envrc/x; touch f${at}`)))
    expect(all.map(({ code }) => code)).toEqual([0, 0, 0, 0, 0, 0])
    expect(readdirSync(box.workspace).toSorted()).toEqual(['f0', 'f1', 'f2', 'f3', 'f4', 'f5'])
  })

  real('floods of output arrive whole, and no descriptor is lost', async () => {
    using box = await confined()
    const descriptors = () => readdirSync('/proc/self/fd').length
    await box.run(':')
    // From then on one sandbox waits for the next command.
    await box.run(':')
    const before = descriptors()
    const { stdout } = await box.run('head -c 3000000 /dev/zero | tr "\\0" x')
    expect(stdout.length).toBe(3_000_000)
    for (let at = 0; at < 12; at++) await box.run(':')
    // The runtime closes some descriptors a little later; a leak would add one or two per command.
    expect(descriptors()).toBeLessThan(before + 8)
  })

  real('it ends as a plain command would', async () => {
    using box = await confined()
    expect((await box.run('kill -9 $$')).ended).toEqual({ ok: true, code: 137, leftBehind: false, mode: 'direct' })
    expect((await box.run('', { argv: ['/no/such/program'] })).ended).toEqual({
      ok: false,
      message: 'cannot start "/no/such/program": the program does not exist in the sandbox',
    })
    expect((await box.run('', { argv: [] })).ended).toMatchObject({ ok: false })
    expect((await box.run('', { argv: ['/bin/pwd'], cwd: join(box.workspace, 'gone') })).ended).toEqual({
      ok: false,
      message: expect.stringContaining('gone'),
    })
    expect((await box.run('', { argv: ['/bin/pwd'], cwd: box.settings.home })).ended).toMatchObject({ ok: false })
    expect((await box.run('', { argv: ['true'] })).ended).toMatchObject({ ok: true, code: 0 })
  })
})

real('closing takes back the folder and the control group, and the next start sweeps what a crash left', async () => {
  const left = (state: string) => readdirSync(join(state, 'run')).filter((name) => name.startsWith('sandbox-'))
  using box = await confined()
  const state = box.settings.stateHome
  // Copies the name of the existing folder, with the number of a process that does not exist.
  mkdirSync(join(state, 'run', left(state)[0]?.replace(/-\d+-\d+-\w+$/, '-999999999-1-crash') ?? ''))
  expect(left(state)).toHaveLength(2)
  const created = await createSandbox(box.settings)
  expect(left(state)).toHaveLength(2)
  if (created.ok) created.sandbox.close?.()
  expect(left(state)).toHaveLength(1)
})

real('it says which layers it has, and what root lacks', async () => {
  using box = await confined()
  const words = box.describe().join('\n')
  for (const layer of [
    'mount namespace',
    'protected paths',
    'hidden files',
    'network namespace',
    'pid namespace',
    'seccomp',
    'limits',
    'environment',
  ])
    expect(words).toContain(layer)
})
