/** Starts git outside the sandbox, with the user's credentials and none of the repository's settings. */

import { ownRemote, type Transfer } from '../../security/command/transfer.ts'
import type { Policy } from '../../security/policy.ts'
import { judgeConnection } from '../../security/targets/address.ts'
import { isUnder } from '../../security/targets/path.ts'
import { isAllowed } from '../../security/targets/url.ts'
import { fixedPath, type SpawnPlan, type SpawnResult, spawnPlain } from '../../tools/process.ts'
import { pin, type Resolve, systemResolve } from '../../workspace/net/pin.ts'

type UserEnv = { readonly [name: string]: string | undefined }

/** Settings with which only git itself runs, its transports, and the credential helpers and the ssh that the user configured. */
const settings = [
  'core.hooksPath=/dev/null',
  'core.fsmonitor=false',
  'core.alternateRefsCommand=true',
  'core.abbrev=no',
  'protocol.allow=never',
  'protocol.https.allow=always',
  'protocol.ssh.allow=always',
  'http.followRedirects=false',
  'submodule.recurse=false',
  'fetch.recurseSubmodules=false',
  'fetch.unpackLimit=1',
  'fetch.writeCommitGraph=false',
  'push.recurseSubmodules=no',
  'push.followTags=false',
  'transfer.bundleURI=false',
  'gc.auto=0',
  'maintenance.auto=false',
]

const passed =
  /^(?:USER|LOGNAME|LANG|LC_\w+|TZ|SSH_AUTH_SOCK|XDG_CONFIG_HOME|XDG_RUNTIME_DIR|DBUS_SESSION_BUS_ADDRESS|(?:https?|no|all)_proxy|SSL_CERT_(?:FILE|DIR)|GNUPGHOME)$/i

type Outside = {
  readonly transfer: Transfer
  readonly executable: string
  readonly folder: string
  readonly policy: Pick<Policy, 'workspace' | 'home' | 'allowedDomains'>
  readonly env: UserEnv
  readonly signal: AbortSignal
  readonly onOutput: SpawnPlan['onOutput']
  readonly resolve?: Resolve
}

/** Never rejects. */
export async function runOutside({
  transfer,
  executable,
  folder,
  policy,
  env,
  signal,
  onOutput,
  resolve = systemResolve,
}: Outside): Promise<SpawnResult> {
  const found = await addressesOf(transfer, policy, { signal, resolve })
  if (!found.ok) return found
  const more = transfer.protocol === 'http' ? ['protocol.http.allow=always'] : []
  const words = [...settings, ...more].flatMap((each) => ['-c', each])
  const own = { ...environment(policy, env), GIT_DIR: folder, ...asVariables([...pinned(transfer, found.ips), ...transfer.settings]) }
  return spawnPlain({ argv: [executable, ...words, ...transfer.words], cwd: folder, env: own, signal, onOutput })
}

/** A name that is not found here may still be known to the user's proxy or ssh; one that means a private address is refused. */
async function addressesOf(
  { host, protocol, port }: Transfer,
  { allowedDomains }: Outside['policy'],
  how: { readonly signal: AbortSignal; readonly resolve: Resolve },
) {
  const url = new URL(`${protocol === 'http' ? 'http' : 'https'}://${host.includes(':') ? `[${host}]` : host}:${port}/`)
  const isLocal = isAllowed(host, allowedDomains) && !host.includes('.')
  const judgeAddress = (to: { readonly host: string; readonly ip: string }) =>
    isLocal ? ({ ok: true } as const) : judgeConnection({ ...to, allowedDomains })
  try {
    const found = await pin({ url, judgeAddress, ...how })
    if (found.ok) return { ok: true, ips: found.ips } as const
    return found.denied === undefined
      ? ({ ok: true, ips: [] } as const)
      : ({ ok: false, message: `${found.denied}: ${found.message}` } as const)
  } catch {
    return { ok: false, message: 'cancelled before it started' } as const
  }
}

/** The user's settings must not rewrite the address again: a rule for the whole address is longer than every other one. */
function pinned({ url, protocol, host, port }: Transfer, ips: readonly string[]): readonly (readonly [string, string])[] {
  const resolved = ips.map((ip) => (ip.includes(':') ? `[${ip}]` : ip)).join(',')
  return [
    [`remote.${ownRemote}.url`, url],
    [`url.${url}.insteadOf`, url],
    [`url.${url}.pushInsteadOf`, url],
    ...(protocol === 'ssh' || resolved === '' ? [] : [['http.curloptResolve', `${host}:${port}:${resolved}`] as const]),
  ]
}

/** Variables, because other users can read the words of a process. */
function asVariables(pairs: readonly (readonly [key: string, value: string])[]): { readonly [name: string]: string } {
  const each = pairs.flatMap(([key, value], at) => [
    [`GIT_CONFIG_KEY_${at}`, key],
    [`GIT_CONFIG_VALUE_${at}`, value],
  ])
  return Object.fromEntries([['GIT_CONFIG_COUNT', String(pairs.length)], ...each])
}

/** Programs of the workspace are never among the user's: its folders are left out of PATH. */
function environment({ workspace, home }: Outside['policy'], env: UserEnv): { readonly [name: string]: string } {
  const passedOn = Object.entries(env).flatMap(([name, value]) => (passed.test(name) && value !== undefined ? [[name, value]] : []))
  const folders = [...(env.PATH ?? '').split(':'), ...fixedPath.split(':')]
  const path = [...new Set(folders.filter((folder) => folder.startsWith('/') && !isUnder(folder, workspace)))].join(':')
  return { ...Object.fromEntries(passedOn), HOME: home, PATH: path, TERM: 'dumb', GIT_TERMINAL_PROMPT: '0', GIT_PAGER: 'cat' }
}
