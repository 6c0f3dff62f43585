/** Builds the guarded fetch of the tools from its parts, which load together with the first use. */

import type { Config } from '../../config/config.ts'
import type { Policy } from '../../security/policy.ts'
import { judgeHop } from '../../security/redirect-hop.ts'
import { judgeConnection } from '../../security/targets/address.ts'
import type { Get } from '../../tools/builtin/http.ts'
import { createGuardedFetch } from '../../workspace/net/guarded.ts'

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
