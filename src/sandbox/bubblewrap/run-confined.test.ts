import { describe, expect, test } from 'bun:test'
import { fstatSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { hasBubblewrap } from '../fixture.ts'
import { install } from '../install.ts'
import { openLibc } from '../libc.ts'
import { receiver } from '../pipes/command-pipes.ts'
import { fixedPath } from '../trial-key.ts'
import { descriptors, discard, isWaiting, runConfined, startWaiting, type WaitingSandbox } from './run-confined.ts'
import { createGate } from './warm-sandbox.ts'

if (!hasBubblewrap()) console.warn(`sandboxes that are sent away are not tested: ${install}`)
const real = test.if(hasBubblewrap())

/** Starts a waiting sandbox that would create `ran` in the folder if it ever continued without a command. */
function waitingIn(folder: string, ...options: string[]): WaitingSandbox {
  const walls = ['--unshare-pid', '--ro-bind', '/', '/', '--dev', '/dev', '--bind', folder, folder, '--chdir', folder]
  const reports = ['--json-status-fd', descriptors.status, '--block-fd', descriptors.go]
  const [shell = '', c = '', script = '', ...rest] = receiver(descriptors.command)
  const argv = ['bwrap', ...options, ...walls, ...reports, '--', shell, c, `echo > ran; ${script}`, ...rest]
  const waiting = startWaiting({ argv, env: { PATH: fixedPath }, filter: undefined, libc: openLibc() })
  if (waiting instanceof Error) throw waiting
  return waiting
}

function place(): { readonly folder: string } & Disposable {
  const folder = mkdtempSync(join(tmpdir(), 'braidclaw-dismiss-'))
  return { folder, [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }) }
}

/** Returns the living processes that were started for the folder, without unreaped zombies. */
function alive(folder: string): string[] {
  return readdirSync('/proc').filter(
    (name) => /^\d+$/.test(name) && read(name, 'cmdline').includes(folder) && !/\) [ZX] /.test(read(name, 'stat')),
  )
}

function read(pid: string, what: string): string {
  try {
    return readFileSync(`/proc/${pid}/${what}`, 'utf8')
  } catch {
    return ''
  }
}

/** Waits until the inner process has started: bubblewrap reports its number before it waits. */
async function settled(folder: string): Promise<void> {
  while (alive(folder).length < 2) await Bun.sleep(1)
}

const isOpen = (descriptor: number) => {
  try {
    return fstatSync(descriptor) !== undefined
  } catch {
    return false
  }
}

describe('a sandbox that gets no command', () => {
  real('is dead with all of its processes once it is sent away, and never goes on', async () => {
    using at = place()
    const waiting = waitingIn(at.folder)
    await settled(at.folder)
    expect(isWaiting(waiting)).toBe(true)
    await discard(waiting)
    expect(alive(at.folder)).toEqual([])
    expect(isWaiting(waiting)).toBe(false)
    await Bun.sleep(30)
    expect(readdirSync(at.folder)).toEqual([])
  })

  real('leaves no descriptor open', async () => {
    using at = place()
    const waiting = waitingIn(at.folder)
    const held = [waiting.report, waiting.command, waiting.go]
    expect(held.map(isOpen)).toEqual([true, true, true])
    await settled(at.folder)
    await discard(waiting)
    expect(held.map(isOpen)).toEqual([false, false, false])
  })

  real('may be sent away before it has reported anything', async () => {
    using at = place()
    for (let delay = 0; delay < 12; delay++) {
      const waiting = waitingIn(at.folder)
      await Bun.sleep(delay / 2)
      await discard(waiting)
    }
    while (alive(at.folder).length > 0) await Bun.sleep(1)
    expect(readdirSync(at.folder)).toEqual([])
  })

  real(
    'is gone when its owner is killed while it starts: bubblewrap lets its inner process go on, which then finds the gate shut',
    async () => {
      using at = place()
      const walls = ['--unshare-user', '--unshare-pid', '--unshare-net', '--die-with-parent', '--json-status-fd', descriptors.status]
      const links = ['bin', 'lib', 'lib64'].flatMap((name) => ['--symlink', `usr/${name}`, `/${name}`])
      const gate = createGate({ folder: at.folder, cover: (path) => ['--tmpfs', path], sealed: true })
      const argv = ['bwrap', ...walls, '--ro-bind', '/usr', '/usr', ...links, ...gate.arguments, '--', '/bin/sleep', '60']
      const script = `
      const { startWaiting } = await import(${JSON.stringify(join(import.meta.dir, 'run-confined.ts'))})
      const { openLibc } = await import(${JSON.stringify(join(import.meta.dir, '../libc.ts'))})
      const env = { PATH: ${JSON.stringify(fixedPath)} }
      const started = startWaiting({ argv: ${JSON.stringify(argv)}, env, filter: undefined, libc: openLibc() })
      if (started instanceof Error) throw started
      process.kill(process.pid, 'SIGKILL')`
      for (let round = 0; round < 12; round++) {
        const owner = Bun.spawn([process.execPath, '--config=/dev/null', '--no-env-file', '-e', script], { stderr: 'inherit' })
        await owner.exited
        expect(owner.signalCode).toBe('SIGKILL')
      }
      // One that is just starting does not carry its mark yet.
      for (let tries = 0, none = 0; tries < 500 && none < 30; tries++) {
        none = alive(at.folder).length === 0 ? none + 1 : 0
        await Bun.sleep(10)
      }
      expect(alive(at.folder)).toEqual([])
    },
  )

  real('may have died by itself', async () => {
    using at = place()
    const waiting = waitingIn(at.folder, '--no-such-option')
    await waiting.child.exited
    await discard(waiting)
    expect([waiting.report, waiting.command, waiting.go].map(isOpen)).toEqual([false, false, false])
  })

  real('is not taken for one that got its command', async () => {
    using at = place()
    const waiting = waitingIn(at.folder)
    const plan = { signal: new AbortController().signal, onOutput() {} }
    const command = { argv: ['/bin/true'], cwd: at.folder, env: { PATH: fixedPath } }
    expect(await runConfined({ waiting, command, plan, prepare: () => undefined })).toEqual({ ok: true, code: 0, leftBehind: false })
    expect(readdirSync(at.folder)).toEqual(['ran'])
  })
})

real('a sandbox whose mounts are not what they should be gets no command and ends, and the message says why', async () => {
  using at = place()
  const asked: number[] = []
  const inspect = async (pid: number) => {
    asked.push(pid)
    return '"sub/.npmrc" was changed'
  }
  const command = { argv: ['/bin/sh', '-c', 'echo > commanded'], cwd: at.folder, env: { PATH: fixedPath } }
  const plan = { signal: new AbortController().signal, onOutput() {} }
  const ended = await runConfined({ waiting: waitingIn(at.folder), command, plan, prepare: () => undefined, inspect })
  expect(ended).toEqual({ ok: false, message: 'cannot confine the command: "sub/.npmrc" was changed' })
  expect(asked).toHaveLength(1)
  expect(readdirSync(at.folder)).not.toContain('commanded')
  expect(alive(at.folder)).toEqual([])
})
