/** Declares an agent and its tools as a program sees them, whether it runs in this process or drives the executable. It runs on Node too. */

import { isObject } from '../../kit/json.ts'
import type { ModelCall } from '../../providers/model-call.ts'
import type { ChangeSet } from '../../runtime/changes.ts'
import type { ModeChange } from '../../runtime/create-agent.ts'
import type { AgentEvent, Ending, JsonObject, Proposal, Risk } from '../../runtime/event.ts'
import type { Provider, Schema, ToolSpec } from '../../runtime/port.ts'
import type { AnyUserThread } from '../../runtime/threads/thread.ts'

/** The part of a zod schema (zod 4.2 or later) that a tool needs. */
export type ZodSchema = {
  toJSONSchema(options?: { readonly io?: 'input' | 'output' }): unknown
  safeParse(input: unknown): { readonly success: boolean; readonly data?: unknown; readonly error?: { readonly message: string } }
}

/** A tool of the calling program. A call passes the gate, is bounded as other tools are, and leaves a receipt. */
export type OwnTool = {
  /** A letter, then letters, digits, "_" and "-"; 64 characters at most; not the name of a built-in tool. */
  readonly name: string
  /** Tells the model in a sentence what the tool does. */
  readonly description: string
  /** A JSON Schema of an object, or a zod schema of one. */
  readonly parameters: Schema | ZodSchema
  /** Default `medium`: a supervised agent asks before the call. A `low` one runs unasked, so give it only to what has no effect. */
  readonly risk?: Risk
  /** Names a built-in tool of the agent, which has it in place of this one: the plain tools of braidclaw/tools do. */
  readonly builtin?: string
  /**
   * Runs one call. A text is the result as it is, anything else becomes JSON; an error that it throws becomes a failed result. `signal` aborts
   * on timeout, cancel and stop; `cwd` is the workspace.
   */
  execute(input: JsonObject, context: { readonly signal: AbortSignal; readonly cwd: string }): unknown
}

/** A rule in the format of the rule files: `name`, `on`, `when`, `block`, `reason` and so on. */
export type RuleAsJson = { readonly name: string; readonly on: JsonObject; readonly [member: string]: unknown }

/** A command that must exit with 0 before a turn in wiggum mode ends well. `runs` and `pass`: for one that is flaky. */
export type AgentCheck = {
  /** Default: the command. */
  readonly name?: string
  readonly command: string
  readonly runs?: number
  readonly pass?: number
  readonly timeoutMs?: number
}

export type AgentOptions = {
  /** The workspace; default: the current folder. */
  readonly cwd?: string
  /** The folder for memory and receipts; default: BRAIDCLAW_HOME or ~/.braidclaw. */
  readonly home?: string
  /** Replaces the environment of the process; API keys are looked up here. */
  readonly env?: Readonly<Partial<Record<string, string>>>
  /** `provider/model` of the configuration. */
  readonly model?: string
  /** How much the agent may do without asking. */
  readonly permissionMode?: 'readonly' | 'supervised' | 'full'
  readonly maxTurns?: number
  /** A custom provider; replaces the configured one. */
  readonly provider?: Provider
  /** A custom provider as a plain function. */
  readonly modelCall?: ModelCall
  /**
   * Custom b-threads, or rules as JSON (docs/rules.md): they can block actions of a run, and threads can request calls, but they cannot permit
   * anything.
   */
  readonly threads?: readonly (AnyUserThread | RuleAsJson)[]
  /** Tools of the calling program: each call passes the gate and leaves a receipt. */
  readonly tools?: readonly OwnTool[]
  /** The checks of wiggum mode, which `setMode` begins. */
  readonly checks?: readonly AgentCheck[]
  /** `new` (default), `latest`, or the id of a conversation to continue. */
  readonly conversation?: string
  /** Receives log lines, redacted; default: no log. */
  readonly log?: (line: string) => void
}

/** `images`: what the model sees with the prompt, the path of each (from `cwd`) or its bytes: PNG, JPEG, WebP or GIF. */
export type TurnExtras = { readonly signal?: AbortSignal; readonly images?: readonly (string | Uint8Array)[] }

export function turnExtrasOf(given: AbortSignal | TurnExtras = {}): TurnExtras {
  return given instanceof AbortSignal ? { signal: given } : given
}

export type AskedChanges = ChangeSet & { readonly patch: string }

