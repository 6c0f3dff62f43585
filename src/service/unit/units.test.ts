import { describe, expect, test } from 'bun:test'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { needs } from '../../../test/support/needs.ts'
import { launchdManager, launchdPlist } from './launchd.ts'
import { runProgram, type ServiceRun } from './service-run.ts'
import { systemdManager, systemdUnit } from './systemd.ts'

/** A folder and a program with every character that a unit file gives a meaning. */
function odd(): ServiceRun & Disposable {
  const root = mkdtempSync(join(tmpdir(), 'braidclaw-unit-'))
  const folder = join(root, 'a b %h $HOME "q" \\ <&>\'')
  mkdirSync(folder)
  const program = join(root, 'c d %h $HOME braidclaw')
  writeFileSync(program, '#!/bin/sh\n')
  chmodSync(program, 0o755)
  const argv = [program, 'serve', '--port', '4200', '${X} %i "two words"'] as const
  return {
    argv: [...argv],
    env: { HOME: folder, PATH: '/usr/bin:/bin' },
    folder,
    logPath: join(root, 'log'),
    [Symbol.dispose]: () => rmSync(root, { recursive: true }),
  }
}

/** Lets systemd verify a unit, which it never starts. */
function verified({ logPath }: ServiceRun, run: ServiceRun): { readonly exitCode: number; readonly says: string } {
  const folder = join(logPath, '..')
  const unit = join(folder, 'braidclaw.service')
  writeFileSync(unit, systemdUnit(run))
  const { exitCode, stderr } = Bun.spawnSync(['systemd-analyze', 'verify', '--user', '--man=no', unit], {
    env: { ...process.env, XDG_RUNTIME_DIR: folder },
  })
  return { exitCode, says: stderr.toString() }
}

describe('systemd', () => {
  const analysed = test.if(needs('systemd-analyze'))

  analysed('systemd itself finds no fault in the unit, whatever characters its paths have', () => {
    using run = odd()
    expect(verified(run, run)).toEqual({ exitCode: 0, says: '' })
  })

  analysed('systemd finds the fault of a unit whose program does not exist', () => {
    using run = odd()
    expect(verified(run, { ...run, argv: ['/nonexistent/braidclaw'] }).says).toContain('/nonexistent/braidclaw')
  })

  test('a program that systemd would refuse is refused before anything is written, with the reason', () => {
    using run = odd()
    expect(() => systemdUnit({ ...run, argv: ["/a'b/braidclaw"] })).toThrow('install it elsewhere')
  })

  test('a dollar stays one in an assignment, and is doubled in the command line', () => {
    using run = odd()
    const text = systemdUnit({ ...run, argv: ['/bin/b', '$x'], env: { HOME: '/home/$me' } })
    expect(text).toContain('\nEnvironment="HOME=/home/$me"\n')
    expect(text).toContain('\nExecStart="/bin/b" "$$x"\n')
  })

  test('a line break in a path is refused, because it would add a line to the unit', () => {
    using run = odd()
    expect(() => systemdUnit({ ...run, folder: '/a\nExecStart=/bin/evil' })).toThrow('contains a line break')
    expect(() => systemdUnit({ ...run, argv: ['/a', 'b\nc'] })).toThrow('contains a line break')
  })

  test('install writes the file for its owner alone and enables it; state reads what systemctl shows', async () => {
    using run = odd()
    using fake = fakeProgram(
      'systemctl',
      'case "$*" in *show\\ *) printf "ActiveState=active\\nSubState=running\\nMainPID=42\\nNRestarts=3\\nExecMainStatus=0\\nActiveEnterTimestamp=@1700000000\\n" ;; esac',
    )
    const manager = systemdManager({ configHome: fake.folder, uid: 1000, run: runProgram(fake.env), exists: existsSync })
    await manager.install(run)
    expect(readFileSync(manager.file, 'utf8')).toBe(systemdUnit(run))
    expect(manager.argv()).toEqual(run.argv)
    expect(fake.calls()).toEqual(['--user daemon-reload', '--user enable braidclaw.service'])
    expect(await manager.state()).toEqual({ installed: true, running: true, pid: 42, since: 1_700_000_000_000, restarts: 3 })
    await manager.uninstall()
    expect(existsSync(manager.file)).toBe(false)
  })

  test('the command line of a unit that somebody else wrote is not guessed', () => {
    using run = odd()
    const manager = systemdManager({ configHome: run.folder, uid: 1000, run: runProgram({}), exists: existsSync })
    expect(manager.argv()).toBeUndefined()
    mkdirSync(join(manager.file, '..'), { recursive: true })
    writeFileSync(manager.file, '[Service]\nExecStart=%h/.local/bin/braidclaw daemon\n')
    expect(manager.argv()).toBeUndefined()
  })

  test('a failure of systemctl says which command failed and why', async () => {
    using run = odd()
    using fake = fakeProgram('systemctl', 'echo "Failed to connect to bus" >&2; exit 1')
    const manager = systemdManager({ configHome: fake.folder, uid: 1000, run: runProgram(fake.env), exists: existsSync })
    await expect(manager.install(run)).rejects.toThrow('"systemctl --user daemon-reload" failed with exit code 1: Failed to connect to bus')
  })
})

describe('launchd', () => {
  test.if(needs('python3'))("another program's parser of property lists reads back what was given", () => {
    using run = odd()
    const script = 'import plistlib,sys,json; print(json.dumps(plistlib.loads(sys.stdin.buffer.read())))'
    const { stdout } = Bun.spawnSync(['python3', '-c', script], { stdin: Buffer.from(launchdPlist(run)) })
    const parsed: unknown = JSON.parse(stdout.toString())
    expect(parsed).toMatchObject({
      Label: 'com.braidclaw.serve',
      ProgramArguments: run.argv,
      EnvironmentVariables: run.env,
      WorkingDirectory: run.folder,
      KeepAlive: { SuccessfulExit: false },
      Umask: 0o077,
    })
  })

  test('start replaces an older one; state reads pid and restarts', async () => {
    using run = odd()
    using fake = fakeProgram('launchctl', 'case $1 in print) printf "x = {\\n\\tpid = 77\\n\\truns = 2\\n}\\n" ;; bootout) exit 3 ;; esac')
    const manager = launchdManager({ userHome: fake.folder, uid: 501, run: runProgram(fake.env), exists: existsSync, logPath: '/l' })
    await manager.install(run)
    expect(manager.argv()).toEqual(run.argv)
    await manager.start()
    expect(fake.calls()).toEqual([
      'enable gui/501/com.braidclaw.serve',
      'bootout gui/501/com.braidclaw.serve',
      `bootstrap gui/501 ${manager.file}`,
    ])
    expect(await manager.state()).toEqual({ installed: true, running: true, pid: 77, restarts: 1 })
  })
})

function fakeProgram(name: string, body: string) {
  const folder = mkdtempSync(join(tmpdir(), 'braidclaw-fake-'))
  const calls = join(folder, 'calls')
  writeFileSync(join(folder, name), `#!/bin/sh\necho "$*" >>"${calls}"\n${body}\n`)
  chmodSync(join(folder, name), 0o755)
  return {
    folder,
    env: { PATH: `${folder}:/usr/bin:/bin` },
    calls: () => readFileSync(calls, 'utf8').trim().split('\n'),
    [Symbol.dispose]: () => rmSync(folder, { recursive: true }),
  }
}
