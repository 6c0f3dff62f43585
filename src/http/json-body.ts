/** Reads the body of a request: JSON only, of limited size, depth and time. */

import { within } from '../kit/abort.ts'
import { errorText } from '../kit/errors.ts'
import { HttpError } from './http-error.ts'

export type BodyLimits = {
  readonly maxBytes: number
  readonly maxDepth: number
  readonly maxMs: number
  /** Tells whether its texts may have NUL characters and halves of characters, which no database keeps as they are (default: yes). */
  readonly anyText?: boolean
}

export const bodyLimits: BodyLimits = { maxBytes: 1_048_576, maxDepth: 64, maxMs: 30_000 }

/** `text`: as it was sent; `value`: what it says. */
export type JsonBody = { readonly text: string; readonly value: unknown }

/**
 * Returns the body, one JSON value; `{}` when there is none. A body without a content type is JSON when a bearer token comes with it: no
 * browser sends one for another site. @throws HttpError 400, 408, 413, 415
 */
export async function readJsonBody(
  request: Request,
  { maxBytes, maxDepth, maxMs, anyText = true }: BodyLimits = bodyLimits,
): Promise<JsonBody> {
  const { headers } = request
  const coding = headers.get('content-encoding')
  if (coding !== null && coding !== 'identity')
    throw new HttpError(415, 'compressed_body', `the body is compressed (${coding.slice(0, 40)}); send it plain`, {
      'accept-encoding': 'identity',
    })
  if (Number(headers.get('content-length') ?? 0) > maxBytes) throw tooLarge(maxBytes)
  const whole = async () => (headers.has('content-length') ? new Uint8Array(await request.arrayBuffer()) : collect(request, maxBytes))
  const bytes = await within(maxMs, whole())
  if (!bytes) throw new HttpError(408, 'slow_body', `the body did not arrive within ${maxMs / 1000} seconds`, { connection: 'close' })
  const text = textIn(bytes)
  if (text.trim() === '') return { text: '{}', value: {} }
  const type = headers.get('content-type') ?? (/^bearer /i.test(headers.get('authorization') ?? '') ? 'application/json' : '')
  if (!/^application\/json(\s*;\s*charset="?utf-8"?)?\s*$/i.test(type))
    throw new HttpError(
      415,
      'not_json',
      `the content type is ${type === '' ? 'missing' : JSON.stringify(type.slice(0, 80))}; send Content-Type: application/json`,
      { accept: 'application/json' },
    )
  if (depthOf(text, maxDepth) > maxDepth) throw new HttpError(400, 'too_deep', `the JSON is nested more than ${maxDepth} levels deep`)
  const value = parsed(text)
  if (!anyText && /\\u(?:0000|d[89a-f])/i.test(text) && !isStorable(value))
    throw new HttpError(400, 'bad_text', 'a text of the body has a NUL character or half of a character (a lone surrogate); take it out')
  return { text, value }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new HttpError(400, 'bad_json', `the body is not JSON: ${errorText(error)}`)
  }
}

function isStorable(value: unknown): boolean {
  if (typeof value === 'string') return value.isWellFormed() && !value.includes('\0')
  if (typeof value !== 'object' || value === null) return true
  return Object.entries(value).every(([name, member]) => isStorable(name) && isStorable(member))
}

/** Reads a body whose length is not known beforehand. */
async function collect({ body }: Request, maxBytes: number): Promise<Uint8Array> {
  if (!body) return new Uint8Array()
  const pieces: Uint8Array[] = []
  let bytes = 0
  for await (const piece of body) {
    bytes += piece.byteLength
    if (bytes > maxBytes) throw tooLarge(maxBytes)
    pieces.push(piece)
  }
  return Buffer.concat(pieces)
}

const utf8 = new TextDecoder('utf-8', { fatal: true })

function textIn(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes)
  } catch {
    throw new HttpError(400, 'bad_json', 'the body is not UTF-8')
  }
}

function tooLarge(maxBytes: number): HttpError {
  // The rest of the body stays unread, so this connection cannot be used again.
  return new HttpError(413, 'too_large', `the body is larger than ${maxBytes} bytes`, { connection: 'close' })
}

/** Counts brackets outside of strings, and stops above `most`: a parser would recurse instead. */
export function depthOf(text: string, most: number): number {
  let [depth, deepest] = [0, 0]
  for (let at = 0; at < text.length && deepest <= most; at += 1) {
    const code = text.charCodeAt(at)
    if (code === 34) at = endOfString(text, at)
    else if (code === 91 || code === 123) deepest = Math.max(deepest, ++depth)
    else if (code === 93 || code === 125) depth -= 1
  }
  return deepest
}

function endOfString(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at += 1) {
    const code = text.charCodeAt(at)
    if (code === 34) return at
    if (code === 92) at += 1
  }
  return text.length
}
