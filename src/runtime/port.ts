/** What the runtime needs of the world. Organs implement these; `main.ts` passes them in. */

import type { Json, JsonObject } from '../kit/json.ts'
import type { Call, ExternalEvent, FailureCode, InternalEvent, Judgement, Part, Proposal, Risk, ToolOutcome, Usage } from './event.ts'

/** A JSON Schema of an object, as the model sees it. */
export type Schema = {
  readonly type: 'object'
  readonly properties?: JsonObject
  readonly required?: readonly string[]
  readonly [key: string]: Json | undefined
}

export type Message =
  | { readonly role: 'user'; readonly content: string }
  | { readonly role: 'assistant'; readonly parts: readonly Part[] }
  | { readonly role: 'tool'; readonly callId: string; readonly name: string; readonly content: string; readonly isError: boolean }

export type ToolSpec = { readonly name: string; readonly description: string; readonly parameters: Schema }

/** One question to a model. The order tools → system → messages is the cacheable prefix: nothing in the first two changes in a run. */
export type ChatRequest = {
  readonly systemPrompt: string
  readonly messages: readonly Message[]
  readonly tools: readonly ToolSpec[]
  readonly model: string
  readonly temperature?: number
  /** Of this answer, in place of the provider's own limit. */
  readonly maxOutputTokens?: number
  /** Hints for the router (`{ hint: "cheap" }`) and for logs; never sent to a vendor. */
  readonly metadata?: JsonObject
  /** Every attempt at an answer is paid for through this; never sent. Absent: there is no budget. */
  readonly meter?: Meter
}

/** What one attempt can cost. `prices` are in millionths of a US dollar a token; `null`: not known, although it costs something. */
export type Quote = {
  readonly provider: string
  readonly inputTokens: number
  readonly outputTokens: number
  readonly prices: { readonly input: number; readonly output: number } | null
  /** How long it can take, in milliseconds. */
  readonly longestMs: number
}

export type Grant = {
  /** The longest answer that is paid for. */
  readonly outputTokens: number
  /** To be called once. `nothing`: the far side refused at once; `unknown` counts as all that was reserved. */
  settle(used: Usage | 'nothing' | 'unknown'): Promise<void>
}

/** Budgets. The reservation is on disk when this resolves. @throws ProviderFailure `budget` when there is no room, naming the scope */
export type Meter = (quote: Quote) => Promise<Grant>

export type ChatResponse = {
  readonly parts: readonly Part[]
  readonly stop: 'stop' | 'length' | 'tool_calls' | 'content_filter' | 'other'
  readonly usage: Usage
  /** The model that answered, which behind `reliable` or `router` is not the one asked. */
  readonly model: string
  readonly provider: string
  readonly rawProviderPayload?: unknown
}

export type ModelChunk =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'thinking'; readonly text: string }
  | { readonly type: 'done'; readonly response: ChatResponse }

export type ProviderCapabilities = {
  readonly streaming: boolean
  readonly tools: boolean
  readonly thinking: boolean
  readonly contextTokens: number
}

/**
 * A model behind one interface. `chat` yields pieces as they arrive and exactly one `done` last; pulling slowly slows the far side down.
 * It throws only `ProviderFailure`; whatever the far side sends must end in a `done` or in that.
 */
export type Provider = {
  readonly name: string
  capabilities(): ProviderCapabilities
  chat(request: ChatRequest, signal: AbortSignal): AsyncIterable<ModelChunk>
}

/** `unsent`: the question did not reach the far side. */
export type FailureDetail = {
  readonly status?: number
  readonly retryAfterMs?: number
  readonly provider?: string
  readonly unsent?: boolean
}

export class ProviderFailure extends Error {
  override readonly name = 'ProviderFailure'
  constructor(
    readonly code: FailureCode,
    message: string,
    readonly detail: FailureDetail = {},
  ) {
    super(message)
  }
}

/** What one call would touch, said by the tool from its validated input alone, judged by the gate. Paths are as given: not yet resolved. */
export type Touch =
  | { readonly kind: 'path'; readonly path: string; readonly access: 'read' | 'write' }
  | { readonly kind: 'command'; readonly command: string; readonly cwd?: string }
  | { readonly kind: 'url'; readonly url: string; readonly method: string }

export type ToolContext = {
  readonly conversationId: string
  readonly callId: string
  /** Aborted on timeout, cancel and estop; a tool ends its children and its requests on it. */
  readonly signal: AbortSignal
  /** The plan hash the gate decided on; a tool that executes something else must refuse. */
  readonly plan: string
}

export type ToolResult = {
  readonly success: boolean
  readonly output: string
  readonly error?: string
  /** The rule that refused at execution time (a symlink swapped in, a private address): the receipt then says `denied`. */
  readonly deniedBy?: string
  readonly metadata?: JsonObject
}

