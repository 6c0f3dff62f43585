/** Collects the parts of one reply in the order of their start, makes the text well-formed, and counts its bytes against the limit. */

import type { JsonObject } from '../../kit/json.ts'
import type { Part } from '../../runtime/event.ts'
import type { ModelChunk } from '../../runtime/port.ts'
import { readArguments, unread } from './call-arguments.ts'
import { tooLarge } from './reply-body.ts'

/** An unfinished text or thinking block; `half` is a high surrogate whose other half is in the next delta. */
export type ReplyBlock = { readonly type: 'text' | 'thinking'; readonly texts: string[]; half: string; meta: JsonObject }

/** A tool call as it arrived: `id` is the model's own id, `raw` the arguments as the model wrote them. */
export type RawCall = {
  readonly id: string
  /** Empty when the model named no tool. */
  readonly name: string
  readonly raw: string
  readonly meta?: JsonObject
  /** True when the call has an unknown form; then `raw` is the whole call. */
  readonly isUnknown?: boolean
}

export type PartsOptions = { readonly provider: string; readonly maxBytes: number; readonly newId: (wanted: string) => string }

type Slot = ReplyBlock | Extract<Part, { type: 'call' }>

/** Every function that adds bytes throws ProviderFailure `too_large` beyond the limit. */
export function collectParts({ provider, maxBytes, newId }: PartsOptions) {
  const slots: Slot[] = []
  let bytes = 0

  function count(text: string): void {
    bytes += Buffer.byteLength(text)
    if (bytes > maxBytes) throw tooLarge({ provider, maxBytes })
  }

  return {
    begin(type: ReplyBlock['type']): ReplyBlock {
      const block: ReplyBlock = { type, texts: [], half: '', meta: {} }
      slots.push(block)
      return block
    },
    /** Returns the chunk to show for the delta. */
    add(to: ReplyBlock, delta: string): ModelChunk | undefined {
      count(delta)
      const text = soundUpTo(to, delta)
      if (text === '') return undefined
      to.texts.push(text)
      return { type: to.type, text }
    },
    /** Does not count bytes: arguments arrive in pieces, which `count` has counted already. */
    call({ id, name, raw, meta = {}, isUnknown = false }: RawCall): void {
      const { sent, ...read } = isUnknown ? unread(raw) : readArguments(raw)
      const all = sent === undefined ? meta : { ...meta, sent: sent.toWellFormed() }
      slots.push({ type: 'call', id: newId(id), name: name.toWellFormed(), ...read, ...(isEmpty(all) ? {} : { meta: all }) })
    },
    count,
    parts: () => slots.flatMap(partOf),
    bytes: () => bytes,
  }
}

/** Returns the text that can no longer change; half a surrogate pair at its end waits for the next delta. */
function soundUpTo(block: ReplyBlock, delta: string): string {
  const text = block.half + delta
  const last = text.charCodeAt(text.length - 1)
  block.half = last >= 0xd800 && last <= 0xdbff ? text.slice(-1) : ''
  return text.slice(0, text.length - block.half.length).toWellFormed()
}

function partOf(slot: Slot): readonly Part[] {
  if (slot.type === 'call') return [slot]
  const text = slot.texts.join('') + slot.half.toWellFormed()
  if (text === '' && isEmpty(slot.meta)) return []
  return [{ type: slot.type, text, ...(isEmpty(slot.meta) ? {} : { meta: slot.meta }) }]
}

function isEmpty(value: JsonObject): boolean {
  return Object.keys(value).length === 0
}
