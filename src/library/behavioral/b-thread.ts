/** Defines the terms of a behavioral program, builds threads from steps, and translates a step into a bid of the kernel. */

import type { Bid, KernelEvent, Pattern } from '../../kernel/thread.ts'
import { errorText } from '../../kit/errors.ts'
import { isObject } from '../../kit/json.ts'
import { didYouMean } from '../../kit/text.ts'

/** Maps event types to their details. In the place of a detail D, a map may give the type of its handler, `(detail: D) => void`. */
// biome-ignore lint/suspicious/noExplicitAny: a program without a map of its own has details of any type
export type EventDetails = Record<string, any>
export type DetailOf<T> = T extends (detail: infer D) => unknown ? D : T

export type BPEvent<D extends EventDetails = EventDetails> = {
  [K in keyof D & string]: undefined extends DetailOf<D[K]>
    ? { readonly type: K; readonly detail?: DetailOf<D[K]> }
    : { readonly type: K; readonly detail: DetailOf<D[K]> }
}[keyof D & string]

/** Matches events of this type whose detail has at least these members, and which the schema accepts (zod's have `safeParse`). */
export type EventPattern = { readonly type: string; readonly detail?: unknown; readonly detailSchema?: DetailSchema }
type DetailSchema = { safeParse(detail: unknown): { readonly success: boolean } }

// A method, because a listener for the events of one program is kept as a listener for any event.
type EventTest<D extends EventDetails> = { test(event: BPEvent<D>): boolean | undefined }['test']
export type BPListener<D extends EventDetails = EventDetails> = (keyof D & string) | EventTest<D> | EventPattern
export type BPListeners<D extends EventDetails = EventDetails> = BPListener<D> | readonly BPListener<D>[]

/** One step. The thread continues when its request or an event that it waits for happens; an event that interrupts it ends it. */
export type Idioms<D extends EventDetails = EventDetails> = {
  /** A function is called for each selection, and must not change anything. */
  readonly request?: BPEvent<D> | (() => BPEvent<D>)
  readonly waitFor?: BPListeners<D>
  /** These events cannot happen, whoever requests or triggers them. */
  readonly block?: BPListeners<D>
  readonly interrupt?: BPListeners<D>
}

/** A number counts rounds; a function is asked before each round. */
export type Repeat = boolean | number | (() => boolean)

/** A generator function of steps. `shape` counts the steps that come once (`prefix`) and those that are then repeated for ever (`loop`). */
export type RulesFunction = (() => Generator<Idioms, void, undefined>) & {
  readonly shape?: () => { readonly prefix: number; readonly loop: number } | undefined
}

type Rules = readonly RulesFunction[]
type Interrupt<D extends EventDetails> = { readonly interrupt?: BPListeners<D> }

const members = ['request', 'waitFor', 'block', 'interrupt']

/** Builds a thread of one step. @throws TypeError when it is not a step */
export function bSync<D extends EventDetails = EventDetails>(idioms: Idioms<D>): RulesFunction
export function bSync(idioms: Idioms): RulesFunction {
  const wrong = Object.keys(idioms).find((key) => !members.includes(key))
  if (wrong !== undefined) throw new TypeError(`bSync: "${wrong}"; a step has ${members.join(', ')}${didYouMean(wrong, members)}`)
  bidOf('bSync', idioms)
  function* run() {
    yield idioms
  }
  return Object.assign(run, { shape: () => ({ prefix: 1, loop: 0 }) })
}

/** Builds a thread of the steps of all these threads, in order. `interrupt` holds in every step. @throws TypeError when one is not a thread */
export function bThread<D extends EventDetails = EventDetails>(rules: Rules, repeat?: Repeat, options?: Interrupt<D>): RulesFunction
export function bThread(rules: Rules, repeat: Repeat = 1, { interrupt }: Interrupt<EventDetails> = {}): RulesFunction {
  const wrong = rules.findIndex((rule) => typeof rule !== 'function')
  if (wrong >= 0) throw new TypeError(`bThread: step ${wrong} is ${spelled(rules[wrong])}; make it with bSync or bThread`)
  const mayRepeat = typeof repeat === 'function' ? repeat : () => true
  const rounds = typeof repeat === 'function' || repeat === true ? Number.POSITIVE_INFINITY : Number(repeat) || 1
  function* run(): Generator<Idioms, void, undefined> {
    for (let round = 0, steps = 1; steps > 0 && round < rounds && mayRepeat(); round++) {
      steps = 0
      for (const rule of rules)
        for (const step of rule()) {
          steps += 1
          yield interrupt === undefined ? step : { ...step, interrupt: [...listOf(step.interrupt), ...listOf(interrupt)] }
        }
    }
  }
  return Object.assign(run, { shape: () => (mayRepeat() ? shapeOf(rules, rounds) : { prefix: 0, loop: 0 }) })
}

