/** Starts a control plane as a process of its own, which a test may kill and start again at the same address. */

import { mkdirSync } from 'node:fs'
import { executable } from '../../support/cli.ts'
import { operatorToken, sharedSecret } from './control-server.ts'
import { freePort } from './free-port.ts'

export type ControlProcess = {
  readonly url: string
  readonly port: number
  readonly pid: number
  /** Ends it without a warning, and resolves when it is gone. */
  kill(): Promise<void>
  /** SIGTERM; resolves with its exit code. */
  stop(): Promise<number>
}

export type ControlProcessOptions = {
  readonly home: string
  /** Absent: a free one. */
  readonly port?: number
  readonly env?: Readonly<Record<string, string>>
  /** A launcher, for example to become another user. */
  readonly through?: readonly string[]
}

export async function controlProcess({ home, port, env = {}, through = [] }: ControlProcessOptions): Promise<ControlProcess> {
  mkdirSync(home, { recursive: true })
  const child = Bun.spawn([...through, executable, 'control', '--port', String(port ?? (await freePort()))], {
    env: {
      PATH: process.env.PATH ?? '',
      HOME: home,
      BRAIDCLAW_HOME: home,
      CONTROLPLANE_SHARED_SECRET: sharedSecret,
      CONTROLPLANE_OPERATOR_TOKEN: operatorToken,
      ...env,
    },
    cwd: home,
    stdout: 'ignore',
    stderr: 'pipe',
  })
  const url = await addressIn(child.stderr)
  return {
    url,
    port: Number(new URL(url).port),
    pid: child.pid,
    async kill() {
      child.kill('SIGKILL')
      await child.exited
    },
    stop() {
      child.kill('SIGTERM')
      return child.exited
    },
  }
}

/** Returns the address that the daemon says when it is ready, and reads on, because a full pipe would stop the daemon. */
async function addressIn(stream: ReadableStream<Uint8Array>): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  const read = async (): Promise<void> => {
    const decoder = new TextDecoder()
    let text = ''
    for await (const piece of stream) {
      text = `${text}${decoder.decode(piece, { stream: true })}`.slice(-10_000)
      const url = /ready: (https?:\/\/\S+?) /.exec(text)?.[1]
      if (url !== undefined) resolve(url)
    }
    reject(new Error(`the control plane did not start: ${text}`))
  }
  void read().catch(reject)
  return await promise
}
