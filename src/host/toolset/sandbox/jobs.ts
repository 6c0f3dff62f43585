/** Keeps the commands that run in the background of one conversation: what they print, what they change, and when they end. */

import { type FSWatcher, lstatSync, readdirSync, watch } from 'node:fs'
import { basename, join } from 'node:path'
import { createOutputLog, type OutputLog } from '../../../kit/content/output-limit.ts'
import { errorText } from '../../../kit/errors.ts'
import { count, cut, grouped } from '../../../kit/text.ts'
import type { Log, ToolResult } from '../../../runtime/port.ts'
import type { FollowedPath, PrivateView, RunningView } from '../../../sandbox/contract.ts'
import type { CommandMode } from '../../../security/autonomy.ts'
import { createStreamRedactor, type Redactor } from '../../../security/redaction/redact.ts'
import { commandResult, FLOOD_BYTES } from '../../../tools/builtin/shell.ts'
import type { Jobs as JobTools, Starting } from '../../../tools/builtin/shell_output.ts'
import type { Spawn, SpawnResult } from '../../../tools/process.ts'
import { sandboxed } from '../../../tools/tool-kind.ts'
import { isTemporaryName } from '../../../workspace/sweep.ts'

export type JobsOptions = {
  readonly workspace: string
  readonly spawn: Spawn
  readonly mode: () => Promise<CommandMode>
  /** Lets commands without hosts share one network. @returns why they cannot */
  readonly shareNetwork: () => Promise<string | undefined>
  readonly redactor: Redactor
  readonly log: Log
  /** How long a start waits for an end: a server says within this time that its port is taken. */
  readonly momentMs?: number
  /** How much of the output the model sees at a time. */
  readonly shownBytes: () => number
  readonly limits: { readonly maxBackground: number; readonly jobOutputBytes: number }
}

export type JobSummary = {
  readonly id: string
  readonly command: string
  /** Milliseconds since 1970. */
  readonly started: number
  readonly state: 'running' | 'ended'
  /** How it ended. */
  readonly end?: string
  readonly bytes: number
}

export type Jobs = JobTools & {
  list(): JobSummary[]
  /** Ends one for a person; the model still gets its output and its changes. @returns false when no such job runs */
  end(id: string, by: string): Promise<boolean>
  /** Writes what changed in the workspace into the views of the running commands. */
  follow(paths: readonly FollowedPath[]): void
  /** Returns the call that started the command of this view. */
  callOf(view: PrivateView): string | undefined
  /** Ends all jobs, and drops the changes that nobody took. */
  endAll(why: string): Promise<void>
}

type BackgroundJob = {
  readonly id: string
  readonly about: Starting
  readonly started: number
  readonly output: OutputLog
  readonly stop: AbortController
  readonly done: Promise<void>
  view?: RunningView | undefined
  ended?: SpawnResult
  /** Why somebody ended it. */
  why?: string
  /** Its end, with its changes, was handed over. */
  reported?: boolean
  /** Where the last reading ended. */
  read: number
  /** Paths that were not written into its view. */
  readonly left: Set<string>
}

const MOMENT_MS = 700
/** An editor saves a file in several steps. */
const SAVED_MS = 40
const NOTE_ROOM = 512
/** Ended commands whose output can still be read. */
const ENDED_KEPT = 16

type StartPlan = Parameters<JobTools['start']>[0]
type Room = JobsOptions & {
  readonly jobs: Map<string, BackgroundJob>
  /** The calls that started the commands of these views. */
  readonly calls: WeakMap<PrivateView, string>
  started: number
  /** One for each folder of the workspace, and one for itself. */
  readonly watchers: Map<string, FSWatcher>
}

export function createJobs(options: JobsOptions): Jobs {
  const room: Room = { ...options, jobs: new Map(), calls: new WeakMap(), watchers: new Map(), started: 0 }
  const { jobs, calls, log } = room
  const withJob = async (id: string, use: (job: BackgroundJob) => Promise<ToolResult>) => {
    const job = jobs.get(id)
    return job ? use(job) : refusal(`unknown background job ${JSON.stringify(id)}; the jobs are: ${named([...jobs.values()]) || 'none'}`)
  }
  return {
    start: (plan, about) => start(room, plan, about),
    read: (id, how) => withJob(id, (job) => report(room, job, how)),
    stop: (id) =>
      withJob(id, async (job) => {
        await end(job, 'shell_stop')
        return report(room, job)
      }),
    list: () =>
      [...jobs.values()].map((job) => ({
        id: job.id,
        command: room.redactor.text(job.about.command),
        started: job.started,
        state: job.ended === undefined ? 'running' : 'ended',
        ...(job.ended && { end: endOf(job) }),
        bytes: job.output.total(),
      })),
    async end(id, by) {
      const job = runningIn(room).find((each) => each.id === id)
      if (job) await end(job, `by ${by}`)
      return job !== undefined
    },
    follow: (paths) => follow(room, paths),
    callOf: (view) => calls.get(view),
    async endAll(why) {
      await Promise.all(runningIn(room).map((job) => end(job, why)))
      for (const job of jobs.values()) {
        const view = job.ended?.ok === true && !job.reported ? job.ended.view : undefined
        if (view) log('warn', `the changes of ${job.id} were dropped`, { command: cut(job.about.command, 100), why })
        view?.drop()
        job.reported = true
      }
    },
  }
}

