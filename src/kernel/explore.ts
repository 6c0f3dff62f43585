/** Model-checks a program: explores all runs that an environment provokes, breadth first, until a property breaks or no state remains. */

import { canonical, type Json } from '../kit/json.ts'
import { arrange, checkLimit, initialStates, named, type States, settled } from './check-program.ts'
import { advance, type BlockedRequest, bidsOf, blockersOf, EXTERNAL, explainBids, label, nameOf, type Selection, select } from './select.ts'
import type { AnyThread, Bid, KernelEvent } from './thread.ts'

/** The environment's record of the run. It must be plain JSON and bounded, because it is part of the visited key. */
export type History<E extends KernelEvent, H> = { readonly init: H; next(history: H, selection: Selection<E>): H }

/** The program at rest: no internal event is enabled. */
export type Rest<E extends KernelEvent> = {
  readonly states: States
  /** The requests that remain, with the threads that block them. */
  readonly blocked: readonly BlockedRequest<E>[]
  /** The events that the environment may send now and the program would accept. If empty, nothing can ever happen again. */
  readonly offers: readonly E[]
}

/**
 * A property that the checker proves, as a small reducer. `M` is plain JSON and part of the visited key: keep it small and bounded, without
 * uncapped counters. `violated` and `atQuiescence` return true when the property is broken. The checker calls `violated` before the first
 * event and after every event, and `atQuiescence` whenever the program is at rest. All functions must be pure.
 */
export type Property<E extends KernelEvent, M = unknown> = {
  readonly name: string
  readonly init: M
  next(monitor: M, selection: Selection<E>): M
  violated?(monitor: M): boolean
  atQuiescence?(monitor: M, rest: Rest<E>): boolean
}

export type ExploreOptions<E extends KernelEvent, H> = {
  readonly threads: readonly AnyThread<E>[]
  /**
   * Returns every external event that may arrive now, forged and late events included; each one is a branch. Called only when the program
   * is at rest.
   */
  readonly environment: (states: States, history: H) => readonly E[]
  readonly history: History<E, H>
  readonly properties: readonly Property<E>[]
  /** How many states the search may visit; default 1,000,000. */
  readonly maxStates?: number
  /** The same limit as in the engine: a longer chain of internal events is a counterexample. Default 1,000. */
  readonly maxSelections?: number
  /**
   * Maps thread states to a text that is equal for equivalent states, if this is coarser than canonical JSON. The key always includes
   * monitors and history.
   */
  readonly key?: (states: States) => string
}

/** `bounded` proves nothing: no property broke in the visited states, but `maxStates` ended the search. A trace is one of the shortest. */
export type Exploration<E extends KernelEvent> = { readonly states: number; readonly transitions: number } & (
  | { readonly outcome: 'holds' }
  | { readonly outcome: 'bounded' }
  | { readonly outcome: 'violated'; readonly property: string; readonly trace: readonly Selection<E>[] }
)

/** The name of the property that every program must have: it comes to rest. */
export const LIVELOCK = 'comes to rest'

type Node<E extends KernelEvent, H> = {
  readonly states: readonly Json[]
  readonly monitors: readonly unknown[]
  readonly history: H
  readonly parent?: Node<E, H>
  readonly selection?: Selection<E>
  /** The number of internal events since the last external one, on the path that first reached this node. */
  readonly inner: number
  /** The successor through the one enabled internal event, once it is known. */
  onward?: Node<E, H>
}

/**
 * Explores the same threads with the same semantics as the engine; only the choice of the next external event branches. It freezes states,
 * so that a thread that mutates its state throws instead of invalidating the proof.
 */
export function explore<E extends KernelEvent, H>(options: ExploreOptions<E, H>): Exploration<E> {
  const threads = arrange(options.threads)
  const maxStates = checkLimit('maxStates', options.maxStates ?? 1_000_000)
  const maxSelections = checkLimit('maxSelections', options.maxSelections ?? 1000)
  const keyOf = keys({ options, threads })
  const root = rootOf(options, threads)
  const seen = new Map([[keyOf(root), root]])
  const queue = [root]
  let transitions = 0
  let bounded = false

  /** Returns the existing node for this state, or the new one; `undefined` when `maxStates` leaves no room for a new node. */
  function visit(node: Node<E, H>): Node<E, H> | undefined {
    transitions += 1
    const key = keyOf(node)
    const known = seen.get(key)
    if (known !== undefined) return known
    if (seen.size >= maxStates) {
      bounded = true
      return undefined
    }
    seen.set(key, node)
    queue.push(node)
    return node
  }

  function report(node: Node<E, H>, property: string): Exploration<E> {
    return { outcome: 'violated', property, trace: traceOf(node), states: seen.size, transitions }
  }

  for (const node of queue) {
    const broken = options.properties.find((property, at) => property.violated?.(node.monitors[at]))
    if (broken !== undefined) return report(node, broken.name)
    const bids = bidsOf(threads, node.states)
    const choice = select(bids)
    if (choice.type === 'internal') {
      const next = follow({ options, threads, node, bids, event: choice.event, source: nameOf(threads, choice.thread) })
      if (next.inner > maxSelections) return report(next, LIVELOCK)
      node.onward = visit(next)
      if (circles(node)) return report(next, LIVELOCK)
      continue
    }
    const rest = restOf({ options, threads, node, bids })
    const restless = options.properties.find((property, at) => property.atQuiescence?.(node.monitors[at], rest))
    if (restless !== undefined) return report(node, restless.name)
    for (const event of rest.offers) visit(follow({ options, threads, node, bids, event, source: EXTERNAL }))
  }
  return { outcome: bounded ? 'bounded' : 'holds', states: seen.size, transitions }
}

