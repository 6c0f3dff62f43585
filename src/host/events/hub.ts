/**
 * Delivers the events of a home to its subscribers. All numbered events come from the journal, in its order, whoever wrote it; what is on
 * disk already and what follows are read the same way, so that nothing is missing or doubled between the two.
 */

import { atEnd, errorText } from '../../kit/errors.ts'
import { createInbox } from '../../kit/queue.ts'
import { createJournalFeed, type FeedEntry } from '../../memory/journal/journal-feed.ts'
import type { Memory } from '../../memory/memory.ts'
import type { AgentEvent } from '../../runtime/event.ts'
import type { RunIdentity } from '../../runtime/port.ts'
import type { HomePoll } from './home-poll.ts'
import type { HostEvent, Subscription } from './host-event.ts'
import { createFeedProjection, type FeedProjection } from './project-feed.ts'

/** Where a subscription continues: after all parts of the entry, or after this part of it. */
export type Position = { readonly seq: number; readonly part?: number }

export type Hub = ReturnType<typeof createHub>

export type HubOptions = {
  readonly memory: Pick<Memory, 'journal' | 'store'>
  readonly poll: HomePoll
  /** Returns why everything is stopped, undefined otherwise. */
  readonly stopped: () => string | undefined
  readonly now: () => number
  /** How many events may wait for one subscriber. */
  readonly capacity?: number
}

const usualCapacity = 1_024
const pageSize = 256
/** How often to look for what other processes did, in milliseconds; what this process does is delivered at once. */
const lookMs = 500

export function createHub({ memory: { journal, store }, poll, stopped, now, capacity = usualCapacity }: HubOptions) {
  const feed = createJournalFeed(store)
  const subscribers = new Set<Subscriber>()
  /** The text that streams in each run, for those who subscribe in the middle of it. */
  const streaming = new Map<string, HostEvent & { readonly event: { readonly type: 'text'; readonly content: string } }>()
  const state: {
    readers: number
    cursor: number
    version: number
    dirty: boolean
    stop: string | undefined
    project: FeedProjection
    rest: () => void
  } = { readers: 0, cursor: 0, version: 0, dirty: false, stop: undefined, project: () => [], rest: () => {} }

  /** @returns a function that ends it, once */
  function begin(subscriber: Subscriber): () => void {
    state.readers += 1
    if (state.readers === 1) {
      state.version = feed.version()
      state.cursor = journal.latest()
      state.project = createFeedProjection(journal)
      state.stop = stopped()
      state.rest = poll(readFeed, lookMs)
    }
    return once(() => end(subscriber))
  }

  function end(subscriber: Subscriber): void {
    subscribers.delete(subscriber)
    state.readers -= 1
    if (state.readers > 0) return
    state.rest()
    streaming.clear()
  }

  /** Another process may have written. */
  function readFeed(): void {
    try {
      lookAtStop()
      const version = feed.version()
      if (version !== state.version) pump()
      state.version = version
    } catch (error) {
      fail(error)
    }
  }

  /** Delivers what was committed since the last time. */
  function pump(): void {
    state.dirty = false
    for (let entries = next(); entries.length > 0; entries = next())
      for (const entry of entries) {
        state.cursor = entry.seq
        for (const event of state.project(entry)) publish(event)
      }
  }

  function next(): FeedEntry[] {
    return feed.page({ after: state.cursor, through: Number.MAX_SAFE_INTEGER, limit: pageSize })
  }

  function publish(event: HostEvent): void {
    if (event.seq !== undefined && event.runId !== undefined) streaming.delete(event.runId)
    for (const subscriber of subscribers) subscriber.offer(event)
  }

  function fail(error: unknown): void {
    const message = errorText(error)
    for (const subscriber of subscribers) subscriber.end({ reason: 'failed', message })
  }

  /** Call it when the emergency stop may have changed. */
  function lookAtStop(): void {
    const reason = stopped()
    if (state.readers === 0 || reason === state.stop) return
    state.stop = reason
    publish(stopNotice())
  }

  function stopNotice(): HostEvent {
    return { at: now(), event: { type: 'estop', set: state.stop !== undefined, reason: state.stop } }
  }

  /** Yields what is stored after the position, and returns when the next event would be a live one. */
  function* stored(subscription: Subscription, { seq, part }: Position): Generator<HostEvent> {
    const project = createFeedProjection(journal)
    const { conversationId, runId } = subscription
    let after = part === undefined ? seq : seq - 1
    while (after < state.cursor) {
      const through = state.cursor
      const entries = feed.page({ after, through, limit: pageSize, conversationId, runId })
      for (const entry of entries)
        for (const [at, event] of project(entry).entries())
          if ((entry.seq > seq || at > (part ?? Number.POSITIVE_INFINITY)) && isFor(subscription, event)) yield event
      after = entries.length < pageSize ? through : (entries.at(-1)?.seq ?? through)
    }
  }

  /** Sends the present state when the live part begins. */
  function greet(subscriber: Subscriber, isResumed: boolean): void {
    if (state.stop !== undefined || isResumed) subscriber.offer(stopNotice())
    for (const event of streaming.values()) subscriber.offer(event)
  }

  async function* subscribe(
    subscription: Subscription,
    { position, signal, closing }: { readonly position: Position; readonly signal: AbortSignal; readonly closing: AbortSignal },
  ): AsyncGenerator<HostEvent> {
    const subscriber = createSubscriber({ subscription, now, capacity })
    const leave = begin(subscriber)
    // A subscriber that does not take the end of the subscription must not keep the process alive.
    const close = () => {
      subscriber.end(closed)
      leave()
    }
    closing.addEventListener('abort', close)
    const isOver = () => signal.aborted || closing.aborted
    if (closing.aborted) close()
    using _end = atEnd(() => {
      closing.removeEventListener('abort', close)
      leave()
    })
    if (!isOver())
      for (const event of stored(subscription, position)) {
        yield event
        if (isOver()) break
      }
    if (!isOver()) {
      subscribers.add(subscriber)
      greet(subscriber, subscription.after !== undefined)
    }
    yield* subscriber.items(signal)
  }

  return {
    subscribe,
    lookAtStop,
    /** Call it when this process has committed something. */
    committed(): void {
      if (state.readers === 0 || state.dirty) return
      state.dirty = true
      queueMicrotask(flush)
    },
    /** Takes an event of a run that the journal does not have: a piece of text that streams. */
    piece({ runId, conversationId, channel }: RunIdentity, event: AgentEvent): void {
      if (state.readers === 0) return
      flush()
      const hostEvent = { at: now(), conversationId, runId, channel, event }
      if (event.type === 'text') {
        const before = streaming.get(runId)?.event.content ?? ''
        streaming.set(runId, { ...hostEvent, event: { ...event, content: before + event.content } })
      }
      publish(hostEvent)
    },
  }

  function flush(): void {
    try {
      if (state.dirty) pump()
    } catch (error) {
      fail(error)
    }
  }
}

