/** Finds who sent a request, once a request, and slows down whoever tries many secrets or sends too much. */

import type { Clock } from '../../runtime/port.ts'
import { HttpError } from '../http-error.ts'
import type { Connection } from '../listen.ts'
import { type Credential, credentialOf, unauthorized } from './credentials.ts'
import { createRateLimit, type RateOptions } from './rate-limit.ts'

export type IdentifierOptions<Caller extends Identity> = {
  /** @returns undefined for a secret that nobody has */
  readonly callerOf: (credential: Credential, request: Pick<Request, 'headers'>, connection: Connection) => Found<Caller>
  /** Names a caller among all callers; absent: its id. */
  readonly keyOf?: (caller: Caller) => string
  /** How often one caller may send anything. */
  readonly rate?: Pick<RateOptions, 'perSecond' | 'burst'>
  readonly now: Clock
}

type Found<T> = T | undefined | Promise<T | undefined>

/** How often one address may send a wrong secret, and how often one caller may send anything. */
const wrongSecrets = { perSecond: 5, burst: 50 }
const requests = { perSecond: 1_000, burst: 4_000 }

export function createIdentifier<Caller extends Identity>(options: IdentifierOptions<Caller>, cookie: () => string) {
  const { callerOf, keyOf = ({ id }) => id, rate = requests, now } = options
  const [wrong, each] = [createRateLimit({ ...wrongSecrets, now }), createRateLimit({ ...rate, now })]

  /** A wrong secret counts against the address, so that nobody can try many; a right one is never refused for that. */
  async function attempt<T>(find: () => Found<T>, connection: Connection): Promise<T | undefined> {
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
    /** Whether the credential of the request is still in force; for streams, which outlive the moment of their beginning. */
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

function tooMany(seconds: number): HttpError {
  return new HttpError(429, 'too_many_requests', `too many requests; try again in ${seconds} s`, { 'retry-after': String(seconds) })
}

export type Identity = { readonly id: string }

/** `scopes` is a plain list of words, and "admin" includes all of them. */
export type ScopedIdentity = Identity & { readonly scopes: readonly string[] }

/** `key` names the caller among all callers: limits and kept answers are by key. */
export type Sender<Caller extends Identity> = { readonly caller: Caller; readonly key: string }