function shapeOf(rules: readonly RulesFunction[], rounds: number): ReturnType<NonNullable<RulesFunction['shape']>> {
  let prefix = 0
  for (const rule of rules) {
    const shape = rule.shape?.()
    if (shape === undefined) return undefined
    prefix += shape.prefix
    if (shape.loop > 0) return { prefix, loop: shape.loop }
  }
  return rounds === Number.POSITIVE_INFINITY ? { prefix: 0, loop: prefix } : { prefix: prefix * rounds, loop: 0 }
}

export function listOf<T>(value: T | readonly T[] | undefined): readonly T[]
export function listOf(value: unknown): readonly unknown[] {
  return value === undefined ? [] : [value].flat()
}

/** In the kernel all events have one type and are told apart by their ids, so that a function can listen for all of them. */
export type ProgramEvent = KernelEvent & { readonly id: string; readonly detail?: unknown; readonly by?: string }

/** A template stands beside its bid, because it is evaluated for each selection. */
export type StepBid = Bid<ProgramEvent> & { readonly template?: () => ProgramEvent }

/** @throws TypeError when the value is not an event */
export function asEvent(given: unknown, where: string, by?: string): ProgramEvent {
  if (isObject(given) && typeof given.type === 'string') return { type: 'event', id: given.type, detail: given.detail, by }
  throw new TypeError(`${where} is ${spelled(given)}; an event is an object with a type, such as { type: "start" }`)
}

/** @throws TypeError when the request is not an event, or a listener not a listener */
export function bidOf(thread: string, { request, waitFor, block, interrupt }: Idioms): StepBid {
  const where = (word: string) => `thread "${thread}": ${word}`
  const patterns = (word: string, listeners: BPListeners | undefined) => listOf(listeners).map((one) => patternOf(one, where(word)))
  const listening = { wait: patterns('waitFor', waitFor), block: patterns('block', block), interrupt: patterns('interrupt', interrupt) }
  if (request === undefined) return listening
  if (typeof request !== 'function') return { ...listening, request: [asEvent(request, where('request'), thread)] }
  return { ...listening, template: () => asEvent(guarded(where('request'), request), where('request'), thread) }
}

export function patternOf(listener: BPListener, where: string): Pattern<ProgramEvent> {
  if (typeof listener === 'string') return { type: 'event', id: listener }
  if (typeof listener === 'function') {
    const match = ({ id, detail }: ProgramEvent) => {
      const holds: unknown = guarded(`${where} on "${id}"`, () => listener({ type: id, detail }))
      if (holds instanceof Promise) throw new TypeError(`${where} on "${id}" is a promise; a listener returns true or false`)
      return Boolean(holds)
    }
    return { type: 'event', match }
  }
  if (!isObject(listener) || typeof listener.type !== 'string')
    throw new TypeError(`${where} is ${spelled(listener)}; a listener is an event type, a function or { type, detail }`)
  const { type, detail, detailSchema } = listener
  const match = (event: ProgramEvent) =>
    (detail === undefined || covers(detail, event.detail)) && (detailSchema?.safeParse(event.detail).success ?? true)
  return { type: 'event', id: type, match }
}

/** Tells whether the value has everything that the pattern names. */
function covers(pattern: unknown, value: unknown): boolean {
  if (typeof pattern !== 'object' || pattern === null || typeof value !== 'object' || value === null) return Object.is(pattern, value)
  const found = new Map(Object.entries(value))
  return Object.entries(pattern).every(([key, part]) => covers(part, found.get(key)))
}

function guarded<T>(where: string, step: () => T): T {
  try {
    return step()
  } catch (error) {
    throw new Error(`${where} threw: ${errorText(error)}`, { cause: error })
  }
}

function spelled(value: unknown): string {
  return typeof value === 'string' ? JSON.stringify(value) : isObject(value) ? `{ ${Object.keys(value).join(', ')} }` : String(value)
}
