/** Asks whether a BraidClaw server answers at an address; commands that start or check a server use it. */

import { attempt, errnoOf } from '../../kit/errors.ts'
import { createProviderFetch } from '../../workspace/net/provider-fetch.ts'

/** `nothing`: nobody listens there; `other`: something listens that is not a gateway of ours. */
export type GatewayAnswer = { readonly kind: 'nothing' } | { readonly kind: 'other' } | { readonly kind: 'ours'; readonly version: string }

const patienceMs = 2_000

/** @param url such as `http://127.0.0.1:4127`; its certificate is not checked, because nothing secret is sent */
export async function askGateway(url: string): Promise<GatewayAnswer> {
  const ask = createProviderFetch({ baseUrl: url })
  try {
    const answer = await ask(`${url}/health`, { signal: AbortSignal.timeout(patienceMs), tls: { rejectUnauthorized: false } })
    const version = versionIn(await answer.text())
    return version === undefined ? { kind: 'other' } : { kind: 'ours', version }
  } catch (error) {
    return { kind: isUnreachable(error) ? 'nothing' : 'other' }
  }
}

/** Returns whether nothing listens there; after a time limit or a broken answer something does. */
export function isUnreachable(error: unknown): boolean {
  return unreachable.includes(errnoOf(error) ?? '')
}

const unreachable = ['ECONNREFUSED', 'ConnectionRefused', 'EADDRNOTAVAIL', 'EHOSTUNREACH', 'ENETUNREACH', 'ENOTFOUND']

function versionIn(text: string): string | undefined {
  return attempt(() => {
    const { ok, version } = JSON.parse(text)
    return ok === true && typeof version === 'string' ? version : undefined
  })
}
