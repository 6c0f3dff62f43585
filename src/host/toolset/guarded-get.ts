/** Builds the guarded fetch of the tools from its parts, which load together with the first use. */

import type { Config } from '../../config/config.ts'
import type { Policy } from '../../security/policy.ts'
import { judgeHop } from '../../security/redirect-hop.ts'
import { judgeConnection, parseAddress } from '../../security/targets/address.ts'
import { isLocalName, type UrlPolicy } from '../../security/targets/url.ts'
import type { Get } from '../../tools/builtin/http.ts'
import { createGuardedFetch, createStreamingFetch } from '../../workspace/net/guarded.ts'
import type { JudgeAddress, JudgeUrl } from '../../workspace/net/pin.ts'

export type GetOptions = { readonly policy: Policy; readonly limits: Config['limits'] }

/** The policy judges each address, and each redirect. */
export function guardedGet({ policy, limits }: GetOptions): Get {
  return (url, options) => {
    const fetcher = createGuardedFetch({
      judgeUrl: (to) => judgeHop({ from: { url, method: options.method ?? 'GET' }, to, policy }),
      judgeAddress: ({ host, ip }) => judgeConnection({ host, ip, allowedDomains: policy.allowedDomains }),
      maxBytes: limits.maxResponseBytes,
      timeoutMs: limits.httpTimeoutS * 1000,
    })
    return fetcher.get(url, options)
  }
}

/**
 * Judges addresses for one server that its operator named: its own origin is permitted, and so is all of loopback when the server is there. A
 * public name must stay public, whatever its name server says.
 */
export function serverAddresses({ url, policy }: { readonly url: string; readonly policy: UrlPolicy }) {
  const own = new URL(url)
  const isLocal = (host: string) => host === 'localhost' || host === '::1' || /^127\.[\d.]+$/.test(host)
  const isPrivate = parseAddress(hostOf(own)) !== undefined || isLocalName(hostOf(own))
  return {
    isOwn(address: string): boolean {
      const to = URL.parse(address)
      return to !== null && (to.origin === own.origin || (isLocal(hostOf(own)) && isLocal(hostOf(to)) && /^https?:$/.test(to.protocol)))
    },
    judgeAddress: (({ host, ip }) => {
      if ((isPrivate && host === hostOf(own)) || (isLocal(hostOf(own)) && isLocal(host))) return { ok: true }
      return judgeConnection({ host, ip, allowedDomains: policy.allowedDomains })
    }) satisfies JudgeAddress,
  }
}

function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[(.*)\]$/, '$1')
}

/** Returns the standard fetch for one server at `url`, which a person named. */
export function guardedFetch({ policy, url }: { readonly policy: Policy; readonly url: string }): typeof fetch {
  const { isOwn, judgeAddress } = serverAddresses({ policy, url })
  const judgeUrl: JudgeUrl = (to) => (isOwn(to.url) ? { ok: true } : judgeHop({ from: { url, method: 'POST' }, to, policy }))
  return createStreamingFetch({ judgeUrl, judgeAddress })
}
