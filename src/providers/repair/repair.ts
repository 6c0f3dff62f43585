/** What a server sent, made fit for its vendor's library: those refuse a whole reply over one member that they do not know. */

import { isObject, type JsonObject } from '../../kit/json.ts'
import { parseJson } from '../../kit/wire.ts'
import { readEvents } from '../chat/events.ts'
import type { Body } from '../wire/reply-body.ts'

export type Fields = { readonly [key: string]: unknown }

/** Only what we use is kept. What is wrong in a known place stays as it is: the library then says so. */
export type Repair = {
  /** What takes the place of one event: nothing, itself, or several. */
  event(event: Fields): readonly Fields[]
  /** What is missing at the end of the body. */
  end(): readonly Fields[]
  /** A whole answer. */
  document(value: unknown): unknown
}

/** `asItIs` knows events by their text that need no repair, which spares the reading. */
export type StreamRepair = { readonly repair: Repair; readonly asItIs: (event: string) => boolean }

/** The body as the library is to read it, a piece for each piece that arrives; undefined at the end. */
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

/** Those members that are numbers. */
export function countsOf(value: unknown): JsonObject {
  const members = Object.entries(isObject(value) ? value : {})
  return Object.fromEntries(members.flatMap(([key, count]): [string, number][] => (typeof count === 'number' ? [[key, count]] : [])))
}

/** '' for whatever is no string. */
export function textIn(value: unknown): string {
  return typeof value === 'string' ? value : ''
}
