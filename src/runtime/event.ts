/** Defines every event of a run. Present tense requests (`think`), past tense reports (`model.done`). */

import type { Json, JsonObject } from '../kit/json.ts'
import type { ChangeReview } from './changes.ts'

export type Mode = 'structured' | 'wiggum'
export type Risk = 'low' | 'medium' | 'high'
export type StopReason = 'end_turn' | 'cancelled' | 'error'

/** Token counts of one model call; `costMicros` is in millionths of a US dollar, absent when the price is unknown. */
export type Usage = {
  readonly inputTokens: number
  readonly outputTokens: number
  /** The part of `inputTokens` that was read from the provider's cache. */
  readonly cachedInputTokens?: number
  /** The part of `inputTokens` that was written to the provider's cache. */
  readonly cacheWriteTokens?: number
  readonly costMicros?: number
  /** The runtime counted the tokens from the sent and received text, because the provider did not report them. */
  readonly estimated?: true
}

/**
 * A piece of a model's reply, in order of arrival. `meta` belongs to the provider (a thinking signature); the runtime returns it
 * unmodified.
 */
export type Part =
  | { readonly type: 'text'; readonly text: string; readonly meta?: JsonObject }
  | { readonly type: 'thinking'; readonly text: string; readonly meta?: JsonObject }
  | ({ readonly type: 'call'; readonly meta?: JsonObject } & Call)

/** A tool call as the model requested it. `input` is already parsed; `malformed` holds the raw text if it was not a JSON object. */
export type Call = { readonly id: string; readonly name: string; readonly input: JsonObject; readonly malformed?: string }

/**
 * Classifies a call for the rule about data that may be sent out: it reads private data, reads content that others wrote, or sends data.
 */
export type Label = 'reads_private' | 'reads_untrusted' | 'sends'

/**
 * The gate's judgement of one call: made once, journalled with the reply and enforced by the threads. `plan` is the hash of exactly what
 * would be executed; an approval is bound to it.
 */
export type Judgement = {
  readonly verdict: 'allow' | 'ask' | 'deny'
  readonly risk: Risk
  readonly rule: string
  readonly reason: string
  readonly plan: string
  /** One escaped line for people: the argv, the path, the URL. */
  readonly summary: string
  /** Canonical names of what the call writes; two calls that share a name run one after the other. */
  readonly writes: readonly string[]
  /** Absent: it does nothing of that kind. */
  readonly labels?: readonly Label[]
}

export type Proposal = { readonly call: Call; readonly judgement: Judgement }

/**
 * Instructions from a file of the project. `path` is relative to the workspace; `text` is as the model sees it: escaped, perhaps truncated.
 */
export type Instruction = { readonly path: string; readonly text: string }

/** A picture in the record. `sha256` is the digest of its bytes, which the home keeps beside the journal. */
export type PictureRef = { readonly type: `image/${'jpeg' | 'png' | 'webp' | 'gif'}`; readonly sha256: string }

/** The result of one attempt. `status` goes into the receipt: a refusal at execution time is `denied`, not `failed`. */
export type ToolOutcome = {
  readonly status: 'allowed' | 'denied' | 'failed'
  readonly output: string
  readonly error?: string
  readonly receipt?: string
  readonly metadata?: JsonObject
  /** The instructions of the folders that this call touched first. The model sees them after the output; they are never part of it. */
  readonly instructions?: readonly Instruction[]
  readonly pictures?: readonly PictureRef[]
}

/** A command that ended on a private view of the workspace: what it returned, and the gate's judgement of what it changed. */
export type Changed = { readonly outcome: ToolOutcome; readonly review: ChangeReview }

/**
 * Room that was made in the model's window before a request. Sizes are estimated tokens. It depends on facts that only the live run has
 * (the window, the size of earlier turns, the summary), so it is journalled; a replay checks `digest`.
 */
export type Trim = {
  readonly window: number
  /** Size of the request before and after. */
  readonly before: number
  readonly after: number
  /** Absent: the request was too large by estimate. `refused`: the model refused it for its length. */
  readonly refused?: true
  /** The calls of the turn whose results became one line each. */
  readonly lines: readonly string[]
  /** Replaces the turn's messages from `from` up to, without, `until`; `by` is `runtime` when no model could summarise them. */
  readonly summary?: { readonly from: number; readonly until: number; readonly text: string; readonly by: 'model' | 'runtime' }
  /** How many messages of earlier turns are left out. */
  readonly omitted: number
  /** Cost of the summary. */
  readonly usage?: Usage
  /** Tells whether the model can read a result again with result_read. */
  readonly readable: boolean
  /** Tells a person about the window. */
  readonly note?: string
  /** SHA-256 of the turn's messages afterwards, as canonical JSON. */
  readonly digest: string
}

