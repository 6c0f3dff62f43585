import { afterEach, beforeEach, expect, test } from 'bun:test'
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { takeLock } from '../../src/memory/agent-files/folder-lock.ts'
import { isAlive, ownerOf } from '../../src/memory/journal/process-owner.ts'
import { backgroundManager } from '../../src/service/unit/background.ts'
import type { ServiceManager } from '../../src/service/unit/service-run.ts'

const place = { folder: '' }
const processes = { ownerOf, isAlive, takeLock, sleep: Bun.sleep }
const managers: ServiceManager[] = []

beforeEach(() => {
  place.folder = mkdtempSync(join(tmpdir(), 'braidclaw-background-'))
})

afterEach(async () => {
  for (const manager of managers.splice(0)) await manager.uninstall()
  rmSync(place.folder, { recursive: true })
})

/** Installs a server that writes its pid to a file and then does what `body` says. */
async function installed(body: string): Promise<ServiceManager> {
  const program = join(place.folder, 'server')
  writeFileSync(program, `#!/bin/sh\necho $$ >"${place.folder}/pid"\n${body}\n`)
  chmodSync(program, 0o755)
  const logPath = join(place.folder, 'logs', 'service.log')
  const manager = backgroundManager({ folder: join(place.folder, 'run'), logPath, processes, now: Date.now })
  managers.push(manager)
  await manager.install({ argv: [program, 'serve'], env: { PATH: '/usr/bin:/bin' }, folder: place.folder, logPath })
  return manager
}

/** Resolves with the server's pid once it differs from `before`. */
async function serverPid(before?: number): Promise<number> {
  for (;;) {
    const file = join(place.folder, 'pid')
    const pid = existsSync(file) ? Number(readFileSync(file, 'utf8')) : 0
    if (pid > 0 && pid !== before) return pid
    await Bun.sleep(10)
  }
}

async function gone(pid: number): Promise<void> {
  while (isAlive(ownerOf(pid)) && existsSync(`/proc/${pid}`)) await Bun.sleep(10)
}

const forever = 'trap "exit 0" TERM; while :; do sleep 0.05; done'

test('start, status, stop: the server runs, is said to run, and is gone afterwards', async () => {
  const manager = await installed(forever)
  expect(await manager.state()).toEqual({ installed: true, running: false })
  await manager.start()
  const pid = await serverPid()
  expect(await manager.state()).toMatchObject({ installed: true, running: true })
  await manager.stop()
  await gone(pid)
  expect(await manager.state()).toEqual({ installed: true, running: false })
})

test('a second start is refused and says which process runs', async () => {
  const manager = await installed(forever)
  await manager.start()
  const { pid } = await manager.state()
  expect(manager.start()).rejects.toThrow(`it runs already (pid ${pid})`)
})

test('a server that is killed is started again, and the status counts that', async () => {
  const manager = await installed(forever)
  await manager.start()
  const first = await serverPid()
  process.kill(first, 'SIGKILL')
  await serverPid(first)
  expect(await manager.state()).toMatchObject({ running: true, restarts: 1 })
})

test('an altered record ends it for good: starting again would not help, and the status says why it ended', async () => {
  const manager = await installed('exit 9')
  await manager.start()
  while ((await manager.state()).running) await Bun.sleep(10)
  await Bun.sleep(1_500)
  expect(await manager.state()).toEqual({ installed: true, running: false, problem: expect.stringContaining('it ended by itself') })
})

test('a server that ignores SIGTERM does not survive its keeper when that is killed with SIGKILL', async () => {
  const manager = await installed(forever)
  await manager.start()
  const [pid, keeper] = [await serverPid(), (await manager.state()).pid ?? 0]
  process.kill(keeper, 'SIGKILL')
  await gone(pid)
  expect((await manager.state()).running).toBe(false)
})

test('stopping what does not run, and starting what is not installed, say so', async () => {
  const manager = await installed(forever)
  expect(manager.stop()).rejects.toThrow('it does not run')
  await manager.uninstall()
  expect(manager.start()).rejects.toThrow('run "braidclaw service install"')
  expect(await manager.state()).toEqual({ installed: false, running: false })
})
