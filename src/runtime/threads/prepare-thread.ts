/** Checks a developer's thread and wraps it as a thread of the program. Both sides only see copies of each other's objects. */

import { settled } from '../../kernel/event-text.ts'
import { advances } from '../../kernel/select.ts'
import type { AnyThread, BThread } from '../../kernel/thread.ts'
import { isObject, type Json } from '../../kit/json.ts'
import { sha256 } from '../../kit/sha256.ts'
import { blockedEffects, denials, denied, noRefusals, type Refusals, refuse } from '../behaviours/refusals.ts'
import type { Changed, Proposal, RunEvent } from '../event.ts'
import { eventName } from '../stall-report.ts'
import type { AnyUserThread, ThreadEvent } from './thread.ts'
import { guarded, jsonOf, type OwnBid, readBid } from './thread-bid.ts'
import { ThreadFailure, USER, USER_PRIORITY } from './thread-failure.ts'

export type PreparedThread = { readonly name: string; readonly digest: string; readonly thread: AnyThread<RunEvent> }

/** With `changed` the call has run, and its changes are undecided. */
type Open = Proposal & { readonly changed?: Changed }

/** `asked`: calls that the gate is judging. `open`: calls that were proposed and have not started, and calls that changed something. */
type ProgramState = {
  readonly state: Json
  readonly asked: readonly string[]
  readonly open: readonly Open[]
  readonly refusals: Refusals
}

/** @throws ThreadFailure that says what is wrong with the thread */
export function prepareThread(given: AnyUserThread): PreparedThread {
  checkShape(given)
  const { name: bare, priority = 5, init } = given
  const name = USER + bare
  const state = jsonOf(name, init, 'init')
  const thread = programThread(given, { name, priority: USER_PRIORITY + priority / 2, state })
  thread.bid(thread.init)
  return { name, digest: threadDigest({ ...given, priority }), thread }
}

/** @throws ThreadFailure when a thread is invalid or two have the same name */
export function prepareThreads(given: readonly AnyUserThread[]): PreparedThread[] {
  const prepared = given.map(prepareThread)
  for (const [at, { name }] of prepared.entries())
    if (prepared.findIndex((other) => other.name === name) < at)
      throw new ThreadFailure(name, 'is there already; give this one another name')
  return prepared
}

function checkShape(given: unknown): void {
  const name = isObject(given) ? given.name : undefined
  if (!isObject(given) || typeof name !== 'string' || !/^[a-z0-9_-]{1,64}$/.test(name))
    throw new ThreadFailure(String(name), 'has no fit name; a name is 1 to 64 of a–z, 0–9, "-" and "_"')
  const { priority, bid, next, uses } = given
  const wrong = (why: string) => new ThreadFailure(USER + name, why)
  if (priority !== undefined && !(typeof priority === 'number' && priority >= 0 && priority <= 9))
    throw wrong(`has the priority ${String(priority)}; it is a number from 0 to 9`)
  for (const [member, value] of Object.entries({ bid, next })) if (typeof value !== 'function') throw wrong(`has no function ${member}`)
  if (uses !== undefined && !Array.isArray(uses)) throw wrong('has "uses" that is no list')
}

type Made = { readonly name: string; readonly priority: number; readonly state: Json }

