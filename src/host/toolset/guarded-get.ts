/** Builds the guarded fetch of the tools from its parts, which load together with the first use. */

import type { Config } from '../../config/config.ts'
import type { Policy } from '../../security/policy.ts'
import { judgeHop } from '../../security/redirect-hop.ts'
import { judgeConnection } from '../../security/targets/address.ts'
import type { Get } from '../../tools/builtin/http.ts'
import { createGuardedFetch, createStreamingFetch } from '../../workspace/net/guarded.ts'

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

/** Returns the standard fetch for one server at `url`, whose host was judged or named by a person. `hosts` are further ones that a person named. */
export function guardedFetch({ policy, url, hosts = [] }: GuardedServer): typeof fetch {
  const named = { ...policy, allowedDomains: [...policy.allowedDomains, ...hosts] }
  return createStreamingFetch({
    judgeUrl: (to) => judgeHop({ from: { url, method: 'POST' }, to, policy: named }),
    judgeAddress: ({ host, ip }) => judgeConnection({ host, ip, allowedDomains: policy.allowedDomains }),
  })
}

type GuardedServer = { readonly policy: Policy; readonly url: string; readonly hosts?: readonly string[] }
