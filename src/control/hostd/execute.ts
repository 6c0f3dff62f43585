/** Notes a call on disk, then runs its program: no shell, stdin empty, an environment from nothing, bounded in time and output. */

import { closeSync, constants, fsyncSync, mkdirSync, openSync, readdirSync, readFileSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { errorText } from '../../kit/errors.ts'
import { isObject, type JsonObject } from '../../kit/json.ts'
import type { Pipe } from '../../sandbox/pipes/command-pipes.ts'
import type { SpawnPlan, spawnPlain } from '../../tools/process.ts'

export type Execution = {
  readonly call: string
  readonly argv: readonly string[]
  readonly env: { readonly [name: string]: string }
  readonly timeoutMs: number
  readonly outputBytes: number
  /** Aborts when hostd stops. */
  readonly stopped: AbortSignal
  readonly spawn: typeof spawnPlain
  /** @throws Error when too many files are open */
  readonly openOutput: () => Pipe
}

/** `code` is null when a signal ended it. */
export type ExecutionResult = {
  readonly ending: 'exited' | 'timeout' | 'stopped' | 'not_started'
  readonly code: number | null
  readonly signal?: string
  readonly output: string
  readonly truncated: boolean
  /** Says why it did not start. */
  readonly message?: string
}

const path = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

/** Never rejects. After a timeout the group gets SIGTERM, then SIGKILL, and processes that left the group are ended by their mark. */
export async function execute(execution: Execution): Promise<ExecutionResult> {
  const { call, argv, env, timeoutMs, outputBytes, stopped, spawn, openOutput } = execution
  let together: Pipe
  try {
    together = openOutput()
  } catch (error) {
    return { ending: 'not_started', code: null, message: errorText(error), output: '', truncated: false }
  }
  const limit = createLimit(timeoutMs, stopped)
  const output = createCappedOutput(outputBytes)
  const plan: SpawnPlan = {
    argv,
    cwd: '/',
    env: { PATH: path, LANG: 'C.UTF-8', TERM: 'dumb', ...env, [markName]: call },
    signal: limit.signal,
    together,
    onOutput: output.take,
  }
  const ended = await spawn(plan)
  const ending = limit.end()
  if (ending !== 'exited') endMarked(call)
  if (!ended.ok) return { ending: ending === 'exited' ? 'not_started' : ending, code: null, message: ended.message, ...output.text() }
  return { ending, code: ended.code, signal: ended.signal, ...output.text() }
}

/** Aborts after the time, or when hostd stops; `end` says which of the two happened first, if any. */
function createLimit(timeoutMs: number, stopped: AbortSignal) {
  const controller = new AbortController()
  const abort = (why: 'timeout' | 'stopped') => () => controller.abort(why)
  const timer = setTimeout(abort('timeout'), timeoutMs)
  const stop = abort('stopped')
  if (stopped.aborted) stop()
  stopped.addEventListener('abort', stop, { once: true })
  return {
    signal: controller.signal,
    end(): 'exited' | 'timeout' | 'stopped' {
      clearTimeout(timer)
      stopped.removeEventListener('abort', stop)
      const { reason }: { readonly reason: unknown } = controller.signal
      return reason === 'timeout' || reason === 'stopped' ? reason : 'exited'
    },
  }
}

/** Keeps the beginning; the rest is read and dropped, so that the program does not block. */
function createCappedOutput(most: number) {
  const pieces: Uint8Array[] = []
  const state = { length: 0, truncated: false }
  return {
    take(chunk: Uint8Array): void {
      const piece = chunk.subarray(0, most - state.length)
      state.truncated ||= piece.length < chunk.length
      state.length += piece.length
      if (piece.length > 0) pieces.push(piece.slice())
    },
    /** Leaves out a character that the limit divides. */
    text: () => ({ output: new TextDecoder().decode(Buffer.concat(pieces), { stream: state.truncated }), truncated: state.truncated }),
  }
}

/** The one variable that every operation has besides those of the catalogue. */
const markName = 'BRAIDCLAW_HOSTD_CALL'

/**
 * Ends the processes that an operation started. A process that replaces its environment escapes this, but not the control group of a service
 * manager.
 * @returns how many it ended
 */
export function endMarked(call: string): number {
  const ended = new Set<number>()
  // A process may start another one before it ends, so the search is repeated.
  for (let round = 0; round < 5; round += 1) {
    const found = markedBy(call).filter((pid) => !ended.has(pid))
    if (found.length === 0) break
    for (const pid of found) {
      ended.add(pid)
      kill(pid)
    }
  }
  return ended.size
}

function markedBy(call: string): number[] {
  const mark = `${markName}=${call}`
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => environmentOf(pid).includes(mark))
}

function environmentOf(pid: number): string[] {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0')
  } catch {
    // It has ended, or it belongs to a user whose processes we cannot have started.
    return []
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It ended by itself.
  }
}

type Intent = { readonly call: string; readonly op: string; readonly details: JsonObject }

export type Intents = {
  /** Writes the note to the disk before it returns. @throws errno errors */
  begin(intent: Intent): void
  end(call: string): void
  /** Returns the calls that a killed hostd left, in the order of the folder. */
  left(): readonly Intent[]
}

/** Notes each call before its program starts, so that a killed hostd leaves no operation without a receipt. */
export function createIntents(folder: string): Intents {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const pathOf = (call: string) => join(folder, `${call}.json`)
  return {
    begin(intent) {
      const bytes = Buffer.from(JSON.stringify(intent))
      const file = openSync(pathOf(intent.call), constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW, 0o600)
      try {
        // A full disk may take only a part without an error.
        if (writeSync(file, bytes) < bytes.length) throw Object.assign(new Error('the disk is full'), { code: 'ENOSPC' })
        fsyncSync(file)
      } catch (error) {
        rmSync(pathOf(intent.call), { force: true })
        throw error
      } finally {
        closeSync(file)
      }
    },
    end: (call) => rmSync(pathOf(call), { force: true }),
    left: () =>
      readdirSync(folder)
        .filter((name) => /^[0-9a-f-]{36}\.json$/.test(name))
        .map((name) => intentIn(join(folder, name), name.slice(0, -5))),
  }
}

/** Reads the note of a call. A crash can leave an empty or cut file; its name is still the id of the call. */
function intentIn(path: string, call: string): Intent {
  try {
    const value: unknown = JSON.parse(readFileSync(path, 'utf8'))
    if (isObject(value) && typeof value.op === 'string' && isObject(value.details))
      return { call, op: value.op, details: JSON.parse(JSON.stringify(value.details)) }
  } catch {
    // Reported as an unknown operation below.
  }
  return { call, op: 'unknown', details: {} }
}
