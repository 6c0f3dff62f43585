/** The vocabulary: every event of a run. Present tense asks (`think`), past tense reports (`model.done`). */

import type { Json, JsonObject } from '../kit/json.ts'

export type Mode = 'structured' | 'wiggum'
export type Risk = 'low' | 'medium' | 'high'
export type StopReason = 'end_turn' | 'cancelled' | 'error'

/** Token counts of one model call; `costMicros` is in millionths of a US dollar, absent when the price is unknown. */
export type Usage = {
  readonly inputTokens: number
  readonly outputTokens: number
  readonly cachedInputTokens?: number
  readonly costMicros?: number
  /** Counted by us from what was sent and received, since the far side did not say. */
  readonly estimated?: true
}

/** A piece of a model's reply, in the order it came. `meta` is the provider's own (a thinking signature) and goes back unmodified. */
export type Part =
  | { readonly type: 'text'; readonly text: string; readonly meta?: JsonObject }
  | { readonly type: 'thinking'; readonly text: string; readonly meta?: JsonObject }
  | ({ readonly type: 'call'; readonly meta?: JsonObject } & Call)

/** A tool call as the model asked for it. `input` is already parsed; `malformed` holds the raw text when it was no JSON object. */
export type Call = { readonly id: string; readonly name: string; readonly input: JsonObject; readonly malformed?: string }

/**
 * What the gate says of one call, decided once, journalled with the reply and obeyed by the threads.
 * `plan` is the hash of exactly what would be executed; an approval is bound to it.
 */
export type Judgement = {
  readonly verdict: 'allow' | 'ask' | 'deny'
  readonly risk: Risk
  readonly rule: string
  readonly reason: string
  readonly plan: string
  /** One escaped line a person can read: the argv, the path, the URL. */
  readonly summary: string
  /** Canonical names of what the call writes; two calls that share one take turns. */
  readonly writes: readonly string[]
}

export type Proposal = { readonly call: Call; readonly judgement: Judgement }

/** What a project's own file says to the model. `path` is relative to the workspace; `text` is as the model is told it: escaped, perhaps cut. */
export type Instruction = { readonly path: string; readonly text: string }

/** What came of one attempt. `status` goes into the receipt: a refusal at execution time is `denied`, not `failed`. */
export type ToolOutcome = {
  readonly status: 'allowed' | 'denied' | 'failed'
  readonly output: string
  readonly error?: string
  readonly receipt?: string
  readonly metadata?: JsonObject
  /** Of the folders that this call touched first; told to the model after the output, and never part of it. */
  readonly instructions?: readonly Instruction[]
}

/** Why a run ended, for exit codes and machines; `stop` is the coarse word of AgentEvent. */
export type Ending = {
  readonly stop: StopReason
  readonly code:
    | 'answered'
    | 'denied'
    | 'approval_needed'
    | 'limit'
    | 'budget'
    | 'timeout'
    | 'provider'
    | 'integrity'
    | 'estop'
    | 'cancelled'
    | 'stalled'
    | 'error'
  readonly message: string
}

/** From outside; journalled before its consequences. */
export type ExternalEvent =
  | { readonly type: 'run.start'; readonly prompt: string; readonly mode: Mode; readonly at: number; readonly model: string }
  | {
      readonly type: 'model.done'
      readonly parts: readonly Part[]
      readonly proposals: readonly Proposal[]
      readonly usage: Usage
      readonly model: string
      readonly provider?: string
      /** Why the model stopped when that was not its own end: the answer is then cut. */
      readonly cut?: 'length' | 'content_filter'
    }
  | { readonly type: 'model.fail'; readonly code: FailureCode; readonly message: string }
  | { readonly type: 'tool.done'; readonly id: string; readonly outcome: ToolOutcome }
  | {
      readonly type: 'approval.decision'
      readonly id: string
      readonly allow: boolean
      readonly by: string
      readonly plan: string
      readonly note?: string
    }
  | { readonly type: 'check.done'; readonly id: string; readonly pass: boolean; readonly evidence: string }
  | { readonly type: 'cancel'; readonly by: string }
  | { readonly type: 'estop'; readonly reason: string }
  | { readonly type: 'clock'; readonly at: number }
  | { readonly type: 'mode.set'; readonly mode: Mode; readonly maxIterations?: number }
  /** A thread of the developer's joined the run; `digest` is that of its source. */
  | { readonly type: 'thread.add'; readonly name: string; readonly digest: string }
  /** What the gate says of the call that the thread `by` asked for. `parts` tell the model of it, as if it were a reply. */
  | {
      readonly type: 'judged'
      readonly id: string
      readonly by: string
      readonly parts: readonly Part[]
      readonly proposals: readonly Proposal[]
    }