type Program<E extends KernelEvent, H> = { readonly options: ExploreOptions<E, H>; readonly threads: readonly AnyThread<E>[] }

function rootOf<E extends KernelEvent, H>(options: ExploreOptions<E, H>, threads: readonly AnyThread<E>[]): Node<E, H> {
  return {
    states: initialStates(threads).map((state, place) => settled(state, nameOf(threads, place))),
    monitors: options.properties.map((property) => settled(property.init, `property "${property.name}": monitor`)),
    history: settled(options.history.init, 'history'),
    inner: 0,
  }
}

function follow<E extends KernelEvent, H>(
  given: Program<E, H> & { readonly node: Node<E, H>; readonly bids: readonly Bid<E>[]; readonly event: E; readonly source: string },
): Node<E, H> {
  const { options, threads, node, bids, event, source } = given
  const { states, advanced } = advance({ threads, states: node.states, bids, event })
  for (const place of advanced) settled(states[place], `thread "${nameOf(threads, place)}": state after ${label(event)}`)
  const selection = { event, source, advanced: advanced.map((place) => nameOf(threads, place)) }
  return {
    states,
    monitors: options.properties.map((property, at) =>
      settled(property.next(node.monitors[at], selection), `property "${property.name}": monitor`),
    ),
    history: settled(options.history.next(node.history, selection), 'history'),
    parent: node,
    selection,
    inner: source === EXTERNAL ? 0 : node.inner + 1,
  }
}

function restOf<E extends KernelEvent, H>(given: Program<E, H> & { readonly node: Node<E, H>; readonly bids: readonly Bid<E>[] }): Rest<E> {
  const states = named(given.threads, given.node.states)
  const offers = given.options.environment(states, given.node.history)
  return {
    states,
    blocked: explainBids(given.threads, given.bids),
    offers: offers.filter((event) => blockersOf(given.bids, event).length === 0),
  }
}

/** States recur by reference, so almost every part of a key is a lookup instead of a serialization. */
function keys<E extends KernelEvent, H>({ options, threads }: Program<E, H>): (node: Node<E, H>) => string {
  const number = createNumbering()
  return (node) => {
    const states = options.key === undefined ? node.states.map(number).join() : options.key(named(threads, node.states))
    return `${node.monitors.map(number).join()};${number(node.history)};${states}`
  }
}

/** Tells whether the chain of internal events from `start` returns to `start`. Each node has at most one successor, so one walk decides. */
function circles<E extends KernelEvent, H>(start: Node<E, H>): boolean {
  const passed = new Set<Node<E, H>>()
  for (let node = start.onward; node !== undefined && !passed.has(node); node = node.onward) {
    if (node === start) return true
    passed.add(node)
  }
  return false
}

function traceOf<E extends KernelEvent, H>(last: Node<E, H>): Selection<E>[] {
  const trace: Selection<E>[] = []
  for (let node: Node<E, H> | undefined = last; node !== undefined; node = node.parent) {
    if (node.selection !== undefined) trace.push(node.selection)
  }
  return trace.reverse()
}

/**
 * Gives equal JSON values the same number, so that states are compared without serializing them each time. A known object costs one lookup,
 * so callers must not mutate it afterwards.
 */
function createNumbering(): (value: unknown) => number {
  const byText = new Map<string, number>()
  const byObject = new WeakMap<object, number>()

  function spell(value: unknown): number {
    const text = canonical(value)
    const known = byText.get(text)
    if (known !== undefined) return known
    byText.set(text, byText.size)
    return byText.size - 1
  }

  return (value) => {
    if (typeof value !== 'object' || value === null) return spell(value)
    const known = byObject.get(value)
    if (known !== undefined) return known
    const fresh = spell(value)
    byObject.set(value, fresh)
    return fresh
  }
}
