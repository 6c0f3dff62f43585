/** Runs one task with a program of somebody else: environment, files, confinement, output, and what its end means for the task. */

import { chmodSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { atEnd } from '../../../kit/errors.ts'
import { createLineSplitter } from '../../../kit/lines.ts'
import { sha256 } from '../../../kit/sha256.ts'
import { cut } from '../../../kit/text.ts'
import type { Claim } from '../../contract/task-shapes.ts'
import type { ForeignRunner, RunnerEvent, RunnerTask } from '../../runners/runner.ts'
import type { Confinement } from '../child/child-confinement.ts'
import type { ChildRecords } from '../child/child-processes.ts'
import { type ControlRelay, openControlRelay } from '../child/control-relay.ts'
import { type Child, type ChildEnd, startChild } from '../child/start-child.ts'
import type { WorkerOptions, WorkspaceCopy } from '../worker-options.ts'
import type { RunLog } from './child-log.ts'

type ChildRun = {
  readonly options: Pick<WorkerOptions, 'agentId' | 'apiUrl' | 'folders' | 'env' | 'readable' | 'model'>
  readonly runner: ForeignRunner
  readonly path: string
  readonly claim: Claim
  readonly prompt: string
  readonly skillIndex: string
  readonly copy: Pick<WorkspaceCopy, 'path' | 'home' | 'earlier'>
  readonly confinement: Confinement
  readonly records: ChildRecords
  readonly log: RunLog
  /** Aborts when the run has to stop: SIGTERM, then SIGKILL. */
  readonly stop: AbortSignal
  /** Aborts when the run has to end at once. */
  readonly kill: AbortSignal
}

const longestLine = 1024 * 1024
const usualPath = '/usr/local/bin:/usr/bin:/bin'

/** Resolves when no process of the run is left. @throws Error when its files cannot be written or the program cannot be started */
export async function runChild(run: ChildRun): Promise<RunOutcome> {
  const { claim, confinement, options, runner, copy } = run
  const place = join(options.folders.state, 'runs', claim.run_id)
  const { home } = copy
  mkdirSync(place, { recursive: true, mode: 0o700 })
  const relay = confinement.network === 'control' ? openControlRelay(options.apiUrl, place) : undefined
  const isMounted = confinement.way === 'bubblewrap'
  const task: RunnerTask = {
    ...{ task: claim.task, runId: claim.run_id, runToken: claim.run_token, agentId: options.agentId },
    ...{ prompt: run.prompt, skillIndex: run.skillIndex, home, ...sessionOf(copy, runner) },
    workspace: isMounted ? options.folders.workspace : copy.path,
    apiUrl: relay?.apiUrl ?? options.apiUrl,
    model: options.model,
  }
  using _end = atEnd(() => {
    relay?.stop()
    rmSync(place, { recursive: true, force: true })
  })
  writeFiles(home, runner.files(task))
  return await confined({ ...run, task, place, relay })
}

/** Returns the session of the previous run, unless another runner left it: this one could not read it. */
function sessionOf({ earlier }: ChildRun['copy'], { name }: ForeignRunner): Pick<RunnerTask, 'resumes' | 'session'> {
  if (earlier?.runner !== name) return { resumes: false }
  return { resumes: true, session: earlier.session }
}

type ConfinedRun = ChildRun & { readonly task: RunnerTask; readonly place: string; readonly relay?: ControlRelay }

async function confined(run: ConfinedRun): Promise<RunOutcome> {
  const { runner, task, options, confinement, relay, log } = run
  const collector = collectOutcome(runner.name)
  const isRepeated = runner.countsWholeSession === true && task.session !== undefined
  const lines = createLineSplitter(longestLine)
  const takeLine = (text: string) => {
    for (const event of runner.parse(text)) if (event.type !== 'usage' || !isRepeated) collector.event(event)
  }
  const stdin = runner.stdin?.(task)
  const child = await startChild({
    ...{ runId: task.runId, tokenDigest: sha256(task.runToken), confinement, records: run.records },
    ...{ program: run.path, args: runner.argv(task), env: environmentOf(run) },
    ...{ copy: run.copy.path, workspace: task.workspace, home: task.home, scratch: join(run.place, 'scratch') },
    ...{ userHome: options.env.HOME ?? '/root', path: pathOf(options.env), readable: readableOf(run) },
    stdin,
    relay,
    onOutput(chunk, from) {
      log.take(chunk, from)
      if (from === 'stderr') return collector.noise(Buffer.from(chunk).toString())
      for (const line of lines.push(chunk)) if (line.ok) takeLine(line.text)
    },
  })
  const end = await stoppable(child, run)
  const last = lines.end()
  if (last?.ok) takeLine(last.text)
  if (end.leftovers > 0) log.write(`\n[${end.leftovers} processes that had left the group were ended]\n`)
  const outcome = collector.outcome(end)
  return { ...outcome, output: log.safe(outcome.output), confinement: confinement.way, model: options.model }
}

async function stoppable(child: Child, { stop, kill }: ChildRun) {
  const end = () => child.stop()
  const atOnce = () => {
    child.stop()
    child.stop()
  }
  for (const [signal, act] of [[stop, end] as const, [kill, atOnce] as const])
    if (signal.aborted) act()
    else signal.addEventListener('abort', act, { once: true })
  const ended = await child.ended
  stop.removeEventListener('abort', end)
  kill.removeEventListener('abort', atOnce)
  return ended
}

/** Returns the whole environment of the child: the seed's names, four that every program expects, and those of the runner. */
function environmentOf({ options, task, runner }: ConfinedRun): Readonly<Record<string, string>> {
  const { env } = options
  return {
    PATH: pathOf(env),
    HOME: task.home,
    TERM: env.TERM ?? 'dumb',
    LANG: env.LANG ?? 'C.UTF-8',
    CONTROLPLANE_AGENT_ID: options.agentId,
    CONTROLPLANE_API_URL: task.apiUrl,
    CONTROLPLANE_API_KEY: task.runToken,
    CONTROLPLANE_TASK_ID: task.task.task_id,
    CONTROLPLANE_WORKSPACE_CWD: task.workspace,
    CONTROLPLANE_SESSION_CWD: options.folders.sessions,
    ...runner.env(task),
  }
}

function pathOf(env: WorkerOptions['env']): string {
  return env.PATH || usualPath
}

/** Adds the session file of this agent only. A file inside the workspace is in the copy already. */
function readableOf({ options }: ConfinedRun): readonly string[] {
  const { sessions, workspace } = options.folders
  const isInside = sessions === workspace || sessions.startsWith(`${workspace}/`)
  return [...(options.readable ?? []), ...(isInside ? [] : [join(sessions, `${options.agentId}.jsonl`)])]
}

function writeFiles(home: string, files: ReturnType<ForeignRunner['files']>): void {
  for (const { path, content } of files) {
    const place = join(home, path)
    mkdirSync(dirname(place), { recursive: true, mode: 0o700 })
    writeFileSync(place, content, { mode: 0o600 })
    chmodSync(place, 0o600)
  }
}

/** `stopped`: the worker ended it. `waiting` and `blocked`: the control plane has parked the task already. */
export type RunOutcome = {
  readonly ending: 'completed' | 'failed' | 'stopped' | 'waiting' | 'blocked'
  readonly output: string
  /** Counts what the runner reports; the control plane counts at least what it metered. */
  readonly tokens: number
  readonly skill?: string
  readonly model?: string
  readonly exitCode?: number
  readonly confinement: string
  readonly receipts?: readonly string[]
  /** Names the session with which a later run of the task can continue. */
  readonly session?: string
}

const mostOutput = 200_000
/** The control plane accepts at most so many. */
const mostTokens = 1e9
const mostTail = 4_000

export function collectOutcome(runner: string) {
  const state: { tokens: number; result?: Extract<RunnerEvent, { type: 'result' }>; session?: string } = { tokens: 0 }
  const [texts, noise] = [createTail(mostOutput), createTail(mostTail)]
  return {
    event(event: RunnerEvent): void {
      if (event.type === 'usage') state.tokens = Math.min(mostTokens, state.tokens + event.tokens)
      if (event.type === 'text') texts.push(`${event.text}\n`)
      if (event.type === 'result') state.result = event
      if (event.type === 'session') state.session = event.id
    },
    /** Takes output of the program for its error message; only the end is kept. */
    noise: noise.push,
    outcome({ code, stopped }: Pick<ChildEnd, 'code' | 'stopped'>): Omit<RunOutcome, 'model' | 'confinement' | 'receipts'> {
      const { tokens, result, session } = state
      const ok = code === 0 && result?.ok !== false
      const answer = result?.output || texts.text().trim()
      const why = answer || noise.text().trim()
      const how = code === 0 ? `${runner} reports that it failed` : `${runner} ended with exit code ${code}`
      const output = ok ? answer : `${how}${why === '' ? '' : `: ${why}`}`
      return {
        ending: stopped ? 'stopped' : ok ? 'completed' : 'failed',
        output: cut(output.toWellFormed().replaceAll('\0', ''), mostOutput),
        tokens,
        exitCode: code,
        skill: result?.skill || undefined,
        session,
      }
    },
  }
}

/** Keeps the end of a text that arrives in pieces. It cuts only now and then, so that a flood of small pieces does not delay the heartbeats. */
function createTail(most: number) {
  const state = { pieces: [] as string[], length: 0 }
  const text = () => state.pieces.join('').slice(-most)
  return {
    text,
    push(piece: string): void {
      state.pieces.push(piece)
      state.length += piece.length
      if (state.length <= 2 * most) return
      state.pieces = [text()]
      state.length = most
    },
  }
}
