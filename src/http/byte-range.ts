/** Answers parts of a text by the Range header (RFC 9110, one range of bytes). */

import { quiet } from './http-error.ts'

/** `to` is the first byte that is not part of it. */
export type ByteRange = { readonly from: number; readonly to: number }

/** @returns undefined for the whole: no range, several, or one in another form; "none" when the text does not have these bytes */
export function rangeOf(header: string | undefined, total: number): ByteRange | 'none' | undefined {
  const [, first = '', last = ''] = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(header?.trim() ?? '') ?? []
  if (first === '' && last === '') return undefined
  if (first === '') return last === '0' || total === 0 ? 'none' : { from: Math.max(0, total - Number(last)), to: total }
  const [from, to] = [Number(first), last === '' ? total : Math.min(total, Number(last) + 1)]
  if (last !== '' && Number(last) < from) return undefined
  return from >= total ? 'none' : { from, to }
}

export type RangeAnswer = {
  readonly total: number
  /** Absent: the text does not have these bytes. */
  readonly bytes?: Uint8Array
  /** Where the part begins; absent for an answer that is not to a Range. */
  readonly from?: number
}

export function rangeResponse({ total, bytes, from }: RangeAnswer): Response {
  const headers = { ...quiet, 'content-type': 'text/plain; charset=utf-8', 'accept-ranges': 'bytes', 'x-log-bytes': String(total) }
  if (bytes === undefined) return new Response(null, { status: 416, headers: { ...headers, 'content-range': `bytes */${total}` } })
  if (from === undefined) return new Response(Buffer.from(bytes), { headers })
  const range = `bytes ${from}-${from + bytes.byteLength - 1}/${total}`
  return new Response(Buffer.from(bytes), { status: 206, headers: { ...headers, 'content-range': range } })
}
