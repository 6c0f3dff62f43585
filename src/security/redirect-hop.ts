/** A redirect is a request of its own: it may not take a call to where the call would not have been let go by itself. */

import { quote } from '../kit/text.ts'
import { permit } from './autonomy.ts'
import type { Policy } from './policy.ts'
import { highest } from './risk.ts'
import { refuse } from './rules.ts'
import { judgeUrl, type UrlVerdict } from './targets/url.ts'

type Request = { readonly url: string; readonly method: string }

/** For every hop, the first included. `from` is the request that the gate let through or a person approved. */
export function judgeHop({ from, to, policy }: { from: Request; to: Request; policy: Policy }): UrlVerdict {
  const [granted, hop] = [judgeUrl({ ...from, policy }), judgeUrl({ ...to, policy })]
  if (!granted.ok || !hop.ok) return granted.ok ? hop : granted
  if (highest(granted, [hop]) === granted) return hop
  if (permit({ rating: hop, reads: hop.reads, always: false }, policy).verdict === 'allow') return hop
  const reason = `url: ${quote(from.url)} redirects to ${quote(hop.url)} (${hop.risk} risk), which was not part of the question; request that URL itself`
  return refuse('url.redirect', reason)
}