function runningIn({ jobs }: Room): BackgroundJob[] {
  return [...jobs.values()].filter(({ ended }) => ended === undefined)
}

async function start(room: Room, plan: StartPlan, about: Starting): Promise<ToolResult> {
  const { mode, limits, momentMs = MOMENT_MS } = room
  const { transaction, why } = await mode()
  if (!transaction) return refusal(`a command in the background needs a sandbox with a private view of the workspace: ${why}`)
  const others = runningIn(room)
  if (limits.maxBackground === 0) return refusal('commands in the background are off (limits.max_background = 0)')
  if (others.length >= limits.maxBackground) {
    const known = `${count(others.length, 'command')} run in the background already: ${named(others)}`
    return refusal(`${known}; end one with shell_stop first (limits.max_background)`)
  }
  const job = begin(room, plan, about)
  const moment = Promise.withResolvers<void>()
  const timer = setTimeout(moment.resolve, momentMs)
  const cancel = () => job.stop.abort()
  about.signal.addEventListener('abort', cancel, { once: true })
  await Promise.race([job.done, moment.promise])
  about.signal.removeEventListener('abort', cancel)
  clearTimeout(timer)
  return report(room, job)
}

function begin(room: Room, plan: StartPlan, about: Starting): BackgroundJob {
  const { jobs, limits, calls, log } = room
  const { promise: done, resolve } = Promise.withResolvers<void>()
  const output = createOutputLog(limits.jobOutputBytes)
  const stop = new AbortController()
  const job: BackgroundJob = { id: `job-${++room.started}`, about, started: Date.now(), output, stop, done, read: 0, left: new Set() }
  jobs.set(job.id, job)
  for (const { id } of [...jobs.values()].filter(({ reported }) => reported).slice(0, -ENDED_KEPT)) jobs.delete(id)
  watchWorkspace(room)
  void run(room, job, plan).then((ended) => {
    job.ended = ended
    job.view = undefined
    if (ended.ok && ended.view) calls.set(ended.view, about.callId)
    if (runningIn(room).length === 0) unwatch(room)
    log('info', 'background command ended', { id: job.id, how: endOf(job) })
    resolve()
  })
  return job
}

async function run({ shareNetwork, redactor, spawn }: Room, job: BackgroundJob, plan: StartPlan): Promise<SpawnResult> {
  const alone = plan.network ? 'it may reach hosts, so it has a network of its own' : await shareNetwork()
  if (alone !== undefined) job.output.push(`[no other command reaches its ports: ${alone}]\n`)
  const printed = printer(job, redactor)
  const onView = (view: RunningView) => Object.assign(job, { view })
  const ended = await spawn({ ...plan, view: 'private', signal: job.stop.signal, onOutput: printed.push, onView }).catch(
    (error: unknown): SpawnResult => ({ ok: false, message: errorText(error) }),
  )
  printed.flush()
  return ended
}

/** Reports what is new of it: with its changes when it has ended, or when they were asked for. */
async function report(
  room: Room,
  job: BackgroundJob,
  { since = job.read, changes = false }: Parameters<JobTools['read']>[1] = {},
): Promise<ToolResult> {
  const { id, output, view, ended, about } = job
  const { text, from, next } = output.read(since, Math.max(256, room.shownBytes() - NOTE_ROOM))
  job.read = next
  const dropped = from > since ? `[${grouped(from - since)} bytes before this are not kept]\n` : ''
  const more = next < output.total() ? `${grouped(output.total() - next)} bytes more, ` : ''
  const shown = (note: string) => `${dropped}${text}${text === '' || text.endsWith('\n') ? '' : '\n'}[${id} ${note}; ${more}since ${next}]`
  const metadata = { job: id, running: ended === undefined, next, bytes: output.total() }
  if (ended === undefined) {
    const result: ToolResult = { success: true, output: shown('runs in the background'), metadata }
    if (!changes) return result
    try {
      if (view === undefined) throw new Error('its view is not ready yet; ask again')
      const copy = await view.copy()
      room.calls.set(copy, about.callId)
      return sandboxed(result, { ok: true, code: null, leftBehind: false, sandbox: 'bubblewrap', mode: 'transaction', view: copy })
    } catch (error) {
      return { ...result, success: false, error: errorText(error) }
    }
  }
  if (job.reported) return { success: true, output: shown(`ended before: ${endOf(job)}`), metadata }
  job.reported = true
  const flooded = job.why === flood
  const result = commandResult({ ended, output: shown(`ended: ${endOf(job)}`), bytes: output.total(), flooded, stopped: false })
  // It was stopped on purpose, so its end is not reported.
  const asked = job.why !== undefined && !flooded && ended.ok && ended.stopped === undefined
  const { error: _, ...success } = { ...result, success: true }
  return sandboxed({ ...(asked ? success : result), metadata: { ...result.metadata, ...metadata } }, ended)
}

