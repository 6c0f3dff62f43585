/** Implements the parent's side of a test process in the instrumented copy. */

import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { scrubbed } from '../environment.ts'
import type { Answer, Order } from './drive.ts'

export type Place = { readonly copy: string; readonly scratch: string }

/** `gone` when the process ended, `late` when it was killed after its time limit. */
export type Reply = Answer | { readonly type: 'gone'; readonly code: number | null } | { readonly type: 'late' }

export type Worker = ReturnType<typeof startWorker>

/** Starts a process for one test file; the `active` mutants are active from the start. */
export function startWorker({ file, active, place }: { file: string; active: readonly string[]; place: Place }) {
  const queue: Reply[] = []
  let waiting: ((reply: Reply) => void) | undefined
  const take = (reply: Reply): void => {
    if (waiting) waiting(reply)
    else queue.push(reply)
    waiting = undefined
  }
  const child = spawn({ file, active, place }, take)
  const next = (ms: number): Promise<Reply> => {
    const found = queue.shift()
    if (found) return Promise.resolve(found)
    const { promise, resolve } = Promise.withResolvers<Reply>()
    const timer = setTimeout(() => late(resolve), ms)
    waiting = (reply) => {
      clearTimeout(timer)
      resolve(reply)
    }
    return promise
  }
  const late = (resolve: (reply: Reply) => void): void => {
    waiting = undefined
    killGroup(child.pid)
    resolve({ type: 'late' })
  }
  child.exited.then((code) => take({ type: 'gone', code }))
  return {
    /** Whether the file could be loaded. */
    ready: (ms: number) => next(ms),
    ask: (order: Order, ms: number): Promise<Reply> => {
      child.send(order)
      return next(ms)
    },
    kill: () => killGroup(child.pid),
  }
}

function spawn(one: { file: string; active: readonly string[]; place: Place }, take: (reply: Reply) => void) {
  const { copy, scratch } = one.place
  const folders = { home: join(scratch, 'home'), temporary: join(scratch, 'tmp') }
  for (const folder of Object.values(folders)) mkdirSync(folder, { recursive: true })
  const bun = [process.execPath, '--config=/dev/null', '--no-env-file', '--no-install', 'test', './.mutation/drive.test.js']
  const env = { ...scrubbed(process.env, folders), MUTATION_FILE: join(copy, one.file), MUTATION_ACTIVE: one.active.join(',') }
  return Bun.spawn(['nice', '-n', '10', ...bun], {
    cwd: copy,
    env,
    ipc: (answer: Answer) => take(answer),
    stdio: ['ignore', 'ignore', 'ignore'],
    detached: true,
  })
}

function killGroup(leader: number): void {
  try {
    process.kill(-leader, 'SIGKILL')
  } catch {
    // The process group has already ended.
  }
}
