/** Checks the bid of a developer's thread and translates it into a bid of the program. */

import { plain } from '../../kernel/check-program.ts'
import type { Bid, Pattern } from '../../kernel/thread.ts'
import { didYouMean } from '../../kit/did-you-mean.ts'
import { isObject, type Json } from '../../kit/json.ts'
import type { RunEvent } from '../event.ts'
import { isKnown, vocabulary } from '../vocabulary.ts'
import { ThreadFailure } from './thread-failure.ts'

/** `refuses` holds the blocks of `act` and `apply` that have a reason. */
export type OwnBid = Required<Bid<RunEvent>> & {
  readonly refuses: readonly { readonly type: 'act' | 'apply'; readonly reason: string; matches(event: RunEvent): boolean }[]
}

/** The thread whose bid is read, and its view of an event. */
export type Reader = { readonly name: string; readonly view: (event: RunEvent) => unknown }

const members = ['request', 'wait', 'block', 'interrupt']
const ownName = /^user\.[\w.-]{1,64}$/
const callId = /^[\w.:-]{1,64}$/

/** @throws ThreadFailure that says what is wrong with the bid */
export function readBid(given: unknown, reader: Reader): OwnBid {
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
function readRequest(given: unknown, { name }: Reader): RunEvent {
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

function readPattern(given: unknown, where: string, reader: Reader): Pattern<RunEvent> {
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
    return fail(`${where} names "${type}"; there is no such event${didYouMean(type, Object.keys(vocabulary))}`)
  return { type, id, ...(match === undefined ? {} : { match: holds }) }
}

function holdsFor(match: () => unknown, place: string, reader: Reader): boolean {
  const found = guarded(reader.name, match, place)
  if (found instanceof Promise) return failing(reader)(`has a promise as the result of ${place}; it must be true or false`)
  return Boolean(found)
}

function refusalOf(given: unknown, { id, match }: Pattern<RunEvent>, reader: Reader): OwnBid['refuses'] {
  if (!isObject(given) || given.reason === undefined) return []
  const { type, reason } = given
  if (typeof reason !== 'string' || (type !== 'act' && type !== 'apply'))
    return failing(reader)(`blocks ${type} with the reason ${spelled(reason)}; only a block of act or apply has a reason, and it is a text`)
  const matches = (event: RunEvent) => 'id' in event && (id === undefined || id === event.id) && (match === undefined || match(event))
  return [{ type, reason, matches }]
}

/** Runs the developer's code. Any error that it throws becomes a ThreadFailure that names the thread. */
export function guarded<T>(name: string, step: () => T, where = ''): T {
  try {
    return step()
  } catch (error) {
    if (error instanceof ThreadFailure) throw error
    throw new ThreadFailure(name, `threw${where === '' ? '' : ` in ${where}`}: ${error instanceof Error ? error.message : String(error)}`)
  }
}

/** Copies a value that must be plain JSON. */
export function jsonOf(name: string, value: unknown, where: string): Json {
  try {
    return plain(value, where)
  } catch (error) {
    throw new ThreadFailure(name, `keeps to no JSON: ${error instanceof Error ? error.message : String(error)}`)
  }
}

function failing({ name }: Pick<Reader, 'name'>): (why: string) => never {
  return (why) => {
    throw new ThreadFailure(name, why)
  }
}

function spelled(value: unknown): string {
  const text = typeof value === 'string' ? JSON.stringify(value) : typeof value === 'object' && value !== null ? 'an object' : String(value)
  return text.length > 80 ? `${text.slice(0, 79)}…` : text
}
