/** Defines b-threads that a developer writes in a program that uses the library. */

import type { JsonObject } from '../../kit/json.ts'
import type { Call, Judgement, RunEvent } from '../event.ts'

/** An event that threads send each other: JSON, with a name of the developer's choice. */
type OwnEvent = { readonly type: `user.${string}`; readonly id?: string; readonly [detail: string]: unknown }

/** A tool call that a thread requests. It passes the gate as the model's calls do. `id` must be new in the run. */
type CallRequest = { readonly type: 'propose'; readonly id: string; readonly call: { readonly name: string; readonly input: JsonObject } }

/** The events that a thread can see: every event of the run, as frozen copies. */
export type ThreadEvent = Exclude<RunEvent, { type: 'user' }> | OwnEvent

type PatternOf<E> = E extends ThreadEvent
  ? { readonly type: E['type']; readonly id?: string; readonly match?: (event: E) => boolean | undefined }
  : never

/** Matches events of this type, of this id if given, and for which `match` returns true. */
export type ThreadPattern = PatternOf<ThreadEvent>

/**
 * The bid of a thread in its current state. A block of `act` with a `reason` refuses the call: it is denied and the model reads the reason.
 * A block of `apply` with a `reason` refuses what a call changed: it is dropped. Without a reason both wait until the block is lifted.
 */
export type ThreadBid = {
  readonly request?: readonly (OwnEvent | CallRequest)[]
  readonly wait?: readonly ThreadPattern[]
  readonly block?: readonly (ThreadPattern & { readonly reason?: string })[]
  readonly interrupt?: readonly ThreadPattern[]
}

/**
 * A reducer over plain JSON: `bid` and `next` are pure and called without `this`. The program calls `next` for an event that the thread
 * requested, waited for or is interrupted by. A thread can restrict what a run may do and request calls; it cannot permit anything.
 */
export type Thread<S = unknown> = {
  /** 1 to 64 of a–z, 0–9, "-", "_". Logs and errors say `user/NAME`. */
  readonly name: string
  /** From 0 to 9, default 5: the order among developers' threads, lowest first. All of them come after the program's own guards. */
  readonly priority?: number
  readonly init: S
  bid(this: void, state: S): ThreadBid
  next(this: void, state: S, event: ThreadEvent): S
  /** Values and functions that `bid` and `next` refer to; they count for the thread's digest. */
  readonly uses?: readonly unknown[]
}

/** Threads with different state types in one list. */
// biome-ignore lint/suspicious/noExplicitAny: the one place where state types differ within a list
export type AnyUserThread = Thread<any>

/** A call with the gate's judgement. */
export type JudgedCall = { readonly id: string; readonly call: Call; readonly judgement: Judgement }

/**
 * Builds a thread that refuses every call for which `when` returns true, with a reason that the model reads. List the values that `when`
 * takes from its scope in `uses`.
 */
export function veto(
  name: string,
  when: (call: JudgedCall) => boolean | undefined,
  { reason = `not allowed by ${name}`, uses = [] }: { readonly reason?: string; readonly uses?: readonly unknown[] } = {},
): Thread<null> {
  return {
    name,
    init: null,
    bid: () => ({ block: [{ type: 'act', match: when, reason }] }),
    next: (state) => state,
    uses: [when, reason, ...uses],
  }
}
