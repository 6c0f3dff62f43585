/** Defines the ports of the runtime to the outside. Adapters implement them; `main.ts` passes them in. */

import type { Json, JsonObject } from '../kit/json.ts'
import type { ChangeReview } from './changes.ts'
import type {
  Call,
  CheckFinding,
  ExternalEvent,
  FailureCode,
  FrozenCheck,
  InternalEvent,
  Judgement,
  Part,
  PictureRef,
  Proposal,
  Risk,
  ToolOutcome,
  Usage,
} from './event.ts'

/** A JSON Schema of an object, as the model sees it. */
export type Schema = {
  readonly type: 'object'
  readonly properties?: JsonObject
  readonly required?: readonly string[]
  readonly [key: string]: Json | undefined
}

/** A picture for a model that sees; `base64` are its bytes. */
export type Picture = { readonly type: PictureRef['type']; readonly base64: string }

/** The pictures of a message: the runtime holds their references, and a provider gets their bytes. */
type Pictured = { readonly pictures?: readonly (Picture | PictureRef)[] }

/** A person's message of one turn. */
export type Prompt = string | { readonly text: string; readonly pictures?: readonly Picture[] }

/** `isEvidence`: it says what a check found, and the last one is never left out. */
export type Message =
  | ({ readonly role: 'user'; readonly content: string; readonly isEvidence?: true } & Pictured)
  | {
      readonly role: 'assistant'
      readonly parts: readonly Part[]
      /** Messages before it are no longer what they were when the model wrote it. */
      readonly isAfterTrim?: true
    }
  | ({
      readonly role: 'tool'
      readonly callId: string
      readonly name: string
      readonly content: string
      readonly isError: boolean
    } & Pictured)

export type ToolSpec = { readonly name: string; readonly description: string; readonly parameters: Schema }

/** One request to a model. The order tools → system → messages is the cacheable prefix: the first two do not change during a run. */
export type ChatRequest = {
  readonly systemPrompt: string
  readonly messages: readonly Message[]
  readonly tools: readonly ToolSpec[]
  readonly model: string
  readonly temperature?: number
  /** The limit for this answer, in place of the provider's own limit. */
  readonly maxOutputTokens?: number
  /** Returns the most tokens of an answer that the window leaves room for: a limit that is sent is not higher. Absent: nobody knows. */
  readonly answerRoom?: () => number
  /** Hints for the router (`{ hint: "cheap" }`) and for logs; never sent to a vendor. */
  readonly metadata?: JsonObject
  /** Reserves budget for every attempt at an answer; never sent. Absent: there is no budget. */
  readonly meter?: Meter
}

/** The possible cost of one attempt. `prices` are in millionths of a US dollar per token; `null`: unknown, but not free. */
export type Quote = {
  readonly provider: string
  /** The model that is asked; empty: the provider's own. */
  readonly model: string
  readonly inputTokens: number
  readonly outputTokens: number
  readonly prices: { readonly input: number; readonly output: number } | null
  /** The longest time that it can take, in milliseconds. */
  readonly longestMs: number
}

export type Grant = {
  /** The longest answer that the budget pays for, in tokens. */
  readonly outputTokens: number
  /**
   * Call it once. `nothing`: the provider refused at once. `unknown`, and an estimated usage, count as all that was reserved.
   */
  settle(used: Usage | 'nothing' | 'unknown'): Promise<void>
}

/**
 * Reserves budget. The reservation is on disk when this resolves. @throws ProviderFailure `budget` when there is no room; it names the
 * scope
 */
export type Meter = (quote: Quote) => Promise<Grant>

export type ChatResponse = {
  readonly parts: readonly Part[]
  /** The text and the calls of `parts`, which a provider need not give. */
  readonly final_text?: string
  readonly tool_calls?: readonly Call[]
  readonly stop: 'stop' | 'length' | 'tool_calls' | 'content_filter' | 'other'
  readonly usage: Usage
  /** The model that answered; behind `reliable` or `router` it may differ from the requested one. */
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
  /** Absent: the model gets a note in place of each picture. */
  readonly pictures?: boolean
}

/**
 * A model behind one interface. `chat` yields pieces as they arrive and exactly one `done` last; a consumer that pulls slowly slows the
 * provider's stream down. It throws only `ProviderFailure`; every response of the provider must end in a `done` or in that error.
 */
export type Provider = {
  readonly name: string
  capabilities(): ProviderCapabilities
  chat(request: ChatRequest, signal: AbortSignal): AsyncIterable<ModelChunk>
}

/**
 * `unsent`: the request did not reach the provider. `unfinished`: the reply ended before its end. A refusal for length has `windowTokens`,
 * the window that the server named, and `sentTokens`, how many tokens it counted in the request, where its words hold them; `model`: the
 * model that refused.
 */
