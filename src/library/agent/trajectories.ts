/**
 * Reads tasks, captures runs of an agent as trajectories for training, and appends them to a file. Exported as `braidclaw/trajectories`. The
 * same records from the journal: `braidclaw export trajectories`.
 */

import { createHash } from 'node:crypto'
import { closeSync, fstatSync, openSync, readFileSync, readSync, writeSync } from 'node:fs'
import { errorText } from '../../kit/errors.ts'
import { isObject, type JsonObject, parseJson } from '../../kit/json.ts'
import type { AgentEvent } from '../../runtime/event.ts'
import { createSteps, type Trajectory } from '../../runtime/replay/trajectory.ts'

export type { Trajectory } from '../../runtime/replay/trajectory.ts'

/** A line of a data set. `task_id` is the line's `task_id` or `id`, else the SHA-256 of its prompt; its other members stay. */
export type Task = { readonly task_id: string; readonly prompt: string; readonly [name: string]: unknown }

/**
 * Reads a file with one task a line, as JSON: `{"task_id": "sum", "prompt": "Add a test for sum"}`. Blank lines do not count.
 * @throws Error that names each bad line by its number, and an id that two tasks have
 */
export function loadTaskDataset(path: string): Task[] {
  const tasks: Task[] = []
  const problems: string[] = []
  const lineOf = new Map<string, number>()
  for (const [index, line] of readFileSync(path, 'utf8')
    .replace(/^\uFEFF/, '')
    .split('\n')
    .entries()) {
    if (line.trim() === '') continue
    const task = taskIn(line)
    const earlier = typeof task === 'string' ? undefined : lineOf.get(task.task_id)
    const problem =
      typeof task === 'string' ? task : earlier && `task_id ${JSON.stringify(task.task_id)} is already that of line ${earlier}`
    if (problem) problems.push(`${path}:${index + 1}: ${problem}`)
    else if (typeof task !== 'string') {
      tasks.push(task)
      lineOf.set(task.task_id, index + 1)
    }
  }
  if (problems.length > 0) throw new Error(problems.join('\n'))
  if (tasks.length === 0) throw new Error(`${path} has no task; write one a line: {"task_id": "sum", "prompt": "…"}`)
  return tasks
}

/** @returns the task, or what is wrong with the line */
function taskIn(line: string): Task | string {
  const value = parseJson(line)
  if (!isObject(value)) return 'not a JSON object; expected {"task_id": "…", "prompt": "…"}'
  const { task_id, id, ...rest } = value
  const { prompt } = rest
  const name = task_id ?? id
  if (typeof prompt !== 'string' || prompt.trim() === '') return '"prompt" must be a text that is not empty'
  if (name !== undefined && ((typeof name !== 'string' && typeof name !== 'number') || name === ''))
    return '"task_id" must be a text or a number'
  return { ...rest, task_id: name === undefined ? taskIdOf(prompt) : String(name), prompt }
}

export type CaptureOptions = {
  /** Default: the SHA-256 of the prompt; without a prompt the id of the run. */
  readonly taskId?: string
  /** The text that the run was given; its events do not have it. */
  readonly prompt?: string
  /** Checks the result of a run in structured mode, after its end. A run in Wiggum mode is judged by its own checks. */
  readonly check?: () => boolean | Promise<boolean>
}

/**
 * Consumes the events of a run and returns its trajectory. The reward comes only from checks that were executed: those of a run in Wiggum mode,
 * or `check`.
 * @throws Error when no check was executed or the events end before `done`, and what the events or `check` throw
 */
export async function captureTrajectory(events: AsyncIterable<AgentEvent>, options: CaptureOptions = {}): Promise<Trajectory> {
  const { prompt = '', check } = options
  const steps = createSteps()
  const run: { id: string; done?: Extract<AgentEvent, { type: 'done' }>; readonly errors: string[] } = { id: '', errors: [] }
  if (prompt !== '') steps.read(prompt)
  for await (const event of events) {
    if (event.type === 'init') run.id = event.runId
    else if (event.type === 'thinking') steps.say('thinking', event.content)
    else if (event.type === 'text' && !event.isPartial) steps.say('text', event.content)
    else if (event.type === 'tool_use') steps.act({ id: event.toolCallId, name: event.toolName, input: plain(event.input) })
    else if (event.type === 'tool_result')
      steps.got(event.toolCallId, typeof event.output === 'string' ? event.output : (JSON.stringify(event.output) ?? ''))
    else if (event.type === 'iteration' || event.type === 'done') steps.end()
    if (event.type === 'error' && !event.recoverable) run.errors.push(event.code)
    if (event.type === 'done') run.done = event
  }
  if (run.done === undefined) throw new Error('captureTrajectory: the events end before "done"; pass on all events of one run')
  const { iterations, stopReason } = run.done
  // A later iteration begins, and the limit is reached, only after a check that failed.
  const isChecked = iterations !== undefined && (stopReason === 'end_turn' || iterations > 1 || run.errors.includes('limit'))
  if (!isChecked && check === undefined) {
    const why = run.errors.length > 0 ? ` (it ended with ${run.errors.join(', ')})` : ''
    throw new Error(
      `captureTrajectory: no check was executed${why}, so the run has no reward; use Wiggum mode with checks, or give "check"`,
    )
  }
  const isGood = stopReason === 'end_turn' && (isChecked || (await check?.()) === true)
  return {
    task_id: options.taskId ?? (prompt === '' ? run.id : taskIdOf(prompt)),
    prompt,
    steps: steps.steps,
    outcome: isGood ? 'success' : 'failure',
    iterations: iterations ?? 1,
    reward: isGood ? 1 : 0,
  }
}

function plain(input: unknown): JsonObject {
  return isObject(input) ? JSON.parse(JSON.stringify(input)) : {}
}

/**
 * Appends one line to a file, with its newline. Creates the file for its owner alone (0600). Two processes may append at once: the line is written
 * in one piece, and after the rest of a line that a full disk cut off it begins a new one.
 * @throws TypeError for a text of several lines, and the errors of the file system
 */
export async function appendToFile(path: string, line: string): Promise<void> {
  const text = line.replace(/\r?\n$/, '')
  if (/[\n\r]/.test(text))
    throw new TypeError('appendToFile: the text has several lines; append them one by one, JSON by JSON.stringify(value)')
  const file = openSync(path, 'a+', 0o600)
  try {
    const { size } = fstatSync(file)
    const end = new Uint8Array(1)
    const isCut = size > 0 && readSync(file, end, 0, 1, size - 1) === 1 && end[0] !== 0x0a
    const bytes = new TextEncoder().encode(`${isCut ? '\n' : ''}${text}\n`)
    const written = writeSync(file, bytes)
    if (written < bytes.length) throw new Error(`${path}: only ${written} of ${bytes.length} bytes were written; the disk may be full`)
  } catch (error) {
    throw new Error(`appendToFile: ${errorText(error)}`, { cause: error })
  } finally {
    closeSync(file)
  }
}

function taskIdOf(prompt: string): string {
  return createHash('sha256').update(prompt).digest('hex')
}
