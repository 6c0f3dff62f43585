/** Reads who asks for a model, and writes the request that goes on to the vendor: with the vendor's key, and without anything of ours. */

import { unauthorized } from '../../http/callers/credentials.ts'
import type { Upstream } from './upstreams.ts'

/** A header that was sent twice arrives joined by a comma, and no token has a comma. */
const tokenPattern = /^[\x21-\x2b\x2d-\x7e]{1,512}$/

/** The run token: as bearer, or where Anthropic's clients put their key. @throws HttpError 401 */
export function runTokenOf(headers: Headers): string {
  const [, bearer] = /^Bearer +(\S+) *$/i.exec(headers.get('authorization') ?? '') ?? []
  const token = bearer ?? headers.get('x-api-key') ?? ''
  if (!tokenPattern.test(token)) throw unauthorized('send the run token as "Authorization: Bearer TOKEN", or as "x-api-key: TOKEN"')
  return token
}

/** Other headers of a runner could name another account, or change what is paid. */
const passedOn = ['anthropic-version', 'anthropic-beta', 'openai-beta', 'accept']

export function vendorHeaders(from: Headers, { vendor, key }: Upstream): Headers {
  const headers = new Headers({ 'content-type': 'application/json', 'user-agent': 'braidclaw-control' })
  for (const name of passedOn) {
    const value = from.get(name)
    if (value !== null) headers.set(name, value)
  }
  if (vendor === 'anthropic' && !headers.has('anthropic-version')) headers.set('anthropic-version', '2023-06-01')
  if (key !== '' && vendor === 'anthropic') headers.set('x-api-key', key)
  if (key !== '' && vendor === 'openai') headers.set('authorization', `Bearer ${key}`)
  return headers
}

/** Others tell of the operator's account. */
const passedBack = ['content-type', 'retry-after', 'retry-after-ms', 'request-id', 'x-request-id', 'x-should-retry']

export function clientHeaders(from: Headers): Record<string, string> {
  return Object.fromEntries(passedBack.flatMap((name) => (from.has(name) ? [[name, from.get(name) ?? '']] : [])))
}