/** Requested by threads. Only `think`, `judge`, `act` and `check` have effects. */
export type InternalEvent =
  | { readonly type: 'think'; readonly round: number }
  | ({ readonly type: 'propose'; readonly id: string } & Proposal)
  | { readonly type: 'gate.open'; readonly id: string; readonly call: Call; readonly judgement: Judgement }
  | { readonly type: 'act'; readonly id: string; readonly call: Call; readonly judgement: Judgement; readonly approval?: string }
  | {
      readonly type: 'deny'
      readonly id: string
      readonly call: Call
      readonly judgement: Judgement
      readonly by: string
      readonly reason: string
    }
  | { readonly type: 'observe'; readonly round: number; readonly results: readonly ToolReport[] }
  | { readonly type: 'check'; readonly id: string; readonly tier: number }
  | { readonly type: 'retry'; readonly evidence: string }
  /** A limit, a budget or the clock says: no more. What runs is aborted, what waits is denied, then the run finishes with this code. */
  | { readonly type: 'halt'; readonly code: 'limit' | 'budget' | 'timeout' | 'error'; readonly message: string }
  /** A thread of the developer's wants a call of its own; the gate has to see it first. */
  | { readonly type: 'judge'; readonly id: string; readonly by: string; readonly call: Call }
  /** Between threads of the developer's: `id` is its name without "user.", `event` what they say to one another. */
  | { readonly type: 'user'; readonly id: string; readonly event: JsonObject }
  | { readonly type: 'stalled' }
  | { readonly type: 'finish'; readonly ending: Ending }

/** What the model is told about one call after its round. */
export type ToolReport = { readonly call: Call; readonly ok: boolean; readonly text: string }

export type RunEvent = ExternalEvent | InternalEvent

/**
 * Why a model call failed. `aborted` is ours (cancel, estop); all others come from the far side or the wire. `empty` is a reply with neither
 * text nor calls, `refused` one that the model or its content filter would not give;
 * `budget` is ours too: the call was not made.
 */
export type FailureCode =
  | 'auth'
  | 'rate_limit'
  | 'timeout'
  | 'network'
  | 'server'
  | 'bad_request'
  | 'bad_response'
  | 'context_length'
  | 'too_large'
  | 'empty'
  | 'refused'
  | 'budget'
  | 'aborted'
  | 'unknown'

/** What a consumer of a run sees: exactly the nine kinds of seed 003. */
export type AgentEvent =
  | { type: 'init'; runId: string; model: string }
  | { type: 'thinking'; content: string }
  | { type: 'text'; content: string; isPartial: boolean }
  | { type: 'tool_use'; toolCallId: string; toolName: string; input: unknown }
  | { type: 'tool_result'; toolCallId: string; status: 'completed' | 'failed'; output?: unknown }
  | { type: 'approval_gate'; gateId: string; toolName: string; input: unknown }
  | { type: 'iteration'; count: number }
  | { type: 'error'; code: string; message: string; recoverable: boolean }
  | { type: 'done'; stopReason: StopReason; result?: string; iterations?: number }

export type { Json, JsonObject }
