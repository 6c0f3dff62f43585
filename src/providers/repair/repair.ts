/** Repairs a server's answer for the vendor's library, because the libraries refuse a whole reply over one unknown member. */

import { isObject, type JsonObject, parseJson } from '../../kit/json.ts'
import { readEvents } from '../chat/events.ts'
import { isKeepAlive } from '../chat/shape.ts'
import type { Body } from '../wire/reply-body.ts'

export type Fields = { readonly [key: string]: unknown }

/** Keeps only what we use. An invalid value in a known place stays unchanged, so that the library reports it. */
export type Repair = {
  /** Returns the replacement of one event: nothing, the event itself, or several events. */
  event(event: Fields): readonly Fields[]
  /** Returns the events that are missing at the end of the body. */
  end(): readonly Fields[]
  /** Repairs a complete answer. */
  document(value: unknown): unknown
}

/** `asItIs` recognises by their text events that need no repair, which avoids parsing them. */
export type StreamRepair = { readonly repair: Repair; readonly asItIs: (event: string) => boolean }

/** Returns the repaired body for the library, one piece for each piece that arrives; undefined at the end. */
export function repairedPieces(body: Body, { repair, asItIs }: StreamRepair): () => Promise<Uint8Array | undefined> {
  const events = readEvents()
  let over = false

  function repaired(event: string): readonly string[] {
    if (asItIs(event)) return [event]
    const value = parseJson(event)
    return isObject(value) ? repair.event(value).map((each) => JSON.stringify(each)) : [event]
  }

  function rest(): readonly string[] {
    over = true
    const last = events.rest()
    const whole = last !== undefined && parseJson(last) !== undefined ? repaired(last) : []
    return [...whole, ...repair.end().map((each) => JSON.stringify(each))]
  }

  return async () => {
    while (!over) {
      const bytes = await body.next()
      const out = bytes === undefined ? rest() : events.take(bytes).flatMap(repaired)
      if (out.length > 0) return Buffer.from(out.map((event) => `data: ${event.replaceAll('\n', ' ')}\n\n`).join(''))
    }
    return undefined
  }
}

/** @returns the members that are numbers */
export function countsOf(value: unknown): JsonObject {
  const members = Object.entries(isObject(value) ? value : {})
  return Object.fromEntries(members.flatMap(([key, count]): [string, number][] => (typeof count === 'number' ? [[key, count]] : [])))
}

/** @returns '' for every value that is not a string */
export function textIn(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

/** The items of an answer that we use. */
const items: ReadonlySet<unknown> = new Set(['message', 'reasoning', 'function_call'])

const ofItem: ReadonlySet<unknown> = new Set(['response.output_item.added', 'response.output_item.done'])

/** Repairs replies of the Responses API: it completes calls that lack members, and drops unknown items from a complete answer. */
export function repairResponses(): StreamRepair {
  const repair: Repair = {
    event: (event) => (isKeepAlive(event) ? [] : [ofItem.has(event.type) ? { ...event, item: itemOf(event.item) } : event]),
    end: () => [],
    document(value) {
      if (!isObject(value) || !Array.isArray(value.output)) return value
      const output: readonly unknown[] = value.output
      return { ...value, output: output.filter((item) => isObject(item) && items.has(item.type)).map(itemOf) }
    },
  }
  return { repair, asItIs: (event) => !event.includes('"function_call"') && event.includes('"type":"response.') }
}

/** A call without a name is still a call: the runtime tells the model. */
function itemOf(item: unknown): unknown {
  if (!isObject(item) || item.type !== 'function_call') return item
  const callId = textIn(item.call_id) || textIn(item.id)
  const said = item.arguments ?? ''
  return {
    ...item,
    id: textIn(item.id) || callId,
    call_id: callId,
    name: textIn(item.name),
    arguments: typeof said === 'string' ? said : JSON.stringify(said),
    status: item.status ?? 'completed',
  }
}
