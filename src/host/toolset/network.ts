/** Gives tools the network: the guarded fetch of the http tool, and in the sandbox exactly the hosts of one command, by the same rules. */

import type { SandboxKind, SandboxSettings } from '../../sandbox/contract.ts'
import type { Policy } from '../../security/policy.ts'
import type { Get } from '../../tools/builtin/http.ts'
import type { Setup } from '../api.ts'
import type { GetOptions } from './guarded-get.ts'

type SandboxNetwork = Pick<SandboxSettings, 'allowedDomains' | 'allowedPorts' | 'network'>

/** `hosts` are the hosts that this command may reach. Only those that allowed_domains lists too may have a private address. */
type NetworkRequest = { readonly policy: Policy; readonly hosts: readonly string[] }

const closed: SandboxNetwork = { allowedDomains: [] }

/** The network stays closed when a dependency is missing, and the log says so: a command without network can do no harm there. */
export async function sandboxNetwork(
  kind: SandboxKind,
  { policy, hosts }: NetworkRequest,
  { log }: Pick<Setup, 'log'>,
): Promise<SandboxNetwork> {
  if (hosts.length === 0 || kind === 'none') return closed
  const { missingForNetwork } = await import('../../sandbox/bubblewrap/command-network.ts')
  const missing = kind === 'landlock' ? ['bubblewrap'] : missingForNetwork()
  if (missing.length > 0) {
    log('warn', 'sandbox network off', { why: `network for commands needs ${missing.join(' and ')}; install that` })
    return closed
  }
  return { allowedDomains: hosts, allowedPorts: policy.allowedPorts, network: await networkFor({ policy, hosts }) }
}

export async function networkFor({ policy, hosts }: NetworkRequest): Promise<NonNullable<SandboxNetwork['network']>> {
  const [{ createTunnels }, { judgeUrl }, { judgeConnection }] = await Promise.all([
    import('../../workspace/net/tunnel.ts'),
    import('../../security/targets/url.ts'),
    import('../../security/targets/address.ts'),
  ])
  return createTunnels({
    judgeHost({ host, port }) {
      const verdict = judgeUrl({ url: `http://${host}:${port}/`, method: 'GET', policy: { ...policy, allowedDomains: hosts } })
      if (!verdict.ok) return { ok: false, denied: verdict.rule, message: verdict.reason }
      return verdict.allowed
        ? undefined
        : { ok: false, denied: 'url.not_listed', message: `${host} is not one of the hosts that this command was given` }
    },
    judgeAddress: ({ host, ip }) => judgeConnection({ host, ip, allowedDomains: policy.allowedDomains }),
  })
}

/** Creates the http tool's fetch: the policy guards it, and the first use loads it. */
export function createGet(options: GetOptions): Get {
  return async (...asked) => (await import('./guarded-get.ts')).guardedGet(options)(...asked)
}