/** The window that a request had, and its size as the server counted it, or else as the runtime estimates it. In tokens. */
export type WindowUse = { readonly window: number; readonly used: number }

/** The window of a run's latest request, and how often the run was trimmed; `window` and `used` are absent before the first reply. */
export type ContextUse = Partial<WindowUse> & { readonly trimmed: number }

/**
 * The interrupted run that another run continues. `asked` is the question of that turn; `proposals` are the calls of its last reply that
 * have no result, judged again.
 */
export type Continued = {
  readonly run: string
  readonly asked: string
  readonly proposals: readonly Proposal[]
  readonly wiggum?: Interrupted
  readonly allowedTools?: readonly string[]
}

/** A check as it was when the run began. `tier`: 0 is the cheapest. `digest`: of its command or definition and the files that it names. */
export type FrozenCheck = { readonly name: string; readonly tier: 0 | 1 | 2 | 3; readonly digest: string }

/**
 * The checks that end a wiggum run, in the order in which they run, and its limits. `maxSame`: the run ends when the same check failed on the
 * same tree with the same evidence this many times in a row. `until`: it ends then, in milliseconds since 1970.
 */
export type Wiggum = {
  readonly checks: readonly FrozenCheck[]
  readonly maxIterations: number
  readonly maxSame: number
  readonly until?: number
}

/**
 * Says how far a wiggum run came. `failed`: a check failed with this evidence, and the model does not know it yet; `unusable`: one could not be run.
 * `same`: how often that failure came in a row. `passed` counts the checks that passed one after the other, all on `tree`.
 */
export type Progress = {
  readonly limits: Wiggum
  readonly iteration: number
  readonly stage: 'working' | 'checking' | 'failed' | 'passed' | 'unusable'
  readonly evidence: string
  readonly same: { readonly key: string; readonly times: number }
  readonly passed: number
  readonly tree: string | null
}

/**
 * Says where an interrupted wiggum run stood, with the text of its last reply. Its `tokens`, and `micros` in millionths of a US dollar, count
 * against the budget.
 */
export type Interrupted = Progress & { readonly text?: string; readonly tokens?: number; readonly micros?: number }

/**
 * Says what a check found. `evidence`: what the model and a person read, at most 8,000 characters. `tree`: the digest of the files that it ran on;
 * all checks of a run have one, or none has. `notRun`: it could not be run, or is not the frozen one any more, and the run ends.
 */
export type CheckFinding = {
  readonly pass: boolean
  readonly evidence: string
  readonly tree?: string
  readonly ms?: number
  readonly exit?: number
  readonly notRun?: true
}

/** Why a run ended, for exit codes and machines; `stop` is the coarser stop reason of AgentEvent. */
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
    | 'checks_failed'
    | 'error'
  readonly message: string
}

/** Comes from outside and is journalled before its consequences. */
export type ExternalEvent =
  | {
      readonly type: 'run.start'
      readonly prompt: string
      readonly mode: Mode
      readonly at: number
      readonly model: string
      /** The kinds of data that the conversation has read, and whether others wrote the prompt. */
      readonly labels?: readonly Label[]
      /** Absent: the run begins a turn. Else the prompt is a note for the model, empty in most runs. */
      readonly continues?: Continued
      /** Absent: structured mode. */
      readonly wiggum?: Wiggum
      /** The allowed-tools of the skill or command that began the turn; absent: every tool. */
      readonly allowedTools?: readonly string[]
      /** The pictures of the prompt. */
      readonly pictures?: readonly PictureRef[]
    }
  | {
      readonly type: 'model.done'
      readonly parts: readonly Part[]
      readonly proposals: readonly Proposal[]
      readonly usage: Usage
      readonly model: string
      readonly provider?: string
      /** Why the answer is incomplete, if the model did not end it itself. */
      readonly cut?: 'length' | 'content_filter'
      /** Absent in older journals. */
      readonly context?: WindowUse
    }
  /** Messages were shortened or left out, so that the next request fits into the window. */
  | ({ readonly type: 'context.trimmed' } & Trim)
  /** `unbilled`: the provider refused before an answer began, or the request never arrived. */
  | { readonly type: 'model.fail'; readonly code: FailureCode; readonly message: string; readonly unbilled?: true }
  | { readonly type: 'tool.done'; readonly id: string; readonly outcome: ToolOutcome }
  /** The act has ended on a private view; its changes are not in the workspace yet. `apply` or `drop` follows. */
  | ({ readonly type: 'tool.changed'; readonly id: string } & Proposal & Changed)
  | {
      readonly type: 'approval.decision'
      readonly id: string
      readonly allow: boolean
      readonly by: string
      readonly plan: string
      readonly note?: string
      /** The digest of what the person accepts in place of the whole change set: some of the files, perhaps edited. */
      readonly part?: string
    }
  | ({ readonly type: 'check.done'; readonly id: string } & CheckFinding)
  /** A person said this while the turn ran: the next request to the model has it as its last message. */
  | { readonly type: 'steer'; readonly text: string }
  | { readonly type: 'cancel'; readonly by: string }
  | { readonly type: 'estop'; readonly reason: string }
  | { readonly type: 'clock'; readonly at: number }
  | { readonly type: 'mode.set'; readonly mode: Mode; readonly maxIterations?: number }
  /** A developer's thread joined the run; `digest` is the digest of its source. */
  | { readonly type: 'thread.add'; readonly name: string; readonly digest: string }
  /** The gate's judgement of the call that the thread `by` requested. `parts` present the call to the model as if it were a reply. */
  | {
      readonly type: 'judged'
      readonly id: string
      readonly by: string
      readonly parts: readonly Part[]
      readonly proposals: readonly Proposal[]
    }

