/** Finds the secret that a request carries: a bearer token, or the cookie of a browser session. */

import { HttpError } from '../http-error.ts'

export type Credential = { readonly kind: 'bearer' | 'cookie'; readonly secret: string }

/** A header that was sent twice arrives as one, joined by a comma, and no secret has a comma. */
const secretPattern = /^[\x21-\x2b\x2d-\x7e]{1,512}$/

/** @returns undefined when there is none. @throws HttpError 401 for an Authorization header in another form */
export function credentialOf(headers: Headers, cookie: string): Credential | undefined {
  const given = headers.get('authorization')
  if (given === null) return cookieOf(headers, cookie)
  const [, secret = ''] = /^Bearer +(\S+) *$/i.exec(given) ?? []
  if (!secretPattern.test(secret)) throw unauthorized('the Authorization header must be exactly one "Bearer TOKEN"')
  return { kind: 'bearer', secret }
}

function cookieOf(headers: Headers, name: string): Credential | undefined {
  const values = (headers.get('cookie') ?? '').split(';').flatMap((pair) => {
    const [key, ...value] = pair.split('=')
    return key?.trim() === name ? [value.join('=').trim()] : []
  })
  const [secret = ''] = values
  return values.length === 1 && secretPattern.test(secret) ? { kind: 'cookie', secret } : undefined
}

export function unauthorized(message: string): HttpError {
  return new HttpError(401, 'unauthorized', message, { 'www-authenticate': 'Bearer realm="braidclaw"' })
}