/**
 * A tool. `parameters` is validated before anything else sees the input. `touches` must be pure and total: the gate reads nothing else.
 * `risk` is the floor when it touches nothing. `invoke` may throw; the runtime turns that into a failed result.
 */
export type Tool = ToolSpec & {
  readonly risk: Risk
  readonly timeoutMs: number
  /** The limit that this call asks for, in milliseconds; the tool's schema has bounded it. Absent or undefined: the usual one. */
  limitMs?(input: JsonObject): number | undefined
  /** May be run again after a crash with no harm. */
  readonly idempotent: boolean
  touches(input: JsonObject): readonly Touch[]
  invoke(input: JsonObject, context: ToolContext): Promise<ToolResult>
}

/** The gate: estop → schema → forbidden → risk → autonomy. Never throws; in doubt it denies. */
export type Judge = (call: Call) => Promise<Judgement>

/** Carries out one allowed act and says what came of it. Never throws. */
export type Act = (act: Extract<InternalEvent, { type: 'act' }>, signal: AbortSignal) => Promise<ToolOutcome>

/** A yes or a no to an open gate; `by` is who said it, and names the rule of a refusal. */
export type Decision = { readonly allow: boolean; readonly by: string; readonly note?: string }

type Internal<Type extends InternalEvent['type']> = Extract<InternalEvent, { type: Type }>

/**
 * What one super-step leaves in the record. For `tool.done` and `denied` a receipt is appended with it; an `intent` uses up the approval it
 * names; `gate` opens a question that another process can answer until `expires` (milliseconds since 1970).
 */
export type RecordEntry =
  | { readonly kind: 'external'; readonly event: ExternalEvent }
  | { readonly kind: 'intent'; readonly act: Internal<'act'> }
  | { readonly kind: 'denied'; readonly deny: Internal<'deny'> }
  | { readonly kind: 'gate'; readonly gate: Internal<'gate.open'>; readonly expires: number }
  | { readonly kind: 'finish'; readonly finish: Internal<'finish'>; readonly digest: string }

/** What only the record knows, by call id. */
export type Committed = {
  /** The receipts of results and denials; empty when receipts are off. */
  readonly receipts: ReadonlyMap<string, string>
  /** The yes given earlier to this very plan in this conversation, now used up. */
  readonly earlier: ReadonlyMap<string, Decision>
  /** Why a call may not be carried out after all: its approval was used, expired or is for another plan. */
  readonly unusable: ReadonlyMap<string, string>
}

/**
 * The one writer. A batch is one super-step of one run: it is on disk as a whole when the promise resolves, or not at all. Effects begin and
 * events are shown only after it. May reject: the run then ends with `integrity` or `error`, and nothing of the batch happened.
 */
export type Recorder = { commit(run: RunIdentity, batch: readonly RecordEntry[]): Promise<Committed> }

/** Answers to open gates that come from elsewhere: another process, or another part of this one. */
export type Questions = {
  /** What somebody in another process has answered, if anybody has. */
  answered(run: RunIdentity, callId: string): Decision | undefined
  /** Calls `asked.answer` with what is answered elsewhere, or `asked.fail` when the record cannot be read. @returns a function that ends that */
  watch(run: RunIdentity, asked: WatchedQuestion): () => void
}

export type WatchedQuestion = {
  readonly callId: string
  readonly proposal: Proposal
  /** @returns undefined when it counted, else the name of the rule that rejected it */
  answer(decision: Decision): Promise<string | undefined>
  fail(error: unknown): void
}

/** The agent in whose files a run is told: where its folder is, which of its files names the conversation to go on with, and whether it keeps a history of pairs. */
export type RunAgent = { readonly id: string; readonly folder: string; readonly pointer: string; readonly remembers?: true }

export type RunIdentity = {
  readonly runId: string
  readonly conversationId: string
  readonly turnId: string
  readonly provider: string
  readonly model: string
  readonly channel: string
  /** Where its conversation was begun: the real path of the workspace. */
  readonly folder?: string
  /** Commands run unconfined because somebody asked for that: every receipt of the run says so, whatever the call. */
  readonly sandbox?: 'none'
  /** Absent: the run is told in no agent's files. */
  readonly agent?: RunAgent
}

/** Names are seed 001's: "tool requested", "receipt written", … Values are redacted by the sink. */
export type Log = (level: 'debug' | 'info' | 'warn' | 'error', event: string, fields?: { readonly [key: string]: unknown }) => void

/** The same value with every registered secret replaced, however deep it sits. */
export type Redact = <T>(value: T) => T

/** The same for text that arrives in pieces; what could still become a secret is held back until the next piece or the end. */
export type RedactStream = () => { push(piece: string): string; flush(): string }

export type Clock = () => number

/** @returns the line without its end, or undefined at EOF or when the question was taken back. */
export type AskLine = (question: string, signal?: AbortSignal) => Promise<string | undefined>
