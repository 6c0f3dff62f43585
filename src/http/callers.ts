/** Finds who sent a request by the secret that it carries: a bearer token, or the cookie of a browser session. */

import { sleep } from '../kit/abort.ts'
import type { Clock } from '../runtime/port.ts'
import { HttpError } from './http-error.ts'
import type { Connection } from './listen.ts'

export type Credential = { readonly kind: 'bearer' | 'cookie'; readonly secret: string }

/** A header that was sent twice arrives as one, joined by a comma, and no secret has a comma. */
const secretPattern = /^[\x21-\x2b\x2d-\x7e]{1,512}$/

/** @returns undefined when there is none. @throws HttpError 401 for an Authorization header in another form */
function credentialOf(headers: Headers, cookie: string): Credential | undefined {
  const given = headers.get('authorization')
  if (given === null) return cookieOf(headers, cookie)
  const [, secret = ''] = /^Bearer +(\S+) *$/i.exec(given) ?? []
  if (!secretPattern.test(secret)) throw unauthorized('the Authorization header must be exactly one "Bearer TOKEN"')
  return { kind: 'bearer', secret }
}

/** Returns the session of a browser that the request carries, unverified. */
export function cookieOf(headers: Headers, name: string): Credential | undefined {
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

export type IdentifierOptions<Caller extends Identity> = {
  /** @returns undefined for a secret that nobody has */
  readonly callerOf: (credential: Credential, request: Pick<Request, 'headers'>, connection: Connection) => LookupResult<Caller>
  /** Names a caller among all callers; absent: its id. */
  readonly keyOf?: (caller: Caller) => string
  /** How often one caller may send anything. */
  readonly rate?: Pick<RateOptions, 'perSecond' | 'burst'>
  readonly now: Clock
}

type LookupResult<T> = T | undefined | Promise<T | undefined>

/** How often one address may send a wrong secret, and how often one caller may send anything. */
const wrongSecrets = { perSecond: 5, burst: 50 }
const requests = { perSecond: 1_000, burst: 4_000 }

/** Finds who sent a request, once a request, and slows down callers who try many secrets or send too much. */
export function createIdentifier<Caller extends Identity>(options: IdentifierOptions<Caller>, cookie: () => string) {
  const { callerOf, keyOf = ({ id }) => id, rate = requests, now } = options
  const [wrong, each] = [createRateLimit({ ...wrongSecrets, now }), createRateLimit({ ...rate, now })]

  /** A wrong secret counts against the address, so that nobody can try many; a right one is never refused for that. */
  async function attempt<T>(find: () => LookupResult<T>, connection: Connection): Promise<T | undefined> {
    const found = await find()
    const wait = found === undefined ? wrong.take(connection.address) : undefined
    if (wait !== undefined) throw tooMany(wait)
    return found
  }

  async function identify(request: Request, connection: Connection): Promise<Sender<Caller> | undefined> {
    const { headers, method } = request
    const credential = credentialOf(headers, cookie())
    if (!credential) return undefined
    const caller = await attempt(() => callerOf(credential, request, connection), connection)
    if (!caller) throw unauthorized(credential.kind === 'cookie' ? 'the session has ended; log in again' : 'this token is not in force')
    const key = keyOf(caller)
    const wait = each.take(key)
    if (wait !== undefined) throw tooMany(wait)
    if (credential.kind === 'cookie' && method !== 'GET' && method !== 'HEAD' && headers.get('origin') === null)
      throw new HttpError(403, 'foreign_origin', 'a session may change something only from its own page: the request has no Origin')
    return { caller, key }
  }

  return {
    attempt,
    /** Tells whether the credential of the request is still in force; for streams, which outlive the moment of their beginning. */
    async isInForce(request: Request, connection: Connection): Promise<boolean> {
      const credential = credentialOf(request.headers, cookie())
      return credential !== undefined && (await callerOf(credential, request, connection)) !== undefined
    },
    senderOf(request: Request, connection: Connection): () => Promise<Sender<Caller> | undefined> {
      const state: { found?: Promise<Sender<Caller> | undefined> } = {}
      return () => (state.found ??= identify(request, connection))
    },
  }
}

/** A stream or a turn ends at most this many ms after its credential. */
const recheckMs = 700

/** Resolves with true when the credential is no longer in force, also when that cannot be found out; with false once the signal aborts. */
export async function credentialEnd(isInForce: () => Promise<boolean>, until: AbortSignal): Promise<boolean> {
  while (!until.aborted) {
    await sleep(recheckMs, until)
    if (!until.aborted && !(await isInForce().catch(() => false))) return true
  }
  return false
}

function tooMany(seconds: number): HttpError {
  return new HttpError(429, 'too_many_requests', `too many requests; try again in ${seconds} s`, { 'retry-after': String(seconds) })
}

export type Identity = { readonly id: string }

/** `scopes` is a plain list of words, and "admin" includes all of them. */
export type ScopedIdentity = Identity & { readonly scopes: readonly string[] }

/** `key` names the caller among all callers: limits and stored answers are by key. */
export type Sender<Caller extends Identity> = { readonly caller: Caller; readonly key: string }

type Session = { readonly id: string; readonly expires: number; readonly nonce: string }

type Sealing = Session & { readonly digest: string }

/**
 * Makes the cookie of a browser session. It holds no secret: its seal is made with the digest of the token, so it ends with the token. `id`: of
 * the token; `digest`: its SHA-256, in hex; `expires`: milliseconds since 1970; `nonce`: names the session, so that a log-out ends it alone.
 */
export function sealSession({ id, expires, digest, nonce }: Sealing): string {
  return [id, expires.toString(36), nonce, sealOf({ id, expires, digest, nonce })].join('.')
}

/** @param digestOf returns the digest of the token with that id, while it is in force */
export function openSession(cookie: string, digestOf: (id: string) => string | undefined, now: number): Session | undefined {
  const [id = '', until = '', nonce = '', seal = '', ...more] = cookie.split('.')
  const expires = Number.parseInt(until, 36)
  const digest = digestOf(id)
  if (digest === undefined || more.length > 0 || !Number.isSafeInteger(expires) || expires <= now) return undefined
  const [given, right] = [Buffer.from(seal), Buffer.from(sealOf({ id, expires, digest, nonce }))]
  return given.length === right.length && crypto.timingSafeEqual(given, right) ? { id, expires, nonce } : undefined
}

function sealOf({ id, expires, digest, nonce }: Sealing): string {
  return new Bun.CryptoHasher('sha256', digest).update(`session ${id} ${expires} ${nonce}`).digest('hex')
}

type CookieOptions = { readonly name: string; readonly secure: boolean }

/** How long a session lasts. */
export const sessionSeconds = 7 * 86_400

/** Returns the Set-Cookie header of a new session. */
export function beginSession(session: Omit<Sealing, 'nonce'>, options: CookieOptions): string {
  const nonce = Buffer.from(crypto.getRandomValues(new Uint8Array(12))).toString('base64url')
  return setCookie(sealSession({ ...session, nonce }), { ...options, maxAgeS: sessionSeconds })
}

/** Returns the Set-Cookie header that takes the cookie away. */
export function endSession(options: CookieOptions): string {
  return setCookie('', { ...options, maxAgeS: 0 })
}

/** Restricts the cookie: browsers send it only to this server, never to a script of the page, and never with a request that another site began. */
function setCookie(value: string, { name, secure, maxAgeS }: CookieOptions & { readonly maxAgeS: number }): string {
  return `${name}=${value}; Path=/; HttpOnly; SameSite=Strict; Max-Age=${maxAgeS}${secure ? '; Secure' : ''}`
}

type RateOptions = { readonly perSecond: number; readonly burst: number; readonly now: Clock; readonly keys?: number }

type Bucket = { left: number; at: number }

/**
 * Limits how often each key may do something: a bucket that refills steadily. No caller is exempt.
 * @param options.keys how many keys are remembered at most; those used last, half as many, are never forgotten
 */
export function createRateLimit({ perSecond, burst, now, keys = 10_000 }: RateOptions) {
  const bucketOf = createMemory<Bucket>(keys)
  return {
    /** @returns undefined when it may, else after how many seconds to try again */
    take(key: string): number | undefined {
      const at = now()
      const bucket = bucketOf(key, () => ({ left: burst, at }))
      const left = Math.min(burst, bucket.left + (Math.max(0, at - bucket.at) / 1000) * perSecond)
      bucket.left = left >= 1 ? left - 1 : left
      bucket.at = at
      return left >= 1 ? undefined : Math.max(1, Math.ceil((1 - left) / perSecond))
    },
  }
}

/**
 * Remembers keys in two halves: a full one replaces the older one. A search for the least recently used key would cost more than the rest of a
 * request.
 */
function createMemory<Value>(most: number): (key: string, make: () => Value) => Value {
  const halves = { used: new Map<string, Value>(), older: new Map<string, Value>() }
  return (key, make) => {
    const found = halves.used.get(key)
    if (found !== undefined) return found
    const value = halves.older.get(key) ?? make()
    if (halves.used.size >= most / 2) {
      halves.older = halves.used
      halves.used = new Map()
    }
    halves.used.set(key, value)
    return value
  }
}
