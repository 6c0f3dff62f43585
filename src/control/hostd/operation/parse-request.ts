/** Parses one line of a peer as a request. */

import { isObject } from '../../../kit/json.ts'
import { type HostdError, type HostdRequest, hostdRequest, longestRequest } from '../hostd-wire.ts'

/** A line that is no request still has a request to answer: with the id that it names, if it names one. */
export type ParsedRequest =
  | { readonly ok: true; readonly request: HostdRequest }
  | { readonly ok: false; readonly request: HostdRequest; readonly error: HostdError }

export function parseRequest({ ok, text }: { readonly ok: boolean; readonly text: string }): ParsedRequest {
  if (!ok) return { ok, request: blank(text), error: { code: 'too_large', message: `the line is longer than ${longestRequest} bytes` } }
  if (depthOf(text) > deepest)
    return { ok: false, request: blank(text), error: { code: 'bad_request', message: `the line is nested deeper than ${deepest} levels` } }
  const value = parsed(text)
  const found = hostdRequest.safeParse(value)
  if (found.success) return { ok: true, request: found.data }
  const message =
    value === undefined ? 'the line is no JSON' : `the line is no request: ${found.error.issues.map(describeIssue).join('; ')}`
  return { ok: false, request: { ...blank(text), id: idIn(value) }, error: { code: 'bad_request', message } }
}

/** Writing, hashing and recording a request descends into it. */
const deepest = 80

/** Returns how deep the brackets of a JSON text are nested; those in strings do not count. */
function depthOf(text: string): number {
  let [depth, most] = [0, 0]
  for (const [token] of text.matchAll(/"(?:[^"\\]|\\.)*"?|[[\]{}]/g)) {
    if (token === '[' || token === '{') depth += 1
    else if (token === ']' || token === '}') depth -= 1
    most = Math.max(most, depth)
  }
  return most
}

/** The receipt shows the beginning of the line. */
function blank(text: string): HostdRequest {
  return { id: '', op: 'unknown', params: { line: text.slice(0, 200) } }
}

function idIn(value: unknown): string | number {
  const id = isObject(value) ? value.id : ''
  return (typeof id === 'string' && id.length <= 64) || (typeof id === 'number' && Number.isSafeInteger(id)) ? id : ''
}

function describeIssue({ path, message }: { readonly path: readonly PropertyKey[]; readonly message: string }): string {
  return path.length === 0 ? message : `${path.map(String).join('.')}: ${message}`
}

function parsed(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text)
    return value
  } catch {
    return undefined
  }
}