const closed: SubscriptionEnd = { reason: 'closed', message: 'the host was closed; subscribe again with the last id' }

function once(step: () => void): () => void {
  const state = { done: false }
  return () => {
    if (state.done) return
    state.done = true
    step()
  }
}

type SubscriptionEnd = { readonly reason: 'slow' | 'closed' | 'failed'; readonly message: string }

type Subscriber = ReturnType<typeof createSubscriber>

type SubscriberOptions = {
  readonly subscription: Subscription
  readonly now: () => number
  /** How many events may wait. */
  readonly capacity: number
}

/** Holds what one subscriber has not taken yet: at most so many events, after which the subscription ends. */
function createSubscriber({ subscription, now, capacity }: SubscriberOptions) {
  const waiting = createInbox<HostEvent>()
  const state: { size: number; ended?: SubscriptionEnd; wake: () => void } = { size: 0, wake: () => {} }

  /** The subscriber takes what it was offered until now, and then the reason. */
  function end(ended: SubscriptionEnd): void {
    state.ended ??= ended
    state.wake()
  }

  return {
    end,
    /** Adds an event that the subscriber may see. */
    offer(event: HostEvent) {
      if (state.ended || !isFor(subscription, event)) return
      // A piece that streams is repeated as a whole, so a subscriber that is late can do without it.
      if (event.seq === undefined && state.size >= capacity / 2) return
      if (state.size >= capacity)
        return end({ reason: 'slow', message: `more than ${capacity} events waited; subscribe again with the last id` })
      waiting.push(event)
      state.size += 1
      state.wake()
    },
    /** Ends when `signal` is aborted, or after the reason. */
    async *items(signal: AbortSignal): AsyncGenerator<HostEvent> {
      const woken = () => state.wake()
      signal.addEventListener('abort', woken)
      using _end = atEnd(() => signal.removeEventListener('abort', woken))
      while (!signal.aborted) {
        const next = waiting.first()
        if (next) {
          waiting.drop()
          state.size -= 1
          yield next
        } else if (state.ended) {
          yield { at: now(), event: { type: 'subscription_ended', ...state.ended } }
          return
        } else
          await new Promise<void>((resolve) => {
            state.wake = resolve
          })
      }
    },
  }
}

function isFor({ conversationId, runId, sees }: Subscription, event: HostEvent): boolean {
  if (conversationId !== undefined && event.conversationId !== conversationId) return false
  if (runId !== undefined && event.runId !== runId) return false
  return sees?.(event) ?? true
}
