/** Defines what a runner is: the program that carries out one task, how it is started, and what its output lines mean; and reads such a line. */

import { isObject, parseJson } from '../../kit/json.ts'
import type { ActivityPost, ActivityReply, Approval, ApprovedOperation } from '../contract/activity-shapes.ts'
import type { Reservation, ReserveRequest, Settled, SettleRequest } from '../contract/fleet-shapes.ts'
import type { Beat, Task } from '../contract/task-shapes.ts'

export const runnerNames = ['own', 'pi', 'aider', 'claude', 'codex', 'command'] as const
export type RunnerName = (typeof runnerNames)[number]

/** Describes one task for a runner, with paths as the child sees them. */
export type RunnerTask = {
  readonly task: Task
  readonly runId: string
  readonly agentId: string
  /** The task, the last session and the skill, as one text for a model. Its first character is never "-". */
  readonly prompt: string
  /** The compact index of the skills of this agent; empty when it has none. */
  readonly skillIndex: string
  readonly workspace: string
  /** A private folder: HOME of the child. Files that the runner asks for are written there. */
  readonly home: string
  /** Base address of the control plane as the child reaches it, without a slash at the end. */
  readonly apiUrl: string
  readonly runToken: string
  /** The model to ask; absent: the runner's own choice. */
  readonly model?: string
  /** Tells whether `workspace` and `home` are as the previous run left them: this runner carried it out, and it waited for a person. */
  readonly resumes: boolean
  /** Names the session of that run; absent: a new one begins. */
  readonly session?: string
}

/** Describes what a line of output reports. `usage` counts tokens since the last `usage`; the last `result` and the last `session` count. */
export type RunnerEvent =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'tool'; readonly name: string }
  /** Names the session that the program keeps in HOME. */
  | { readonly type: 'session'; readonly id: string }
  | { readonly type: 'usage'; readonly tokens: number }
  | { readonly type: 'result'; readonly ok: boolean; readonly output: string; readonly skill?: string }

/** `path` is relative to HOME of the child; written with mode 0600. */
type RunnerFile = { readonly path: string; readonly content: string }

/** Holds what the worker adds for runners that take skills or tools from a file. */
export type RunnerSupport = {
  /** The source of the extension that gives pi the tool skills_search; absent: pi gets the index only. */
  readonly piExtension?: string
  /** The MCP server that serves skills_search; absent: none is configured. */
  readonly mcpServer?: { readonly command: string; readonly args: readonly string[]; readonly env?: Readonly<Record<string, string>> }
}

/** A program of somebody else as a runner. Every function is pure; text of a task becomes neither a flag nor a part of a shell line. */
export type ForeignRunner = {
  readonly name: Exclude<RunnerName, 'own'>
  /** The name or path of the program. */
  readonly program: string
  /** Says how a person installs it, as the end of a sentence. */
  readonly install: string
  /** Returns all arguments after the program. */
  argv(task: RunnerTask): readonly string[]
  /** Returns the standard input of the child; absent: it is empty. */
  stdin?(task: RunnerTask): string
  /** Returns variables besides the seed's own. */
  env(task: RunnerTask): Readonly<Record<string, string>>
  files(task: RunnerTask): readonly RunnerFile[]
  /** Is set when `usage` in a continued session repeats the tokens of the previous runs: then only what was metered counts. */
  readonly countsWholeSession?: boolean
  /** Never throws: a line that it does not know is not an event. */
  parse(line: string): readonly RunnerEvent[]
}

/** Lists what the own runner may ask of the control plane with the token of the run. */
export type OwnRunPort = {
  beat(taskId: string): Promise<Beat>
  reserve(request: ReserveRequest): Promise<Reservation>
  settle(request: SettleRequest): Promise<Settled>
  /** Returns the approvals of the task, in any state. */
  approvals(taskId: string): Promise<readonly Approval[]>
  useApproval(id: string, digest: string): Promise<ApprovedOperation>
  activity(post: ActivityPost): Promise<ActivityReply>
}

export type OwnRunRequest = Pick<RunnerTask, 'task' | 'prompt' | 'skillIndex' | 'workspace'> & {
  /** Names the conversation of the previous run, which waited for a person and continues; absent: a new one begins. */
  readonly session?: string
  readonly run: OwnRunPort
  /** Receives what happens, as text for the log of the run. */
  readonly log: (text: string) => void
  readonly signal: AbortSignal
}

/** `waiting`: an operator has to approve something first. `blocked`: the budget is spent. */
export type OwnRunResult = {
  readonly ending: 'completed' | 'failed' | 'waiting' | 'blocked'
  readonly output: string
  readonly tokens: number
  readonly model: string
  /** Lists the ids of the receipts of its tool calls. */
  readonly receipts: readonly string[]
  /** Names the conversation. */
  readonly session: string
}

/** Rejects when the conversation cannot be opened. */
export type OwnRun = (request: OwnRunRequest) => Promise<OwnRunResult>

/** Holds one line of a runner's JSON output, whose shape is not trusted. */
type LineFields = { readonly [name: string]: unknown }

/** @returns undefined for a line that is not a JSON object */
export function fieldsOf(line: string): LineFields | undefined {
  const value = line.startsWith('{') ? parseJson(line) : undefined
  return isObject(value) ? value : undefined
}

export function objectIn(fields: LineFields | undefined, name: string): LineFields | undefined {
  const value = fields?.[name]
  return isObject(value) ? value : undefined
}

/** @returns an empty text for anything but text */
export function textIn(fields: LineFields | undefined, name: string): string {
  const value = fields?.[name]
  return typeof value === 'string' ? value : ''
}

/** @returns the whole number from 0 up under this name, else 0, because a runner may report anything */
export function countIn(fields: LineFields | undefined, name: string): number {
  const value = fields?.[name]
  return typeof value === 'number' && Number.isSafeInteger(value) && value > 0 ? value : 0
}

/** Joins the texts of a list of content blocks such as `[{"type":"text","text":"…"}]`. */
export function textOfBlocks(value: unknown): string {
  if (!Array.isArray(value)) return ''
  return value.flatMap((block: unknown) => (isObject(block) && block.type === 'text' ? [textIn(block, 'text')] : [])).join('')
}

/** Returns an event only for a name that may safely become an argument of a later run. */
export function sessionEvents(id: string): readonly RunnerEvent[] {
  return /^[A-Za-z0-9][\w-]{0,127}$/.test(id) ? [{ type: 'session', id }] : []
}
