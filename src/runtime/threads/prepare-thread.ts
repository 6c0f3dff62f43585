/** Checks a developer's thread and wraps it as a thread of the program. Both sides only see copies of each other's objects. */

import { plain, settled } from '../../kernel/check-program.ts'
import { advances } from '../../kernel/select.ts'
import type { AnyThread, Bid, BThread, Pattern } from '../../kernel/thread.ts'
import { errorText } from '../../kit/errors.ts'
import { isObject, type Json } from '../../kit/json.ts'
import { sha256 } from '../../kit/sha256.ts'
import { didYouMean } from '../../kit/text.ts'
import { blockedEffects, denials, denied, noRefusals, type Refusals, refuse } from '../behaviours/refusals.ts'
import type { Changed, Proposal, RunEvent } from '../event.ts'
import { eventName, isKnown, vocabulary } from '../vocabulary.ts'
import type { AnyUserThread, ThreadEvent } from './thread.ts'
import { ThreadFailure, USER, USER_PRIORITY } from './thread-failure.ts'

export type PreparedThread = { readonly name: string; readonly digest: string; readonly thread: AnyThread<RunEvent> }

/** With `changed` the call has run, and its changes are undecided. */
type OpenCall = Proposal & { readonly changed?: Changed }

/** `asked`: calls that the gate is judging. `open`: calls that were proposed and have not started, and calls that changed something. */
type ProgramState = {
  readonly state: Json
  readonly asked: readonly string[]
  readonly open: readonly OpenCall[]
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
  if (uses !== undefined && !Array.isArray(uses)) throw wrong('has "uses" that is not a list')
}

type CheckedThread = { readonly name: string; readonly priority: number; readonly state: Json }