function programThread({ bid, next }: AnyUserThread, { name, priority, state }: Made): BThread<ProgramState, RunEvent> {
  const view = createView()
  const known = new WeakMap<ProgramState, OwnBid>()

  function own(held: ProgramState): OwnBid {
    const before = known.get(held)
    if (before !== undefined) return before
    const read = readBid(
      guarded(name, () => bid(frozen(held.state)), 'bid()'),
      { name, view },
    )
    known.set(held, read)
    return read
  }

  /** A thread advances on its requested call when the call is proposed, not when the gate is asked to judge it. */
  function moves({ request, wait, interrupt }: OwnBid, event: RunEvent): boolean {
    if (event.type === 'propose' && request.some((each) => each.type === 'judge' && each.id === event.id)) return true
    return advances({ request: request.filter(({ type }) => type === 'user'), wait, interrupt }, event)
  }

  function moved(held: ProgramState, event: RunEvent): Json {
    if (!moves(own(held), event)) return held.state
    const found = guarded(name, () => next(frozen(held.state), view(event)), `next() after ${eventName(event)}`)
    return jsonOf(name, found, `state after ${eventName(event)}`)
  }

  return {
    name,
    priority,
    init: { state, asked: [], open: [], refusals: noRefusals },
    bid(held) {
      const { request, wait, interrupt, block } = own(held)
      const { asked, open, refusals } = held
      return {
        request: [...request.filter((event) => event.type !== 'judge' || !asked.includes(event.id)), ...denials(refusals)],
        wait: [
          ...wait,
          { type: 'propose' },
          { type: 'tool.changed' },
          ...open.flatMap(({ call: { id } }) => ends.map((type) => ({ type, id }))),
        ],
        interrupt,
        block: [...block, ...blockedEffects(refusals)],
      }
    },
    next(held, event) {
      const after = { ...followed(held, event, name), state: moved(held, event) }
      const refused = refuseOpen(after, own(after), name)
      own(refused)
      return refused
    },
  }
}

/** What takes a call out of `open`. */
const ends = ['act', 'deny', 'apply', 'drop'] as const

/** Tracks the state of calls, whether or not the developer's thread waits for these events. */
function followed(held: ProgramState, event: RunEvent, name: string): ProgramState {
  const { asked, open, refusals } = held
  if (event.type === 'judge' && event.by === name) return { ...held, asked: [...asked, event.id] }
  if (event.type === 'propose')
    return { ...held, asked: asked.filter((id) => id !== event.id), open: [...open, { call: event.call, judgement: event.judgement }] }
  if (event.type === 'tool.changed') {
    const { call, judgement, outcome, review } = event
    return { ...held, open: [...open, { call, judgement, changed: { outcome, review } }] }
  }
  const isEnd = ends.some((type) => type === event.type)
  if (!isEnd || !('id' in event)) return held
  const rest = open.filter(({ call }) => call.id !== event.id)
  const isOver = event.type === 'deny' || event.type === 'drop'
  return { ...held, open: rest, refusals: isOver ? denied(refusals, event.id) : refusals }
}

/** Denies the waiting calls, and drops the undecided changes, that the thread blocks with a reason. */
function refuseOpen(held: ProgramState, { refuses }: OwnBid, name: string): ProgramState {
  if (refuses.length === 0) return held
  const refusals = held.open.reduce((known, open) => {
    if (known.ids.includes(open.call.id)) return known
    const effect = effectOf(open)
    const refusal = refuses.find(({ type, matches }) => type === effect.type && matches(effect))
    return refusal ? refuse(known, { ...open, by: name, reason: refusal.reason }) : known
  }, held.refusals)
  return refusals === held.refusals ? held : { ...held, refusals }
}

function effectOf({ call, judgement, changed }: Open): RunEvent {
  const of = { id: call.id, call, judgement }
  return changed === undefined ? { type: 'act', ...of } : { type: 'apply', ...of, review: changed.review }
}

/** Creates the events that the developer's functions see: frozen copies, each created once. */
function createView(): (event: RunEvent) => ThreadEvent {
  const copies = new WeakMap<RunEvent, ThreadEvent>()
  return (event) => {
    const known = copies.get(event)
    if (known !== undefined) return known
    const copy: ThreadEvent = frozen(JSON.parse(JSON.stringify(event.type === 'user' ? event.event : event)))
    copies.set(event, copy)
    return copy
  }
}

function frozen<T>(value: T): T {
  return settled(value, 'state')
}

/**
 * SHA-256 in hex over [name, priority, init, source of bid, source of next, uses] as JSON. Functions count by their source text, also
 * within `uses`. The digest does not cover values that a function refers to and that `uses` does not list.
 */
function threadDigest({ name, priority, init, bid, next, uses = [] }: AnyUserThread & { readonly priority: number }): string {
  const text = JSON.stringify([name, priority, init, bid, next, uses], (_, value) => (typeof value === 'function' ? String(value) : value))
  return sha256(text)
}
