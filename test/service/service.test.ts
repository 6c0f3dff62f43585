/** The service through the real executable, where no service manager answers: from install to uninstall, and what can go wrong. */

import { afterEach, expect, test } from 'bun:test'
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { executable, type Nest, nest } from '../support/cli.ts'
import { home, refused } from '../support/turns.ts'

const nests: Nest[] = []

afterEach(async () => {
  for (const at of nests.splice(0)) {
    await at.run(['service', 'uninstall', '--manager', 'background'])
    at[Symbol.dispose]()
  }
})

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  await new Promise((resolve) => server.close(resolve))
  return typeof address === 'object' && address ? address.port : 0
}

type Installed = { readonly at: Nest; readonly port: number; run(...words: string[]): ReturnType<Nest['run']> }

async function installed(at = home(), ...flags: string[]): Promise<Installed> {
  nests.push(at)
  const port = await freePort()
  const run = (command: string, ...words: string[]) =>
    at.run(['service', command, '--manager', 'background', ...words], { timeoutMs: 30_000 })
  expect((await run('install', '--port', String(port), ...flags)).code).toBe(0)
  return { at, port, run }
}

const health = async (port: number) => (await fetch(`http://127.0.0.1:${port}/health`)).json()

/** The pid of the server itself; the service is the shell that starts it again. */
async function serverOf({ run }: Installed): Promise<number> {
  const { pid } = JSON.parse((await run('status', '--json')).stdout)
  const parents = readdirSync('/proc').flatMap((name) => (/^\d+$/.test(name) ? [[Number(name), parentOf(name)] as const] : []))
  return parents.find(([, parent]) => parent === pid)?.[0] ?? 0
}

function parentOf(pid: string): number {
  try {
    return Number(/\) \S (\d+)/.exec(readFileSync(`/proc/${pid}/stat`, 'utf8'))?.[1])
  } catch {
    return 0
  }
}

async function answers(port: number): Promise<void> {
  for (;;) {
    try {
      await health(port)
      return
    } catch {
      await Bun.sleep(20)
    }
  }
}

test('install, start, status, logs, restart, stop, uninstall: each says what is true', async () => {
  const service = await installed()
  const { at, port, run } = service
  expect(await run('status')).toMatchObject({
    code: 1,
    stdout: expect.stringMatching(/^not running\n {2}by background: \S+service.json\n$/),
  })
  expect(await run('start')).toEqual({ code: 0, stdout: `started (background): http://127.0.0.1:${port}\n`, stderr: '' })
  expect(await health(port)).toMatchObject({ ok: true })
  expect(await run('status')).toMatchObject({ code: 0, stdout: expect.stringMatching(/^running \(pid \d+\)\n/) })
  const state = JSON.parse((await run('status', '--json')).stdout)
  expect(state).toEqual({
    manager: 'background',
    file: join(at.home, '.braidclaw/run/service.json'),
    installed: true,
    running: true,
    pid: expect.any(Number),
    since: expect.any(Number),
  })
  refused(await run('start'), 1, `it runs already (pid ${state.pid}); "service restart" starts it again`)
  expect((await run('logs', '-n', '1')).stdout).toMatch(/^\d{4}-\d\d-\d\dT\S+Z ready: http:\/\/127.0.0.1:\d+ .*\n$/)
  const first = await serverOf(service)
  expect((await run('restart')).stdout).toBe(`restarted (background): http://127.0.0.1:${port}\n`)
  expect([await serverOf(service), existsSync(`/proc/${first}`)]).not.toEqual([first, true])
  expect((await run('stop')).stdout).toBe('stopped (background)\n')
  expect(health(port)).rejects.toThrow()
  refused(await run('stop'), 1, 'it does not run')
  expect((await run('uninstall')).stdout).toBe('uninstalled (background)\n')
  expect((await run('status')).stdout).toContain('not installed')
  refused(await run('start'), 1, 'run "braidclaw service install"')
}, 120_000)

test('a server that is killed with SIGKILL comes back, and the status counts it', async () => {
  const service = await installed()
  await service.run('start')
  const first = await serverOf(service)
  process.kill(first, 'SIGKILL')
  while (existsSync(`/proc/${first}`)) await Bun.sleep(10)
  await answers(service.port)
  expect(await serverOf(service)).not.toBe(first)
  expect((await service.run('status')).stdout).toContain('started again 1 times')
}, 120_000)

test('start is refused while something else listens on the port, and no process is left', async () => {
  const { at, port, run } = await installed()
  await using listener = Bun.listen({ hostname: '127.0.0.1', port, socket: { open: (socket) => void socket.end('hello\n'), data() {} } })
  refused(await run('start'), 1, `another program listens at http://127.0.0.1:${port} already`, 'service install --port')
  expect(listener.port).toBe(port)
  expect((await run('status')).code).toBe(1)
  expect(existsSync(join(at.home, '.braidclaw/logs/service.log'))).toBe(false)
})

