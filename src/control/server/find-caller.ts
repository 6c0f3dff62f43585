/** Finds the owner of a credential: an operator, an agent, a run, the shared secret, or the session of a browser. */

import { type Credential, openSession } from '../../http/callers.ts'
import { HttpError } from '../../http/http-error.ts'
import type { Connection } from '../../http/listen.ts'
import { sha256 } from '../../kit/sha256.ts'
import { contains, parseAddress } from '../../security/targets/address.ts'
import type { Caller } from '../contract/caller.ts'
import type { AccessPlane } from '../contract/plane.ts'
import { httpErrorOf } from '../contract/plane-refusal.ts'

type FindCallerOptions = {
  readonly access: Pick<AccessPlane, 'callerOf' | 'operator'>
  readonly seed: SeedAccess
  readonly now: () => number
}

/** @throws HttpError for an expired secret, and while the database does not answer */
type Find = (
  credential: Credential,
  request: Pick<Request, 'headers'>,
  connection: Pick<Connection, 'address'>,
) => Promise<Caller | undefined>

export function createFindCaller({ access, seed, now }: FindCallerOptions): Find {
  return async ({ kind, secret }, { headers }, connection) => {
    try {
      if (kind === 'cookie') return (await sessionOf(access, secret, now()))?.caller
      return (await access.callerOf(secret)) ?? seed({ secret, address: connection.address, headers })
    } catch (error) {
      throw httpErrorOf(error) ?? error
    }
  }
}

/** Finds the session of a cookie, and the operator who began it. */
export async function sessionOf(access: Pick<AccessPlane, 'operator'>, cookie: string, now: number) {
  const [id = '', , nonce] = cookie.split('.')
  const operator = /^[\w-]{1,64}$/.test(id) ? await access.operator(id, nonce) : undefined
  const session = openSession(cookie, () => operator?.digest, now)
  return operator && session && { caller: operator.caller, ...session }
}

/** Returns a key that is unique among all callers: agents and operators may have equal ids. */
export function callerKey(caller: Caller): string {
  return caller.kind === 'run' ? `run:${caller.runId}` : `${caller.kind}:${caller.id}`
}

type SeedAccessOptions = {
  /** CONTROLPLANE_SHARED_SECRET; no one has the secret when it is absent. */
  readonly secret: string | undefined
  /** Lists networks besides this machine, for example 10.0.0.0/24. */
  readonly from: readonly string[]
  /** Receives the address and the reason of a refusal; once for each address. */
  readonly refused: (address: string, why: string) => void
}

type SeedSender = { readonly secret: string; readonly address: string; readonly headers: Headers }

type SeedAccess = (sender: SeedSender) => Caller | undefined

const loopback = ['127.0.0.0/8', '::1/128']
const sharedSecret: Caller = { kind: 'seed', id: 'shared-secret' }

/** The most addresses that are remembered as reported. */
const mostReported = 1_000

/**
 * Decides whether a secret is the shared secret and comes from an allowed network; the right secret from elsewhere gets an HttpError 403
 * that says so. @throws Error that names the wrong network or secret
 */
export function createSeedAccess({ secret, from, refused }: SeedAccessOptions): SeedAccess {
  const networks = [...loopback, ...from.map(assertNetwork)]
  if (secret === undefined || secret === '') return () => undefined
  if (!/^[\x21-\x2b\x2d-\x7e]{1,512}$/.test(secret))
    throw new Error('CONTROLPLANE_SHARED_SECRET: use 1 to 512 visible ASCII characters, without spaces and commas')
  const right = Buffer.from(sha256(secret))
  const reported = new Set<string>()
  return (sender) => {
    if (!crypto.timingSafeEqual(Buffer.from(sha256(sender.secret)), right)) return undefined
    const why = whyElsewhere(sender, networks)
    if (why === undefined) return sharedSecret
    if (reported.size < mostReported && !reported.has(sender.address)) {
      reported.add(sender.address)
      refused(sender.address, why)
    }
    throw new HttpError(403, 'forbidden', `the shared secret counts from this machine and the networks of --compat-from only: ${why}`)
  }
}

/** A proxy adds these headers to the requests of others. */
const ofProxies = /^(?:x-forwarded-.*|forwarded|via|x-real-ip|cf-connecting-ip|true-client-ip|x-client-ip)$/

/** Refuses requests that a proxy passed on, even from a proxy on this machine: they come from elsewhere. */
function whyElsewhere({ address, headers }: SeedSender, networks: readonly string[]): string | undefined {
  const added = [...headers.keys()].find((name) => ofProxies.test(name))
  if (added !== undefined) return `a proxy passed the request on (it has the header ${added})`
  const parsed = parseAddress(address.replace(/^::ffff:(?=\d+\.)/i, ''))
  if (parsed !== undefined && networks.some((network) => contains(network, parsed))) return undefined
  return `the request comes from ${address || 'an unknown address'}`
}

/** @throws Error unless it is a network */
function assertNetwork(network: string): string {
  const [base = '', length = ''] = network.split('/')
  const address = parseAddress(base)
  const isRight = address !== undefined && /^\d{1,3}$/.test(length) && Number(length) <= address.bits
  if (isRight) return network
  throw new Error(`--compat-from: ${JSON.stringify(network)} is not a network; write it as 10.0.0.0/24 or fd00::/64`)
}
