/** Starts servers as processes of their own, ours and the floor, and looks at what they use. */

import { readFileSync } from 'node:fs'

export type Place = { readonly home: string; readonly workspace: string; readonly store: string; readonly model: string }

export type Server = AsyncDisposable & {
  readonly url: string
  readonly port: number
  /** Milliseconds from its start until the first answer. */
  readonly readyMs: number
  /** Its memory in MB, as the kernel counts what is resident. */
  memory(): number
  /** The processor time that it has used, in milliseconds. */
  cpu(): number
}

/** Resolves when the server has answered GET /health. */
export async function start(
  command: readonly string[],
  { home, workspace, store, model }: Place,
  scenario: string,
  env: Record<string, string> = {},
): Promise<Server> {
  const begun = performance.now()
  const child = Bun.spawn([...command], {
    cwd: workspace,
    env: {
      PATH: '/usr/bin:/bin',
      HOME: home,
      BRAIDCLAW_HOME: home,
      BENCH_URL: `${model}/v1`,
      BENCH_STORE: store,
      BENCH_MODEL: scenario,
      BENCH_API_KEY: 'bench',
      ...env,
    },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const url = await readyUrl(child.stderr)
  await (await fetch(`${url}/health`)).text()
  const readyMs = performance.now() - begun
  return {
    url,
    port: Number(new URL(url).port),
    readyMs,
    memory: () => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))?.[1]) / 1e3,
    // Threads that have ended count too, in ticks of 10 ms.
    cpu: () => {
      const [user = 0, system = 0] = readFileSync(`/proc/${child.pid}/stat`, 'utf8')
        .replace(/^.*\) /, '')
        .split(' ')
        .slice(11, 13)
        .map(Number)
      return (user + system) * 10
    },
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM')
      await child.exited
    },
  }
}

/** What follows is read too, so that the server never waits for us. */
async function readyUrl(stderr: ReadableStream<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder()
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  const read = async () => {
    const seen = { text: '' }
    for await (const piece of stderr) {
      seen.text = (seen.text + decoder.decode(piece, { stream: true })).slice(-10_000)
      const url = /ready: (http:\/\/[\d.:]+)/.exec(seen.text)?.[1]
      if (url !== undefined) resolve(url)
    }
    reject(new Error(`the server ended before it was ready:\n${seen.text}`))
  }
  void read()
  return promise
}