test('a server that cannot start is not said to be started: the reason is shown, and stands in the log', async () => {
  const at = home('\n[channels.http]\ntls_cert = "/nonexistent/cert.pem"\ntls_key = "/nonexistent/key.pem"\n')
  const { run } = await installed(at)
  refused(await run('start'), 1, 'it ends right after each start', 'channels.http.tls_cert: "/nonexistent/cert.pem" cannot be read')
  expect((await run('logs')).stdout).toContain('error: channels.http.tls_cert')
}, 120_000)

test('a configuration with an error is not installed', async () => {
  const at = nest()
  nests.push(at)
  at.config('port = "x"\n')
  refused(await at.run(['service', 'install', '--manager', 'background']), 1, 'config.toml:1')
  expect(existsSync(join(at.home, '.braidclaw/run/service.json'))).toBe(false)
})

test('--log-file takes everything that the server says; the terminal gets nothing', async () => {
  const at = home()
  nests.push(at)
  const log = join(at.dir, 'new/folder/server.log')
  const server = at.start(['serve', '--port', '0', '--log-file', log])
  while (!existsSync(log) || !readFileSync(log, 'utf8').includes('ready: ')) await Bun.sleep(10)
  process.kill(server.pid, 'SIGTERM')
  expect(await server.result).toEqual({ code: 0, stdout: '', stderr: '' })
  const lines = readFileSync(log, 'utf8').trimEnd().split('\n')
  expect(lines.filter((line) => !/^\d{4}-\d\d-\d\dT[\d:.]+Z \S/.test(line))).toEqual([])
  expect(statSync(log).mode & 0o777).toBe(0o600)
})

test('with BRAIDCLAW_LOG=json every line of the log file is JSON', async () => {
  const at = home()
  nests.push(at)
  const log = join(at.dir, 'server.log')
  const server = at.start(['serve', '--port', '0', '--log-file', log], { env: { BRAIDCLAW_LOG: 'json' } })
  while (!existsSync(log) || !readFileSync(log, 'utf8').includes('ready: ')) await Bun.sleep(10)
  process.kill(server.pid, 'SIGTERM')
  await server.result
  const lines = readFileSync(log, 'utf8').trimEnd().split('\n')
  expect(lines.map((line) => typeof JSON.parse(line).ts)).toEqual(lines.map(() => 'string'))
})

test('a log file that cannot be written is an error at the start', async () => {
  const at = home()
  nests.push(at)
  refused(await at.run(['serve', '--port', '0', '--log-file', at.dir]), 1, `--log-file "${at.dir}" cannot be written`, 'it is a folder')
  const under = join(at.file('plain', ''), 'log')
  refused(await at.run(['serve', '--port', '0', '--log-file', under]), 1, `--log-file "${under}" cannot be written`)
})

test('keys that only this shell has are named; --keep-keys gives them to the service, readable by nobody else', async () => {
  const at = nest()
  nests.push(at)
  const env = { OPENAI_API_KEY: 'sk-planted-secret-000111222' }
  mkdirSync(join(at.home, '.braidclaw'))
  await at.run(['init'], { env })
  const words = ['service', 'install', '--manager', 'background', '--port', '4999']
  expect((await at.run(words, { env })).stderr).toContain('only this shell has OPENAI_API_KEY; with --keep-keys')
  const keys = join(at.home, '.braidclaw/keys.env')
  expect(existsSync(keys)).toBe(false)
  const kept = await at.run([...words, '--keep-keys'], { env })
  expect([kept.code, kept.stderr.includes('planted')]).toEqual([0, false])
  expect(readFileSync(keys, 'utf8')).toContain('sk-planted-secret-000111222')
  expect(statSync(keys).mode & 0o777).toBe(0o600)
  expect(readFileSync(join(at.home, '.braidclaw/run/service.json'), 'utf8')).not.toContain('planted')
})

test.if(Bun.which('systemd-analyze') !== null)(
  'systemd finds no fault in the unit that --print shows, and nothing is installed',
  async () => {
    const at = home()
    nests.push(at)
    const { code, stdout } = await at.run(['service', 'install', '--print', '--manager', 'systemd', '--port', '4200'])
    expect(code).toBe(0)
    expect(stdout).toContain(`ExecStart="${executable}" "serve" "--port" "4200"\n`)
    const unit = join(at.dir, 'braidclaw.service')
    writeFileSync(unit, stdout)
    const verified = Bun.spawnSync(['systemd-analyze', 'verify', '--user', '--man=no', unit], {
      env: { ...at.env, XDG_RUNTIME_DIR: at.dir },
    })
    expect([verified.exitCode, verified.stderr.toString()]).toEqual([0, ''])
    expect(existsSync(join(at.home, '.config'))).toBe(false)
  },
)
