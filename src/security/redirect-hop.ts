/** Judges each redirect as a request of its own, so that a redirect cannot reach a URL that the gate would have refused. */

import { quote } from '../kit/text.ts'
import { highest, permit } from './autonomy.ts'
import type { Policy } from './policy.ts'
import { refuse } from './rules.ts'
import { judgeUrl, type UrlVerdict } from './targets/url.ts'

type Request = { readonly url: string; readonly method: string }

/**
 * Called for every hop, including the first. `from` is the request that the gate allowed or a person approved: a redirect may stay on its
 * host, but a host that nobody named is a question of its own.
 */
export function judgeHop({ from, to, policy }: { from: Request; to: Request; policy: Policy }): UrlVerdict {
  const [granted, hop] = [judgeUrl({ ...from, policy }), judgeUrl({ ...to, policy })]
  if (!granted.ok || !hop.ok) return granted.ok ? hop : granted
  if (highest(granted, [hop]) === granted && (hop.allowed || isSameSite(granted.host, hop.host))) return hop
  const request = { beyond: hop.allowed ? [] : [hop.host], reads: hop.reads }
  if (permit({ rating: hop, reads: hop.reads, always: false, request }, policy).verdict === 'allow') return hop
  const reason = `url: ${quote(from.url)} redirects to ${quote(hop.url)} (${hop.risk} risk), which was not part of the question; request that URL itself`
  return refuse('url.redirect', reason)
}

/** Most sites redirect their bare name to "www" or back. */
function isSameSite(one: string, other: string): boolean {
  return bare(one) === bare(other)
}

function bare(host: string): string {
  return host.replace(/^www\./, '')
}
