/** Creates the http tool's fetch: the policy guards it, and the first use loads it. */

import type { Config } from '../../../config/config.ts'
import type { Policy } from '../../../security/policy.ts'
import type { Get } from '../../../tools/builtin/http.ts'

export function createGet({ policy, limits }: { readonly policy: Policy; readonly limits: Config['limits'] }): Get {
  return async (url, options) => {
    const [{ createGuardedFetch }, { judgeHop }, { judgeConnection }] = await Promise.all([
      import('../../../workspace/net/guarded.ts'),
      import('../../../security/redirect-hop.ts'),
      import('../../../security/targets/address.ts'),
    ])
    const fetcher = createGuardedFetch({
      judgeUrl: (to) => judgeHop({ from: { url, method: options.method ?? 'GET' }, to, policy }),
      judgeAddress: ({ host, ip }) => judgeConnection({ host, ip, allowedDomains: policy.allowedDomains }),
      maxBytes: limits.maxResponseBytes,
      timeoutMs: limits.httpTimeoutS * 1000,
    })
    return fetcher.get(url, options)
  }
}