/** Requested by threads. Only `think`, `judge`, `act`, `apply` and `check` have effects. */
export type InternalEvent =
  | { readonly type: 'think'; readonly round: number }
  | ({ readonly type: 'propose'; readonly id: string } & Proposal)
  /** With `changes` it asks about what the call changed; the judgement's plan is then their digest. */
  | { readonly type: 'gate.open'; readonly id: string; readonly call: Call; readonly judgement: Judgement; readonly changes?: ChangeReview }
  | { readonly type: 'act'; readonly id: string; readonly call: Call; readonly judgement: Judgement; readonly approval?: string }
  | {
      readonly type: 'deny'
      readonly id: string
      readonly call: Call
      readonly judgement: Judgement
      readonly by: string
      readonly reason: string
    }
  /** The changes of a call enter the workspace; its `tool.done` follows. */
  | ({
      readonly type: 'apply'
      readonly id: string
      readonly review: ChangeReview
      readonly approval?: string
      /** Only this part is applied, as in the decision. */
      readonly part?: string
    } & Proposal)
  /** The changes of a call never enter the workspace, and the call has ended. */
  | ({ readonly type: 'drop'; readonly id: string; readonly by: string; readonly reason: string } & Proposal & Changed)
  | { readonly type: 'observe'; readonly round: number; readonly results: readonly ToolReport[] }
  /** `id` is unique in the run; `iteration` counts from 1. */
  | { readonly type: 'check'; readonly id: string; readonly name: string; readonly tier: number; readonly iteration: number }
  /** A check failed: the model gets this text as the next message, and the next iteration begins. */
  | { readonly type: 'retry'; readonly evidence: string }
  /**
   * A limit, a budget or the clock ends the run: running effects are aborted, waiting calls are denied, then the run finishes with this
   * code.
   */
  | { readonly type: 'halt'; readonly code: 'limit' | 'budget' | 'timeout' | 'checks_failed' | 'error'; readonly message: string }
  /** A developer's thread requests a call; the gate has to judge it first. */
  | { readonly type: 'judge'; readonly id: string; readonly by: string; readonly call: Call }
  /** An event between developers' threads: `id` is its name without "user.", `event` its content. */
  | { readonly type: 'user'; readonly id: string; readonly event: JsonObject }
  | { readonly type: 'stalled' }
  | { readonly type: 'finish'; readonly ending: Ending }

/** The result of one call as the model gets it after the round. */
export type ToolReport = { readonly call: Call; readonly ok: boolean; readonly text: string; readonly pictures?: readonly PictureRef[] }

export type RunEvent = ExternalEvent | InternalEvent

/**
 * Why a model call failed. `aborted` comes from us (cancel, estop), and so does `budget`: the call was not made. All others come from the
 * provider or the connection. `empty` is a reply with neither text nor calls; `refused` is a reply that the model or its content filter
 * declined to give.
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

/** The events that a consumer of a run sees: exactly the nine kinds of seed 003. */
export type AgentEvent =
  | { type: 'init'; runId: string; model: string }
  | { type: 'thinking'; content: string }
  | { type: 'text'; content: string; isPartial: boolean }
  | { type: 'tool_use'; toolCallId: string; toolName: string; input: unknown }
  /** `changes`: what became of the call's changes; see `changesOf`. Absent when it ran on no view. */
  | { type: 'tool_result'; toolCallId: string; status: 'completed' | 'failed'; output?: unknown; changes?: string }
  /** `changes`: the call has run, and the gate asks whether these changes may enter the workspace. */
  | { type: 'approval_gate'; gateId: string; toolName: string; input: unknown; changes?: ChangeReview }
  | { type: 'iteration'; count: number }
  | { type: 'error'; code: string; message: string; recoverable: boolean }
  | { type: 'done'; stopReason: StopReason; result?: string; iterations?: number }

export type { Json, JsonObject }