export type BraidClaw = {
  /** The options of `createAgent`, from which sandboxAdapter.wrap makes another agent. */
  readonly options?: AgentOptions
  /**
   * Runs one turn. It yields events until `done`; breaking out of the loop, or aborting `signal`, cancels the turn. A call that needs
   * approval arrives as `approval_gate`: answer with `approve`, or the question expires after ten minutes. A second turn during a running
   * one yields the error `busy` and ends; a turn after `close` does the same with `closed`.
   * @throws Error when an image cannot be read, or the configuration, workspace or memory cannot be used; the message says what to do
   */
  run(prompt: string, options?: AbortSignal | TurnExtras): AsyncGenerator<AgentEvent>
  /**
   * Adds a thread later: it takes part in the running turn from now on, and in all later turns.
   * @returns undefined when the thread takes part and the record has it on disk, else the reason
   */
  addThread(thread: AnyUserThread): Promise<string | undefined>
  /**
   * @param gateId the `gateId` of the event: RUN/CALL, as `braidclaw approvals` shows it
   * @returns undefined when the decision counted and is on disk, else the name of the rule that rejected it
   */
  approve(
    gateId: string,
    decision: { readonly allow: boolean; readonly by?: string; readonly note?: string; readonly part?: string },
  ): Promise<string | undefined>
  /**
   * Returns what an open gate asks to change in the workspace, and the same as a patch for `git apply`; undefined when it is about something
   * else than files. With `revise` a program can accept a part: pass the returned `part` to `approve`.
   */
  changes(gateId: string): Promise<AskedChanges | undefined>
  /** Returns the proposal that an open gate asks about. */
  gate(gateId: string): Proposal | undefined
  /** Cancels the running turn, also one that has only just begun. */
  cancel(): void
  /**
   * Sets the mode of the turns from now on, also before the first one: `wiggum` works in a copy of the workspace until the `checks` pass, without
   * approvals, for at most `maxIterations` iterations (also called `maxIter`; 20 if absent), and then applies the result. A turn under way
   * keeps its mode.
   * @returns undefined when the mode is set, else `modes: ` and why it was rejected: without checks, or without the sandbox
   * @throws Error as `run`
   */
  setMode(change: ModeChange): Promise<string | undefined>
  /** How the latest run ended. */
  ending(): Ending | undefined
  conversationId(): string | undefined
  /** The id of the latest turn; `replay` takes it. */
  runId(): string | undefined
  /**
   * Cancels the running turn, waits until the cancellation is on disk (at most three seconds) and frees everything. No turn can begin
   * afterwards.
   */
  close(): Promise<void>
}

/** The tools, rules and model that the calling program brings. */
export type ProgramParts = {
  readonly tools: readonly OwnTool[]
  readonly rules: readonly RuleAsJson[]
  readonly modelCall?: ModelCall | undefined
  readonly checks?: readonly AgentCheck[]
}

/** Tells a rule in JSON from a thread, which has functions. */
export function isRule(thread: AnyUserThread | RuleAsJson): thread is RuleAsJson {
  return isObject(thread) && 'on' in thread && !('bid' in thread)
}

export function isThread(thread: AnyUserThread | RuleAsJson): thread is AnyUserThread {
  return !isRule(thread)
}

/** Returns the events of a turn that could not begin, or was lost. */
export function failedTurn(code: string, message: string, recoverable = false): AgentEvent[] {
  return [
    { type: 'error', code, message, recoverable },
    { type: 'done', stopReason: 'error' },
  ]
}

/** Refuses a turn after `close`. */
export function closedTurn(): AgentEvent[] {
  return failedTurn('closed', 'this agent is closed; create another one')
}

/** A tool as the host and the model see it. */
export type DescribedTool = ToolSpec & { readonly risk: Risk }

/** @throws Error when a zod schema cannot be written as JSON Schema, or the zod is too old to do it */
export function describeTool({ name, description, parameters, risk = 'medium' }: OwnTool): DescribedTool {
  if (isZod(parameters)) return { name, description, parameters: schemaOf(name, parameters), risk }
  if (typeof parameters === 'object' && parameters !== null && 'safeParse' in parameters)
    throw new Error(`tool "${name}": this zod cannot write its schemas as JSON Schema; use zod 4.2 or later, or give a JSON Schema`)
  return { name, description, parameters, risk }
}

/** Executes the tool with checked input. @throws Error when zod refuses the input, and what the tool throws */
export async function executeTool(
  { name, parameters, execute }: OwnTool,
  input: JsonObject,
  context: Parameters<OwnTool['execute']>[1],
): Promise<string> {
  const read = isZod(parameters) ? parameters.safeParse(input) : { success: true, data: input }
  if (!read.success) throw new Error(`the input does not fit the schema of "${name}": ${read.error?.message ?? 'zod refused it'}`)
  const result: unknown = await Reflect.apply(execute, undefined, [read.data, context])
  return typeof result === 'string' ? result : (JSON.stringify(result) ?? '')
}

/** Tells whether these are a zod schema that can be written as JSON Schema. */
export function isZod(parameters: OwnTool['parameters']): parameters is ZodSchema {
  return typeof parameters === 'object' && parameters !== null && typeof parameters.toJSONSchema === 'function'
}

/** Returns what the schema says of the input. @throws Error when it is not one of an object */
export function schemaOf(name: string, parameters: ZodSchema): Schema {
  const { $schema: _, ...schema } = JSON.parse(JSON.stringify(parameters.toJSONSchema({ io: 'input' })))
  if (schema.type !== 'object') throw new Error(`tool "${name}": its parameters must be a schema of an object, such as z.object({ … })`)
  return { ...schema, type: 'object' }
}
