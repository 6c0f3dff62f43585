/** Provides for the tests of this folder the six FIFOs with shell scripts as bridges, and pipes in memory with a bridge at their other end. */

import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createDuplex } from './duplex.ts'
import { createFifos } from './fifo-folder.ts'
import type { Pipe } from './open-pipe.ts'

export type FifoFixture = {
  readonly dir: string
  path(name: string): string
  /** Starts a shell script in the folder; `$0` is its path. It is killed at the end of the test at the latest. */
  script(text: string): Script
  remove(): void
}

export type Script = { kill(): Promise<void>; readonly done: Promise<number>; stop(): void; go(): void }

export async function createFifoFixture(): Promise<FifoFixture> {
  const dir = mkdtempSync(join(tmpdir(), 'braidclaw-fifo-'))
  const created = await createFifos(dir)
  if (!created.ok) throw new Error(created.message)
  const running = new Set<Bun.Subprocess>()

  function script(text: string): Script {
    const child = Bun.spawn(['sh', '-c', text], { cwd: dir, stdio: ['ignore', 'ignore', 'inherit'], detached: true })
    running.add(child)
    const signal = (name: NodeJS.Signals): void => {
      if (child.exitCode === null) process.kill(-child.pid, name)
    }
    return {
      done: child.exited,
      stop: () => signal('SIGSTOP'),
      go: () => signal('SIGCONT'),
      async kill() {
        signal('SIGKILL')
        await child.exited
      },
    }
  }

  return {
    dir,
    path: (name) => join(dir, name),
    script,
    remove() {
      for (const child of running) {
        try {
          process.kill(-child.pid, 'SIGKILL')
        } catch {
          // It has already ended.
        }
      }
      rmSync(dir, { recursive: true, force: true })
    },
  }
}

/** Returns user and system time of this process so far, in ms. */
export function cpuMs(): number {
  const fields = readFileSync('/proc/self/stat', 'utf8').split(') ')[1]?.split(' ') ?? []
  return (Number(fields[11]) + Number(fields[12])) * 10
}

/** Simulates a kernel pipe in memory: of bounded size, with atomic writes up to 4,096 bytes. */
export function createPipe(size = 65_536) {
  let held = Buffer.alloc(0)
  const take = (most: number): Uint8Array => {
    const taken = Buffer.from(held.subarray(0, most))
    held = held.subarray(most)
    return taken
  }
  const pipe: Pipe = {
    read: () => take(4096),
    write(bytes) {
      const room = size - held.length
      const count = bytes.length <= room || bytes.length > 4096 ? Math.min(bytes.length, room) : 0
      held = Buffer.concat([held, bytes.subarray(0, count)])
      return count
    },
    abandoned: () => true,
    close: () => {},
  }
  return { ...pipe, take, text: () => held.toString() }
}

export function createTalkStage({ writing = false } = {}) {
  const [request, answer] = [createPipe(), createPipe()]
  // Whether a process has the answer FIFO open for writing.
  const heard = { ...answer, abandoned: () => !writing }
  return { request, answer, talk: createDuplex([request, heard], 1000) }
}

/** Simulates a bridge that reads everything available until the whole question has come. */
export function sendWhole(talkStage: ReturnType<typeof createTalkStage>, question: string) {
  const asking = talkStage.talk.ask(question, 1e9)
  let taken = ''
  for (let turn = 0; turn < 10; turn += 1) {
    asking.poll()
    taken += Buffer.from(talkStage.request.take(1e6)).toString()
  }
  return { asking, taken }
}

export const say = (text: string): Uint8Array => Buffer.from(text)