function programThread({ bid, next }: AnyUserThread, { name, priority, state }: CheckedThread): BThread<ProgramState, RunEvent> {
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

/** These events remove a call from `open`. */
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

function effectOf({ call, judgement, changed }: OpenCall): RunEvent {
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

/** `refuses` holds the blocks of `act` and `apply` that have a reason. */
type OwnBid = Required<Bid<RunEvent>> & {
  readonly refuses: readonly { readonly type: 'act' | 'apply'; readonly reason: string; matches(event: RunEvent): boolean }[]
}

/** The thread whose bid is read, and its view of an event. */
type BidReader = { readonly name: string; readonly view: (event: RunEvent) => unknown }

const members = ['request', 'wait', 'block', 'interrupt']
const ownName = /^user\.[\w.-]{1,64}$/
const callId = /^[\w.:-]{1,64}$/

/**
 * Checks a bid of the developer's thread and translates it into a bid of the program. @throws ThreadFailure that says what is wrong with it
 */
function readBid(given: unknown, reader: BidReader): OwnBid {
  const fail = failing(reader)
  if (given instanceof Promise) return fail('bid() returned a promise; it must return the bid itself')
  if (!isObject(given)) return fail(`bid() returned ${spelled(given)}; it must return an object with request, wait, block or interrupt`)
  for (const key of Object.keys(given))
    if (!members.includes(key)) return fail(`bid() has "${key}"; a bid has request, wait, block and interrupt${didYouMean(key, members)}`)
  const list = (key: string): readonly unknown[] => {
    const value = given[key] ?? []
    return Array.isArray(value) ? [...value] : fail(`${key} is ${spelled(value)}; it must be a list`)
  }
  const patterns = (key: string) => list(key).map((each) => readPattern(each, key, reader))
  const blocks = list('block').map((each) => ({ given: each, pattern: readPattern(each, 'block', reader) }))
  return {
    request: list('request').map((each) => readRequest(each, reader)),
    wait: patterns('wait'),
    interrupt: patterns('interrupt'),
    block: blocks.map(({ pattern }) => pattern),
    refuses: blocks.flatMap(({ given: block, pattern }) => refusalOf(block, pattern, reader)),
  }
}

/**
 * Accepts only the thread's own events and calls for the gate. The kernel sees only these copies, so it selects nothing else for this
 * thread.
 */
function readRequest(given: unknown, { name }: BidReader): RunEvent {
  const fail = failing({ name })
  const event = jsonOf(name, given, 'a request')
  if (!isObject(event) || typeof event.type !== 'string') return fail(`requests ${spelled(given)}; a request is an event with a type`)
  const { type, id } = event
  if (id !== undefined && (typeof id !== 'string' || !callId.test(id)))
    return fail(`requests ${type} with the id ${spelled(id)}; an id is 1 to 64 letters, digits, ".", "_", ":" or "-"`)
  if (ownName.test(type)) return { type: 'user', id: idOfOwn(type, id), event }
  if (type !== 'propose')
    return fail(
      `requests "${id === undefined ? type : `${type}#${id}`}"; a thread may request events of its own (user.NAME) and propose a call; anything else it may block or wait for`,
    )
  const { call } = event
  if (typeof id !== 'string' || !isObject(call) || typeof call.name !== 'string' || !isObject(call.input))
    return fail('proposes a call without id, call.name or call.input, as in { type: "propose", id: "1", call: { name, input } }')
  return { type: 'judge', id, by: name, call: { id, name: call.name, input: call.input } }
}

function idOfOwn(type: string, id: unknown): string {
  return `${type.slice('user.'.length)}${typeof id === 'string' ? `#${id}` : ''}`
}

function readPattern(given: unknown, where: string, reader: BidReader): Pattern<RunEvent> {
  const fail = failing(reader)
  if (!isObject(given) || typeof given.type !== 'string')
    return fail(`${where} names ${spelled(given)}; it must be a pattern such as { type: "act" }`)
  const { type, id, match } = given
  for (const key of Object.keys(given))
    if (!['type', 'id', 'match', ...(where === 'block' ? ['reason'] : [])].includes(key))
      return fail(`${where} has a pattern of ${type} with "${key}"; a pattern has type, id and match`)
  if (id !== undefined && typeof id !== 'string')
    return fail(`${where} has a pattern of ${type} with the id ${spelled(id)}; ids are strings`)
  if (match !== undefined && typeof match !== 'function')
    return fail(`${where} has a pattern of ${type} whose match is ${spelled(match)}; it must be a function`)
  const place = `${where}, match of ${type}`
  const holds = (event: RunEvent) =>
    match === undefined || holdsFor(() => Reflect.apply(match, undefined, [reader.view(event)]), place, reader)
  if (ownName.test(type)) {
    const own = (event: RunEvent) => event.type === 'user' && event.event.type === type && holds(event)
    return { type: 'user', ...(id === undefined ? {} : { id: idOfOwn(type, id) }), match: own }
  }
  if (!isKnown(type) || type === 'user')
    return fail(`${where} names "${type}", which is not an event${didYouMean(type, Object.keys(vocabulary))}`)
  return { type, id, ...(match === undefined ? {} : { match: holds }) }
}

function holdsFor(match: () => unknown, place: string, reader: BidReader): boolean {
  const found = guarded(reader.name, match, place)
  if (found instanceof Promise) return failing(reader)(`has a promise as the result of ${place}; it must be true or false`)
  return Boolean(found)
}

function refusalOf(given: unknown, { id, match }: Pattern<RunEvent>, reader: BidReader): OwnBid['refuses'] {
  if (!isObject(given) || given.reason === undefined) return []
  const { type, reason } = given
  if (typeof reason !== 'string' || (type !== 'act' && type !== 'apply'))
    return failing(reader)(`blocks ${type} with the reason ${spelled(reason)}; only a block of act or apply has a reason, and it is a text`)
  const matches = (event: RunEvent) => 'id' in event && (id === undefined || id === event.id) && (match === undefined || match(event))
  return [{ type, reason, matches }]
}

/** Runs the developer's code. Any error that it throws becomes a ThreadFailure that names the thread. */
function guarded<T>(name: string, step: () => T, where = ''): T {
  try {
    return step()
  } catch (error) {
    if (error instanceof ThreadFailure) throw error
    throw new ThreadFailure(name, `threw${where === '' ? '' : ` in ${where}`}: ${errorText(error)}`)
  }
}

/** Copies a value that must be plain JSON. */
function jsonOf(name: string, value: unknown, where: string): Json {
  try {
    return plain(value, where)
  } catch (error) {
    throw new ThreadFailure(name, `keeps to no JSON: ${errorText(error)}`)
  }
}

function failing({ name }: Pick<BidReader, 'name'>): (why: string) => never {
  return (why) => {
    throw new ThreadFailure(name, why)
  }
}

function spelled(value: unknown): string {
  const text = typeof value === 'string' ? JSON.stringify(value) : typeof value === 'object' && value !== null ? 'an object' : String(value)
  return text.length > 80 ? `${text.slice(0, 79)}…` : text
}
