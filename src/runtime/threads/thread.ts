/** A b-thread of the developer's own, as a program that uses the library writes it. */

import type { JsonObject } from '../../kit/json.ts'
import type { RunEvent } from '../event.ts'

/** An event that threads send one another: JSON, and a name of their own. */
export type OwnEvent = { readonly type: `user.${string}`; readonly id?: string; readonly [detail: string]: unknown }

/** A tool call that a thread asks for. It passes the gate as the model's calls do. `id` must be new in the run. */
export type CallRequest = {
  readonly type: 'propose'
  readonly id: string
  readonly call: { readonly name: string; readonly input: JsonObject }
}

/** What a thread hears of: every event of the run. They are copies, and frozen. */
export type ThreadEvent = Exclude<RunEvent, { type: 'user' }> | OwnEvent

type PatternOf<E> = E extends ThreadEvent
  ? { readonly type: E['type']; readonly id?: string; readonly match?: (event: E) => boolean | undefined }
  : never

/** Which events are meant: of this type, of this id if given, and for which `match` holds. */
export type ThreadPattern = PatternOf<ThreadEvent>

/**
 * What a thread asks for at this moment. With a `reason`, a block of `act` refuses the call: it is denied and the model reads the reason.
 * Without one the call waits until the block is lifted.
 */
export type ThreadBid = {
  readonly request?: readonly (OwnEvent | CallRequest)[]
  readonly wait?: readonly ThreadPattern[]
  readonly block?: readonly (ThreadPattern & { readonly reason?: string })[]
  readonly interrupt?: readonly ThreadPattern[]
}

/**
 * A reducer over plain JSON: `bid` and `next` are pure and called without `this`. `next` is called for an event that the thread requested,
 * waited for or is interrupted by. It can take away from what a run may do and ask for calls, and permit nothing.
 */
export type Thread<S = unknown> = {
  /** 1 to 64 of a–z, 0–9, "-", "_". Logs and errors say `user/NAME`. */
  readonly name: string
  /** From 0 to 9, 5 when absent: who of several threads is asked first. All of them come after the program's own guards. */
  readonly priority?: number
  readonly init: S
  bid(this: void, state: S): ThreadBid
  next(this: void, state: S, event: ThreadEvent): S
  /** Values and functions that the source of `bid` and `next` only names: they count for its digest. */
  readonly uses?: readonly unknown[]
}

/** Threads of any state type side by side. */
// biome-ignore lint/suspicious/noExplicitAny: the one place where state types differ within a list
export type AnyUserThread = Thread<any>