export type FailureDetail = {
  readonly status?: number
  readonly retryAfterMs?: number
  readonly provider?: string
  readonly model?: string
  readonly unsent?: boolean
  readonly unfinished?: boolean
  readonly windowTokens?: number
  readonly sentTokens?: number
}

/** The window of the model that a run asks, learnt from its replies and refusals. All counts are in tokens. Never throws. */
export type ModelWindow = {
  /** Resolves before the first request when the window is known as well as it can be: an unknown local server is asked for it. */
  ready(signal: AbortSignal): Promise<void>
  /** Returns the most tokens of a request and its answer together. */
  tokens(): number
  /** Tells whether the window is known; an assumed one may be too small. */
  isKnown(): boolean
  /** Returns by how much the tokens of the model exceed what tokensOf estimates, as far as is known. */
  scale(): number
  /** Learns from a reply to a request that was estimated at `estimated` tokens, the scale included. */
  replied(estimated: number, reply: Pick<ChatResponse, 'usage' | 'model' | 'provider'>): void
  /**
   * Learns from a refusal for length. @returns what a person should know, with the setting to write, when a smaller window is assumed from
   * now on; undefined when nothing was learnt
   */
  refused(estimated: number, failure: FailureDetail): string | undefined
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

/** Summarises the middle of a turn; `maxTokens` limits the answer. Undefined when the model failed. Never rejects. */
export type SummariseTurn = (
  request: { readonly text: string; readonly maxTokens: number },
  signal: AbortSignal,
) => Promise<{ readonly text: string; readonly usage?: Usage } | undefined>

/**
 * A resource that one call would touch. The tool derives it from its validated input alone and the gate judges it. Paths are unresolved, as
 * given.
 */
export type Touch =
  | { readonly kind: 'path'; readonly path: string; readonly access: 'read' | 'write' }
  /** `direct`: without a private view of the workspace. `network`: hosts, or `@lists` of hosts, that the command is to reach. */
  | {
      readonly kind: 'command'
      readonly command: string
      readonly cwd?: string
      readonly direct?: boolean
      readonly network?: readonly string[]
    }
  | { readonly kind: 'url'; readonly url: string; readonly method: string }

export type ToolContext = {
  readonly conversationId: string
  readonly callId: string
  /** Aborted on timeout, cancel and estop; a tool then ends its child processes and its requests. */
  readonly signal: AbortSignal
  /** The plan hash that the gate judged; a tool must refuse to execute anything else. */
  readonly plan: string
}

export type ToolResult = {
  readonly success: boolean
  readonly output: string
  readonly error?: string
  /** The rule that refused at execution time (a replaced symlink, a private address); the receipt then says `denied`. */
  readonly deniedBy?: string
  readonly metadata?: JsonObject
  /** The model sees them after the output. */
  readonly pictures?: readonly Picture[]
}

/**
 * A tool. The runtime validates the input against `parameters` before any other part sees it. `touches` must be pure and total: the gate
 * reads nothing else. `risk` is the minimum risk of a call that touches nothing. `invoke` may throw; the runtime turns that into a failed
 * result.
 */
export type Tool = ToolSpec & {
  readonly risk: Risk
  readonly timeoutMs: number
  /**
   * Returns the time limit that this call requests, in milliseconds; the tool's schema bounds it. Absent or undefined: the default limit.
   */
  limitMs?(input: JsonObject): number | undefined
  /** Tells whether running it again after a crash is harmless. */
  readonly idempotent: boolean
  touches(input: JsonObject): readonly Touch[]
  invoke(input: JsonObject, context: ToolContext): Promise<ToolResult>
}

/** The gate: estop → schema → forbidden → risk → autonomy. Never throws; if unsure it denies. */
export type Judge = (call: Call) => Promise<Judgement>

/** With `changes` the call ran on a private view of the workspace, and what it changed there waits for `apply` or `drop`. */
export type ActOutcome = ToolOutcome & { readonly changes?: ChangeReview }

/** Performs one allowed act and returns its outcome. Never throws. */
export type Act = (act: Internal<'act'>, signal: AbortSignal) => Promise<ActOutcome>

/** Applies or drops the changes of a call that ran on a private view. The runtime calls exactly one of the two, after that is on disk. */
export type ChangePorts = {
  /**
   * Applies the changes, all or none, and returns the outcome of the whole call: `applied` or `notApplied` of `ran`, which is what `act`
   * returned. Never throws.
   */
  apply(apply: Internal<'apply'>, signal: AbortSignal, ran: ToolOutcome): Promise<ToolOutcome>
  /** Removes the changes, or keeps them for a later yes if `isPending`. Never throws. */
  drop(drop: Internal<'drop'>): void
}

/**
 * The checks that end a wiggum run. They lie outside of what the run may write. `list`: in the order in which they run, frozen; a name
 * occurs once. `run` runs one of them and ends early when `signal` aborts. Never throws.
 */
export type CheckPort = { readonly list: readonly FrozenCheck[]; run(check: Internal<'check'>, signal: AbortSignal): Promise<CheckFinding> }

/** An approval or a refusal at an open gate; `by` is who decided, and becomes the rule name of a refusal. */
export type Decision = {
  readonly allow: boolean
  readonly by: string
  readonly note?: string
  /** The digest of a part of the change set, as `revise` returned it: a yes applies only this. */
  readonly part?: string
}

type Internal<Type extends InternalEvent['type']> = Extract<InternalEvent, { type: Type }>

/**
 * An entry that one super-step adds to the record. `tool.done`, `denied` and `dropped` each append a receipt; an `intent` and an `apply`
 * use up the approval that they name; `gate` opens a question that another process can answer until `expires` (milliseconds since 1970).
 */
export type RecordEntry =
  | { readonly kind: 'external'; readonly event: ExternalEvent }
  | { readonly kind: 'intent'; readonly act: Internal<'act'> }
  | { readonly kind: 'denied'; readonly deny: Internal<'deny'> }
  | { readonly kind: 'apply'; readonly apply: Internal<'apply'> }
  | { readonly kind: 'dropped'; readonly drop: Internal<'drop'> }
  | { readonly kind: 'gate'; readonly gate: Internal<'gate.open'>; readonly expires: number }
  /** The model reads this of the check that failed. */
  | { readonly kind: 'retry'; readonly retry: Internal<'retry'> }
  | { readonly kind: 'finish'; readonly finish: Internal<'finish'>; readonly digest: string }

/** Facts that only the record knows, by call id. */
export type Committed = {
  /** The receipts of results and denials; empty when receipts are off. */
  readonly receipts: ReadonlyMap<string, string>
  /** An earlier approval of exactly this plan in this conversation, now used up. */
  readonly earlier: ReadonlyMap<string, Decision>
  /** Why a call may not run, or its changes not be applied, after all: the approval was used, expired or is for another plan. */
  readonly unusable: ReadonlyMap<string, string>
}

/**
 * The only writer of the record. A batch is one super-step of one run: when the promise resolves, the whole batch is on disk; otherwise
 * none of it is. The runtime starts effects and shows events only after that. May reject: the run then ends with `integrity` or `error`,
 * and nothing of the batch happened.
 */
export type Recorder = { commit(run: RunIdentity, batch: readonly RecordEntry[]): Promise<Committed> }

/** Answers to open gates that come from another process, or from another part of this one. */
export type Questions = {
  /** Returns the answer that another process gave, if any. */
  answered(gateId: string): Decision | undefined
  /**
   * Calls `asked.answer` with an answer from elsewhere, or `asked.fail` when the record cannot be read. @returns a function that ends the
   * watch
   */
  watch(run: RunIdentity, asked: WatchedQuestion): () => void
}

/** `changes`: the question is about what the call changed. */
export type Question = Proposal & { readonly changes?: ChangeReview }

export type WatchedQuestion = {
  readonly gateId: string
  readonly proposal: Question
  /** @returns undefined when it counted, else the name of the rule that rejected it */
  answer(decision: Decision): Promise<string | undefined>
  fail(error: unknown): void
}

/**
 * The agent whose files record a run: its folder, the file that names the conversation to continue, and whether it keeps a history of
 * pairs.
 */
export type RunAgent = { readonly id: string; readonly folder: string; readonly pointer: string; readonly remembers?: true }

export type RunIdentity = {
  readonly runId: string
  readonly conversationId: string
  readonly turnId: string
  readonly provider: string
  readonly model: string
  readonly channel: string
  /** The folder where the conversation started: the real path of the workspace. */
  readonly folder?: string
  /** Commands run unconfined because an operator requested that: every receipt of the run says so, whatever the call. */
  readonly sandbox?: 'none'
  /** Absent: no agent's files record the run. */
  readonly agent?: RunAgent
  /** The id of the access token that asked for the run. */
  readonly token?: string
}

/** Event names come from seed 001: "tool requested", "receipt written", … The sink redacts the values. */
export type Log = (level: 'debug' | 'info' | 'warn' | 'error', event: string, fields?: { readonly [key: string]: unknown }) => void

/** Returns the same value with every registered secret replaced, at any depth. */
export type Redact = <T>(value: T) => T

/** Redacts text that arrives in pieces; it holds back the end that could still become a secret until the next piece or the end. */
export type RedactStream = () => { push(piece: string): string; flush(): string }

export type Clock = () => number

/** @returns the line without its newline, or undefined at EOF or when `signal` withdraws the question. */
export type AskLine = (question: string, signal?: AbortSignal) => Promise<string | undefined>
