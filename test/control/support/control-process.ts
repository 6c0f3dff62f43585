/** Starts a control plane as a process of its own, which a test may kill and start again at the same address. */

import { join } from 'node:path'
import { operatorToken, sharedSecret } from './control-server.ts'

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
  readonly port?: number
  readonly env?: Readonly<Record<string, string>>
  /** A launcher, for example to become another user. */
  readonly through?: readonly string[]
}

export async function controlProcess({ home, port = 0, env = {}, through = [] }: ControlProcessOptions): Promise<ControlProcess> {
  const child = Bun.spawn([...through, process.execPath, join(import.meta.dir, 'control-child.ts'), home, String(port)], {
    env: {
      PATH: process.env.PATH ?? '',
      HOME: home,
      CONTROLPLANE_SHARED_SECRET: sharedSecret,
      CONTROLPLANE_OPERATOR_TOKEN: operatorToken,
      ...env,
    },
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const url = await firstLine(child.stdout)
  if (url === '') throw new Error(`the control plane did not start: ${await new Response(child.stderr).text()}`)
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

async function firstLine(stream: ReadableStream<Uint8Array>): Promise<string> {
  const reader = stream.getReader()
  const decoder = new TextDecoder()
  const read = { text: '' }
  while (!read.text.includes('\n')) {
    const { value, done } = await reader.read()
    if (done) return ''
    read.text += decoder.decode(value, { stream: true })
  }
  reader.releaseLock()
  return read.text.slice(0, read.text.indexOf('\n'))
}
