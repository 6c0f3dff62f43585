/** A client of `braidclaw stdio` for tests: it sends lines, and waits for the lines that it is interested in. */

import { executable, type Nest } from '../support/cli.ts'

// biome-ignore lint/suspicious/noExplicitAny: lines of the program under test
type Received = any

export type StdioClient = AsyncDisposable & {
  readonly pid: number
  send(line: object | string): void
  /** Sends bytes as they are. */
  raw(bytes: Uint8Array | string): void
  next(): Promise<Received>
  /** The next line with this member; others before it stay. */
  member(name: string): Promise<Received>
  event(type: string): Promise<Received>
  answer(id: string): Promise<Received>
  /** Lines that arrived and that nobody asked for. */
  waiting(): readonly Received[]
  /** Ends our end of both pipes. */
  hangUp(): void
  exit(): Promise<number | null>
}

export function stdioClient(at: Nest, env: { readonly [name: string]: string } = {}, args: readonly string[] = []): StdioClient {
  const child = Bun.spawn([executable, 'stdio', '--quiet', ...args], {
    cwd: at.workspace,
    env: { ...at.env, ...env },
    stdin: 'pipe',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const late = setTimeout(() => child.kill('SIGKILL'), 15_000)
  const lines: Received[] = []
  const state = { text: '', ended: false, wake: () => {} }
  const reader = child.stdout.getReader()
  const read = async () => {
    const decoder = new TextDecoder()
    for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
      state.text += decoder.decode(piece.value, { stream: true })
      const parts = state.text.split('\n')
      state.text = parts.pop() ?? ''
      lines.push(...parts.map((line) => JSON.parse(line)))
      state.wake()
    }
    state.ended = true
    state.wake()
  }
  const stderr = new Response(child.stderr).text()
  void read().catch(() => {})
  const find = async (what: string, wanted: (line: Received) => boolean): Promise<Received> => {
    for (;;) {
      const at = lines.findIndex(wanted)
      if (at >= 0) return lines.splice(at, 1)[0]
      if (state.ended) throw new Error(`stdout ended before ${what}; ${JSON.stringify(lines)}; stderr: ${await stderr}`)
      await new Promise<void>((resolve) => Object.assign(state, { wake: resolve }))
    }
  }
  const client: StdioClient = {
    pid: child.pid,
    send: (line) => client.raw(`${typeof line === 'string' ? line : JSON.stringify(line)}\n`),
    raw(bytes) {
      child.stdin.write(bytes)
      child.stdin.flush()
    },
    next: () => find('another line', () => true),
    member: (name) => find(name, (line) => line[name] !== undefined),
    event: (type) => find(type, (line) => line.event?.type === type),
    answer: (id) => find(`the answer ${id}`, (line) => line.id === id && line.event === undefined),
    waiting: () => lines,
    hangUp() {
      void reader.cancel()
      child.stdin.end()
    },
    async exit() {
      await child.exited
      clearTimeout(late)
      return child.exitCode
    },
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      await client.exit()
    },
  }
  return client
}
