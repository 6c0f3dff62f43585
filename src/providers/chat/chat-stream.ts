/** Reads a streamed reply: it takes all events of one body piece together, so that a burst of deltas becomes one chunk. */

import type { Exchange } from '../wire/attempt.ts'
import type { ProviderDeps } from '../wire/provider-settings.ts'
import type { Body } from '../wire/reply-body.ts'
import type { ReplyReader } from './chat-reply.ts'
import { readEvents } from './events.ts'
import { createRepeatMatcher } from './repeat.ts'
import { keepAlives, parsed, unreadable } from './shape.ts'

type Stream = {
  readonly body: Body
  readonly reply: ReplyReader
  readonly sleep: ProviderDeps['sleep']
  /** Whether the end of the body proves that the body is complete: it does not where only closing the connection ends it. */
  readonly framed: boolean
}

const lastEvent = '[DONE]'

/** How long to wait for the end of the body after the last event, in ms: only a properly ended connection can be reused. */
const lateEndMs = 100

export function readStream({ body, reply, sleep, framed }: Stream): Exchange['next'] {
  const events = readEvents(named)
  const repeats = createRepeatMatcher()
  let fault: { readonly error: unknown } | undefined
  let last = false
  let over = false

  function hear(bytes: Uint8Array | undefined): void {
    over = bytes === undefined
    try {
      if (bytes === undefined) end(events.rest())
      else for (const event of events.take(bytes)) take(event)
    } catch (error) {
      fault = { error }
    }
  }

  function take(event: string): void {
    if (last) return
    if (isLast(event)) {
      last = true
      reply.ended('marked')
      return
    }
    const words = repeats.wordsOf(event)
    if (words !== undefined) {
      reply.say(words.type, words.text)
      return
    }
    const value = parsed(event)
    if (value === undefined) throw unreadable('an event is no JSON', event)
    reply.take(value)
    repeats.learn(event, value)
  }

  /** `rest` is an event that the body ended in: it is either complete after all, or the body was cut off. */
  function end(rest: string | undefined): void {
    if (last) return
    const isWhole = rest === undefined || isLast(rest) || parsed(rest) !== undefined
    if (rest !== undefined && isWhole) take(rest)
    if (!last && isWhole && framed) reply.ended('unmarked')
  }

  return async () => {
    for (;;) {
      // Show the text that arrived before a fault, then throw the fault.
      const chunk = reply.shown()
      if (chunk !== undefined) return chunk
      if (fault !== undefined) throw fault.error
      if (over) return undefined
      if (last) await endOf(body, sleep)
      if (last) over = true
      else hear(await body.next())
    }
  }
}

function isLast(event: string): boolean {
  return event.length < 16 && event.trim() === lastEvent
}

/** Drops keep-alives; an error event counts as an error in any form. */
function named(name: string, data: string): string {
  if (keepAlives.has(name)) return ''
  return name === 'error' ? `{"error":${parsed(data) === undefined ? JSON.stringify(data) : data}}` : data
}

async function endOf(body: Body, sleep: ProviderDeps['sleep']): Promise<void> {
  const late = new AbortController()
  await Promise.race([drain(body), sleep(lateEndMs, late.signal)]).catch(() => {})
  late.abort()
}

async function drain(body: Body): Promise<void> {
  for (let bytes = await body.next(); bytes !== undefined; ) bytes = await body.next()
}