async function end(job: BackgroundJob, why: string): Promise<void> {
  job.why ??= why
  job.stop.abort()
  await job.done
}

/** Folders that are large, and that no person edits. */
const unwatched = ['.git', 'node_modules']

/** The best that can be had: the system may forget events when very much changes at once. */
function watchWorkspace(room: Room): void {
  const { workspace, watchers, log } = room
  const saved = new Set<string>()
  const failed = (error: unknown) => log('debug', 'the workspace is not watched', { why: errorText(error) })
  const settle = () => {
    const paths = [...saved].map((path) => ({ path }))
    saved.clear()
    follow(room, paths)
  }
  const onSave = (folder: string) => (_: string, name: string | null) => {
    if (name === null || isTemporaryName(basename(name)) || unwatched.includes(name)) return
    if (folder === '') open(name)
    if (saved.size === 0) setTimeout(settle, SAVED_MS).unref()
    saved.add(join(folder, name))
  }
  const open = (folder: string) => {
    watchers.get(folder)?.close()
    watchers.delete(folder)
    try {
      const path = join(workspace, folder)
      if (unwatched.includes(folder) || !lstatSync(path).isDirectory()) return
      watchers.set(folder, watch(path, { recursive: folder !== '', persistent: false }, onSave(folder)).on('error', failed))
    } catch (error) {
      failed(error)
    }
  }
  if (watchers.size > 0) return
  open('')
  for (const name of readdirSync(workspace)) open(name)
}

function unwatch({ watchers }: Room): void {
  for (const watcher of watchers.values()) watcher.close()
  watchers.clear()
}

function follow(room: Room, paths: readonly FollowedPath[]): void {
  for (const { view, output, left } of runningIn(room)) {
    const stay = (view?.follow(paths) ?? []).filter((path) => !left.has(path))
    for (const path of stay) left.add(path)
    if (stay.length > 0) output.push(`[not updated in the view of this command, which changed it itself: ${cut(stay.join(', '), 500)}]\n`)
  }
}

const flood = 'it printed too much'
/** A command may print as much in this time as one in the foreground altogether. */
const FLOOD_MS = 60_000

/** Redacts before anything is cut, and ends a command that prints without end: it would keep a processor busy. */
function printer(job: BackgroundJob, redactor: Redactor) {
  const streams = { stdout: streamOf(redactor), stderr: streamOf(redactor) }
  const window = { began: performance.now(), bytes: 0 }
  return {
    push(chunk: Uint8Array, from: 'stdout' | 'stderr') {
      if (performance.now() - window.began > FLOOD_MS) Object.assign(window, { began: performance.now(), bytes: 0 })
      window.bytes += chunk.length
      if (window.bytes > FLOOD_BYTES) {
        job.why ??= flood
        job.stop.abort()
      } else job.output.push(streams[from].push(chunk))
    },
    flush() {
      for (const { end } of Object.values(streams)) job.output.push(end())
    },
  }
}

function streamOf(redactor: Redactor) {
  const decoder = new TextDecoder()
  const redacted = createStreamRedactor(redactor)
  return {
    push: (chunk: Uint8Array) => redacted.push(decoder.decode(chunk, { stream: true })),
    end: () => redacted.push(decoder.decode()) + redacted.flush(),
  }
}

function endOf({ ended, why }: BackgroundJob): string {
  if (ended?.ok === false) return ended.message
  const how = ended?.stopped ?? (ended?.signal === undefined ? `exit code ${ended?.code}` : ended.signal)
  return why === undefined ? how : `stopped (${why})`
}

function named(jobs: readonly BackgroundJob[]): string {
  return jobs.map(({ id, about }) => `${id} (${cut(about.command, 60)})`).join(', ')
}

function refusal(error: string): ToolResult {
  return { success: false, output: '', error }
}
