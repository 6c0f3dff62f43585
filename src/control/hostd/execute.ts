/** Notes a call on disk, then runs its program: no shell, stdin empty, an environment from nothing, bounded in time and output. */

import { closeSync, constants, fsyncSync, mkdirSync, openSync, readdirSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { attempt, errorText } from '../../kit/errors.ts'
import { isJsonObject, type JsonObject, parseJson } from '../../kit/json.ts'
import { processesWith, textIn } from '../../kit/proc.ts'
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
  const signal = AbortSignal.any([stopped, AbortSignal.timeout(timeoutMs)])
  const output = createCappedOutput(outputBytes)
  const plan: SpawnPlan = {
    argv,
    cwd: '/',
    env: { PATH: path, LANG: 'C.UTF-8', TERM: 'dumb', ...env, [markName]: call },
    signal,
    together,
    onOutput: output.take,
  }
  const ended = await spawn(plan)
  const ending = endingOf(signal)
  if (ending !== 'exited') endMarked(call)
  if (!ended.ok) return { ending: ending === 'exited' ? 'not_started' : ending, code: null, message: ended.message, ...output.text() }
  return { ending, code: ended.code, signal: ended.signal, ...output.text() }
}

/** Says which happened first, if any: the time was over, or hostd stopped. */
function endingOf({ aborted, reason }: AbortSignal): 'exited' | 'timeout' | 'stopped' {
  if (!aborted) return 'exited'
  return reason instanceof DOMException && reason.name === 'TimeoutError' ? 'timeout' : 'stopped'
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
    const found = processesWith((variables) => variables.includes(`${markName}=${call}`)).filter((pid) => !ended.has(pid))
    if (found.length === 0) break
    for (const pid of found) {
      ended.add(pid)
      attempt(() => process.kill(pid, 'SIGKILL'))
    }
  }
  return ended.size
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
  const value = parseJson(textIn(path))
  if (!isJsonObject(value) || typeof value.op !== 'string' || !isJsonObject(value.details)) return { call, op: 'unknown', details: {} }
  return { call, op: value.op, details: value.details }
}
