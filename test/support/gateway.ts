/** Runs the gateway of a test home on a free port, and sends requests to it. */

import type { Invocation, Nest, Result, Started } from './cli.ts'

export type Answer = { readonly status: number; readonly headers: Headers; readonly body: ReturnType<typeof JSON.parse> }

export type Gateway = Started &
  AsyncDisposable & {
    readonly url: string
    readonly port: number
    /** An admin token, made before the start. */
    readonly token: string
    /** Sends a request with the admin token unless `init` has an Authorization header, and reads the answer as JSON. */
    ask(path: string, body?: object, init?: RequestInit): Promise<Answer>
    /** Sends SIGTERM and returns the result. */
    stop(): Promise<Result>
  }

/** Makes a token; returns its secret. */
export async function tokenOf(at: Nest, name: string, ...flags: readonly string[]): Promise<string> {
  const { stdout, stderr } = await at.run(['token', 'new', name, ...flags])
  if (stdout === '') throw new Error(stderr)
  return stdout.trim()
}

/** Resolves when the gateway is ready. Only the test's own time limit ends the wait. */
export async function gateway(
  at: Nest,
  args: readonly string[] = [],
  { token: known, ...invocation }: Invocation & { readonly token?: string } = {},
): Promise<Gateway> {
  const token = known ?? (await tokenOf(at, 'test', '--scope', 'admin'))
  const started = at.start(['serve', ...(args.includes('--port') ? [] : ['--port', '0']), ...args], { timeoutMs: 60_000, ...invocation })
  const url = await started.says(/ready: (https?:\/\/\S+?)[, ]/)
  const stop = () => {
    process.kill(started.pid, 'SIGTERM')
    return started.result
  }
  return {
    ...started,
    url,
    port: Number(new URL(url).port),
    token,
    stop,
    async ask(path, body, init = {}) {
      const { headers, ...rest } = init
      const response = await fetch(`${url}${path}`, {
        ...(body ? { method: 'POST', body: JSON.stringify(body) } : {}),
        ...rest,
        headers: { authorization: `Bearer ${token}`, ...(body ? { 'content-type': 'application/json' } : {}), ...headers },
      })
      const text = await response.text()
      return { status: response.status, headers: response.headers, body: text === '' ? undefined : JSON.parse(text) }
    },
    async [Symbol.asyncDispose]() {
      try {
        process.kill(started.pid, 'SIGKILL')
      } catch {}
      await started.result
    },
  }
}
