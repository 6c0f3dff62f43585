/** Defines what the event hub delivers: the events of all runs of a home, and notices about everything else that happens in it. */

import type { AgentEvent, Ending, Risk } from '../../runtime/event.ts'

/**
 * One event of a home. Times are in milliseconds since 1970. `id` is `SEQ.PART` and names the event for good: resuming after it continues
 * with the next one, also in another process and after a restart. Compare `seq` as a number first, then PART.
 *
 * Three kinds have neither `id` nor `seq`: pieces of text and thinking that still stream (the numbered event that follows has the whole
 * text and replaces them), `estop` (a state, sent again at each subscription), and `subscription_ended`.
 */
export type HostEvent = {
  readonly id?: string
  /** The number of the journal entry that completed the event. */
  readonly seq?: number
  readonly at: number
  /** Absent when the event concerns the whole home. */
  readonly conversationId?: string
  readonly runId?: string
  /** The channel of the run. */
  readonly channel?: string
  readonly event: AgentEvent | HostNotice
}

/** A question about one call. `id` is what `records.approvals.decide` takes. */
export type AskedApproval = {
  readonly id: string
  readonly runId: string
  readonly conversationId: string
  readonly callId: string
  readonly tool: string
  readonly risk: Risk
  readonly rule: string
  readonly reason: string
  /** One escaped line: the command, the path, the URL, or the changes. */
  readonly summary: string
  /** The hash of the plan, or the digest of the change set: a yes covers exactly this. */
  readonly plan: string
  /** `changes`: the call has run, and a yes lets its changes into the workspace. */
  readonly about: 'call' | 'changes'
  readonly created: number
  readonly expires: number
}

/** An event of a home that belongs to no run. */
export type HostNotice =
  | { readonly type: 'run_started'; readonly message: string; readonly model: string }
  /** Follows the AgentEvent `done`. `interrupted`: the process of the run died; its journal was closed at a later start. */
  | { readonly type: 'run_ended'; readonly code: Ending['code']; readonly message: string; readonly interrupted?: true }
  | { readonly type: 'approval_open'; readonly approval: AskedApproval }
  /** `by`: who or what decided. A question that nobody was there to answer stays open until it expires. */
  | {
      readonly type: 'approval_closed'
      readonly id: string
      readonly state: 'allowed' | 'denied'
      readonly by: string
      readonly note?: string
    }
  /**
   * `set`: RUN/CALL, as `records.changes` names a change set. `digest`: of what was applied. `pending`: kept for a later yes. `failed`: an
   * operator's action on the set did not succeed, and why.
   */
  | {
      readonly type: 'changes_applied' | 'changes_dropped' | 'changes_pending' | 'changes_undone' | 'changes_redone' | 'changes_restored'
      readonly set: string
      readonly digest?: string
      readonly by?: string
      readonly failed?: string
      readonly receipt?: string
    }
  | { readonly type: 'estop'; readonly set: boolean; readonly reason?: string }
  | { readonly type: 'conversation_renamed'; readonly title: string }
  | { readonly type: 'conversation_deleted' }
  /** All conversations and runs were deleted, except those of runs under way. */
  | { readonly type: 'memory_cleared' }
  | { readonly type: 'schedule_fired'; readonly schedule: string; readonly runId?: string }
  /** `state`: good, bad, interrupted; missed and skipped runs only end. */
  | { readonly type: 'schedule_ended'; readonly schedule: string; readonly state: string }
  /** A run of a procedure began, waits, continues or has ended. */
  | { readonly type: 'procedure_changed'; readonly procedureRun: string; readonly state: string }
  /**
   * The last event of a subscription that ended by itself. `slow`: the subscriber took events too slowly; `closed`: the host was closed;
   * `failed`: the record cannot be read. Subscribe again with the last `id`. `unauthorized`: the token or the session of the subscriber has ended.
   */
  | { readonly type: 'subscription_ended'; readonly reason: 'slow' | 'closed' | 'failed' | 'unauthorized'; readonly message: string }

/** The whole of the filters must match; notices of the whole home pass only without filters. */
export type Subscription = {
  /**
   * The `id` or `seq` of the last event that was seen; a bare number stands for all parts of that entry. 0: from the beginning. Absent: only
   * what happens from now on.
   */
  readonly after?: number | string
  readonly conversationId?: string
  readonly runId?: string
  /** A further filter, for a subscriber that may see only some conversations. */
  readonly sees?: (event: HostEvent) => boolean
}

export type EventHub = {
  /**
   * Yields what is stored after `after`, then what happens, in this process and in others of the same home, without gap or double. Ends when
   * `signal` is aborted, or after a `subscription_ended`. The subscription exists from the first `next()` on.
   * @throws FailureError `usage` when `after` is not an id, `error` or `integrity` when the record cannot be read
   */
  subscribe(subscription: Subscription, signal?: AbortSignal): AsyncGenerator<HostEvent>
  /** The number of the newest journal entry: subscribing after it gives what happens from now on. 0 in an empty home. */
  latest(): number
}
