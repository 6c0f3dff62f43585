/** Starts the real hostd with a catalogue of stand-in programs, and talks to its socket. */

import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { z } from 'zod'
import { type HostdReply, hostdReply } from '../../../src/control/hostd/hostd-wire.ts'
import { type Nest, nest, type Started } from '../../support/cli.ts'

export type Place = Disposable & {
  readonly nest: Nest
  /** A folder that every user can enter. */
  readonly folder: string
  readonly socket: string
  /** Writes a program; returns its path. */
  script(name: string, text: string): string
  /** Writes a catalogue; returns its path. */
  catalogue(text: string): string
  start(...args: readonly string[]): Promise<Running>
  receipts(): Promise<readonly Receipt[]>
}

export type Running = {
  readonly pid: number
  readonly process: Started
  /** Sends the requests over one connection; returns the replies in the order of the requests. */
  ask(...requests: readonly object[]): Promise<readonly HostdReply[]>
  stop(): Promise<number | null>
}

const receipt = z.looseObject({ id: z.string(), tool: z.string(), status: z.string(), risk: z.string(), error: z.optional(z.string()) })
export type Receipt = z.infer<typeof receipt>

/** Prints each of its arguments in brackets. */
export const echo = '#!/bin/sh\nfor word; do printf "[%s]" "$word"; done\n'

export function place(): Place {
  const own = nest()
  const folder = mkdtempSync(join(tmpdir(), 'hostd-'))
  chmodSync(folder, 0o755)
  const socket = join(folder, 'run', 'hostd.sock')
  const started: Running[] = []
  const write = (name: string, text: string, mode: number) => {
    const path = join(folder, name)
    writeFileSync(path, text)
    chmodSync(path, mode)
    return path
  }

  async function start(...args: readonly string[]): Promise<Running> {
    const process = own.start(['hostd', '--socket', socket, ...args], { timeoutMs: 200_000 })
    await process.says('ready: ')
    const running: Running = {
      pid: process.pid,
      process,
      ask: (...requests) => ask(socket, requests),
      async stop() {
        signal(process.pid, 'SIGTERM')
        return (await process.result).code
      },
    }
    started.push(running)
    return running
  }

  return {
    nest: own,
    folder,
    socket,
    script: (name, text) => write(name, text, 0o755),
    catalogue: (text) => write(`catalogue-${Bun.randomUUIDv7()}.toml`, text, 0o644),
    start,
    async receipts() {
      const { stdout } = await own.run(['receipt', 'list', '--limit', '1000', '--json'])
      return z.array(receipt).parse(JSON.parse(stdout))
    },
    [Symbol.dispose]() {
      for (const { pid } of started) signal(pid, 'SIGKILL')
      own[Symbol.dispose]()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** Writes the table of one operation on Linux. */
export function operation(op: string, { argv, more = '' }: { readonly argv: readonly string[]; readonly more?: string }): string {
  return `[operations.${op}]\nabout = "a test"\nplatforms = ["linux"]\nargv = ${JSON.stringify(argv)}\n${/^risk/m.test(more) ? '' : 'risk = "low"\n'}${more}\n`
}

export async function ask(socket: string, requests: readonly object[]): Promise<readonly HostdReply[]> {
  const lines = await exchange(socket, requests.map((request, at) => JSON.stringify({ id: at, ...request })).join('\n'))
  const replies = lines.map((line) => hostdReply.parse(JSON.parse(line)))
  return requests.map((_, at) => {
    const reply = replies.find(({ id }) => id === at)
    if (!reply) throw new Error(`no reply to request ${at}: ${lines.join('\n')}`)
    return reply
  })
}

/** Sends text, closes its own side, and returns the lines that come until the other side closes. */
export async function exchange(socket: string, text: string): Promise<readonly string[]> {
  const bytes: Uint8Array[] = []
  const ended = Promise.withResolvers<'closed' | 'late'>()
  const late = setTimeout(() => ended.resolve('late'), 50_000)
  try {
    const connection = await Bun.connect({
      unix: socket,
      socket: {
        open(to) {
          to.write(`${text}\n`)
          to.shutdown()
        },
        data: (_, chunk) => void bytes.push(chunk.slice()),
        close: () => ended.resolve('closed'),
      },
    })
    if ((await ended.promise) === 'late') {
      connection.terminate()
      throw new Error('no answer in 50 s')
    }
  } finally {
    clearTimeout(late)
  }
  return Buffer.concat(bytes)
    .toString()
    .split('\n')
    .filter((line) => line !== '')
}

export function signal(pid: number, name: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, name)
  } catch {
    return false
  }
}

/** A zombie has ended. */
export function runs(pid: number): boolean {
  try {
    return !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'latin1'))
  } catch {
    return false
  }
}
