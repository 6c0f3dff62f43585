/** Two network namespaces with one link between them that a test cuts: nothing of this machine's own network is touched. Needs root. */

import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { given, needs } from '../../support/needs.ts'
import { until } from '../../support/until.ts'

export type TwoMachines = AsyncDisposable & {
  /** The address of the first machine on the link. */
  readonly address: string
  /** Launchers that run a program on the first or the second machine. */
  readonly first: readonly string[]
  readonly second: readonly string[]
  /** Cut: packets vanish on the way, in both directions; nobody is told. */
  cut(): Promise<void>
  mend(): Promise<void>
  /** Asks a server of the first machine from here, also while the link is cut. */
  asker(port: number): Promise<typeof fetch>
  /** Gives programs of the first machine a server of this one at 127.0.0.1:`port`, by its Unix socket, also while the link is cut. */
  bring(socket: string, port: number): Promise<void>
}

/** From the block for tests of devices (RFC 2544). */
const addresses = ['198.18.14.1', '198.18.14.2'] as const
const longestSeconds = 180

/** For `test.if(...)`. */
export function canLinkMachines(): boolean {
  if (!needs('ip', 'unshare', 'nsenter', 'setpriv', 'socat')) return false
  const trial = ['unshare', '--net', 'ip', 'link', 'add', 'braidclaw0', 'type', 'veth', 'peer', 'name', 'braidclaw1']
  return given(Bun.spawnSync(trial, { stdout: 'ignore', stderr: 'ignore' }).success, 'root, and a kernel with virtual links')
}

/** `folder` is for sockets. The namespaces end with the processes in them, and the link ends with the namespaces. */
export async function twoMachines(folder: string): Promise<TwoMachines> {
  const children: Bun.Subprocess[] = []

  function start(argv: readonly string[]) {
    const child = Bun.spawn(['setpriv', '--pdeathsig', 'KILL', ...argv], { stdin: 'ignore', stdout: 'pipe', stderr: 'inherit' })
    children.push(child)
    return child
  }

  async function machine(): Promise<readonly string[]> {
    const holder = start(['unshare', '--net', 'sh', '-c', `ip link set lo up && echo up && exec sleep ${longestSeconds}`])
    const { value } = await holder.stdout.getReader().read()
    if (new TextDecoder().decode(value) !== 'up\n') throw new Error('the network namespace did not start')
    return ['nsenter', `--net=/proc/${holder.pid}/ns/net`, '--']
  }

  async function asker(port: number): Promise<typeof fetch> {
    const socket = join(folder, `${port}.sock`)
    rmSync(socket, { force: true })
    start([...first, 'socat', `UNIX-LISTEN:${socket},fork`, `TCP:127.0.0.1:${port}`])
    await until(() => isSocket(socket))
    const ask = (...[url, init]: Parameters<typeof fetch>) => fetch(url, { ...init, unix: socket })
    return Object.assign(ask, { preconnect() {} })
  }

  async function bring(socket: string, port: number): Promise<void> {
    start([...first, 'socat', `TCP-LISTEN:${port},bind=127.0.0.1,fork`, `UNIX-CONNECT:${socket}`])
    const probe = [...first, 'socat', '-u', '/dev/null', `TCP:127.0.0.1:${port}`]
    await until(async () => (await Bun.spawn(probe, { stderr: 'ignore' }).exited) === 0)
  }

  const [first, second] = [await machine(), await machine()]
  const holderOfSecond = children[1]?.pid
  await run([...first, 'ip', 'link', 'add', 'wire', 'type', 'veth', 'peer', 'name', 'wire', 'netns', String(holderOfSecond)])
  for (const [at, words] of [first, second].entries()) {
    await run([...words, 'ip', 'address', 'add', `${addresses[at]}/30`, 'dev', 'wire'])
    await run([...words, 'ip', 'link', 'set', 'wire', 'up'])
  }
  const wire = (state: 'up' | 'down') => run([...first, 'ip', 'link', 'set', 'wire', state])
  return {
    ...{ address: addresses[0], first, second, asker, bring },
    cut: () => wire('down'),
    mend: () => wire('up'),
    async [Symbol.asyncDispose]() {
      for (const child of children.reverse()) child.kill('SIGKILL')
      await Promise.all(children.map(({ exited }) => exited))
    },
  }
}

async function isSocket(path: string): Promise<boolean> {
  return Bun.file(path)
    .stat()
    .then((stat) => stat.isSocket())
    .catch(() => false)
}

async function run(argv: readonly string[]): Promise<void> {
  const child = Bun.spawn([...argv], { stdin: 'ignore', stdout: 'ignore', stderr: 'pipe', timeout: 30_000 })
  if ((await child.exited) !== 0) throw new Error(`${argv.join(' ')}: ${await new Response(child.stderr).text()}`)
}
