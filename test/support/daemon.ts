/** Runs a daemon (or any agent) behind FIFOs in the test's own folder, and a person who talks through them. */

import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Message, messageLine, readMessage } from '../../src/kit/wire.ts'
import { createFifos } from '../../src/service/fifo/fifo-folder.ts'
import { openLines } from '../../src/service/fifo/fifo-reader.ts'
import { openWriter } from '../../src/service/fifo/fifo-writer.ts'
import { agentFile } from './agent-files.ts'
import type { Invocation, Nest, Result, Started } from './cli.ts'

export type Daemon = Started & {
  readonly dir: string
  /** Sends SIGTERM and returns the result. */
  stop(): Promise<Result>
  kill(): Promise<Result>
}

export const folderOf = (at: Nest) => join(at.dir, 'fifos')

/** Resolves when the daemon is ready. Only the test's own time limit ends the wait. */
export async function daemon(at: Nest, args: readonly string[] = [], invocation: Invocation = {}): Promise<Daemon> {
  const started = launch(at, args, invocation)
  await started.says('ready: ')
  return started
}

/** As `daemon`, without waiting until it is ready. */
export function launch(at: Nest, args: readonly string[] = [], invocation: Invocation = {}): Daemon {
  const dir = folderOf(at)
  const folder = args.includes('--fifo-dir') ? [] : ['--fifo-dir', dir]
  const started = at.start(['daemon', ...folder, ...args], { timeoutMs: 25_000, ...invocation })
  const end = (signal: 'SIGTERM' | 'SIGKILL') => {
    process.kill(started.pid, signal)
    return started.result
  }
  return { ...started, dir, stop: () => end('SIGTERM'), kill: () => end('SIGKILL') }
}

export type Person = AsyncDisposable & {
  /** Writes any bytes unchanged. */
  write(text: string | Uint8Array): Promise<void>
  say(text: string, channel?: string): Promise<void>
  /** Returns the next line for any channel. */
  hear(): Promise<Message>
  /** Sends the text, and returns the text of the next line. */
  ask(text: string, channel?: string): Promise<string>
}

/** Holds both FIFOs open from now on; creates them when they do not exist. */
export async function person(dir: string): Promise<Person> {
  const created = await createFifos(dir)
  if (!created.ok) throw new Error(created.message)
  const leaving = new AbortController()
  const answers = openLines(join(dir, 'interact_out'), { signal: leaving.signal })
  const writer = openWriter(join(dir, 'interact_in'))
  const write = async (text: string | Uint8Array) => {
    if (typeof text !== 'string') return appendFileSync(join(dir, 'interact_in'), text)
    const written = await writer.write(text, { timeoutMs: 5000 })
    if (!written.ok) throw new Error(written.message)
  }
  const say = (text: string, channel = 'me') => write(messageLine({ channel, text }))
  const hear = async () => {
    const { value } = await answers.next()
    const line = value?.ok ? value.text : ''
    // An empty answer is a line with nothing but its channel.
    if (/^[^\t]+\t$/.test(line)) return { channel: line.slice(0, -1), text: '' }
    const read = readMessage(line)
    if (!read.ok) throw new Error(`heard ${JSON.stringify(value)}`)
    return { channel: read.channel, text: read.text }
  }
  return {
    write,
    say,
    hear,
    async ask(text, channel) {
      await say(text, channel)
      return (await hear()).text
    },
    async [Symbol.asyncDispose]() {
      leaving.abort()
      writer.close()
      await answers.return()
    },
  }
}

export const historyOf = (at: Nest, id?: string): readonly string[] =>
  lines(agentFile(at, 'history.jsonl', id)).map(({ content }) => content)

/** Returns the contents of a file of JSON lines. */
export function lines(path: string) {
  if (!existsSync(path)) return []
  return readFileSync(path, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line))
}

/** Whether a process runs; a zombie does not. */
export function runs(pid: number): boolean {
  try {
    return !/^\d+ \(.*\) Z/s.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    return false
  }
}

/** Returns the number that a script wrote to the file; 0 while it has not. */
export const pidIn = (path: string): number => (existsSync(path) ? Number(readFileSync(path, 'utf8')) : 0)

/** Stops the agent when the test ends. */
export function stopping(agent: Daemon): Daemon & AsyncDisposable {
  const end = async () => {
    if (runs(agent.pid)) await agent.stop()
  }
  return { ...agent, [Symbol.asyncDispose]: end }
}

/** Runs a script beside the test, with all that it starts, until the test ends. */
export function background(
  at: Nest,
  script: string,
  env: { readonly [name: string]: string } = {},
): AsyncDisposable & { readonly pid: number } {
  const child = Bun.spawn(['sh', '-c', script], {
    cwd: at.dir,
    env: { ...at.env, ...env },
    stdio: ['ignore', 'ignore', 'ignore'],
    detached: true,
  })
  const end = async () => {
    try {
      process.kill(-child.pid, 'SIGKILL')
    } catch {}
    await child.exited
  }
  return { pid: child.pid, [Symbol.asyncDispose]: end }
}
