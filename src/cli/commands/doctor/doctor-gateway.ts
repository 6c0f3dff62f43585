/** Checks for `doctor` the gateway: its address, its certificate, its names, who has a token, and the files of the dashboard. */

import { certificateEnd, readTokenFile, tlsOf } from '../../../channels/http/access.ts'
import type { httpRows } from '../../../channels/http/settings.ts'
import { askGateway } from '../../../host/access/gateway-probe.ts'
import { FailureError } from '../../../host/failure.ts'
import { isLoopback, localUrl } from '../../../http/listen.ts'
import type { Values } from '../../../kit/settings.ts'
import { count } from '../../../kit/text.ts'
import type { Memory } from '../../../memory/memory.ts'
import { bad, type Finding, note, ok } from './doctor-home.ts'

const what = 'gateway'
const makeToken = 'make one: braidclaw token new me --scope admin'
const restart = 'then restart the server: braidclaw service restart'

type GatewayOptions = {
  /** Absent when there is no database yet. */
  readonly memory: Memory | undefined
  /** Those of the installed service, when there is one. */
  readonly settings: Values<typeof httpRows>
  /** Tells whether a service is installed. */
  readonly installed: boolean
}

/** Reports nothing about a gateway that nobody switched on. */
export async function gatewayFindings({ memory, settings, installed }: GatewayOptions): Promise<Finding[]> {
  const { host, port, tlsCert, tlsKey, tokenFile, allowedHosts } = settings
  const isWanted = settings.enabled || installed || tlsCert !== undefined || tlsKey !== undefined || !isLoopback(host)
  if (!isWanted) return []
  return [
    ...(await placeFindings(port === 0 ? undefined : localUrl(settings))),
    ...tlsFindings(settings),
    ...nameFindings(allowedHosts),
    ...tokenFindings({ memory, host, tokenFile }),
    ...openFindings(host, tlsCert !== undefined),
  ]
}

async function placeFindings(url: string | undefined): Promise<Finding[]> {
  if (url === undefined) return [ok(what, 'port 0: any free port')]
  const answer = await askGateway(url)
  if (answer.kind === 'ours') return [ok(what, `our server answers at ${url} (version ${answer.version})`)]
  if (answer.kind === 'nothing') return [ok(what, `${url} is free; no server runs there now`)]
  const remedy = ['stop it, or choose another port: [channels.http] port = …', 'for the service: braidclaw service install --port PORT']
  return [bad(what, `another program listens at ${url}`, ...remedy)]
}

const soonMs = 14 * 86_400_000

function tlsFindings(settings: { readonly tlsCert?: string; readonly tlsKey?: string }): Finding[] {
  try {
    const files = tlsOf(settings)
    if (!files) return []
    const end = certificateEnd(files)
    const day = new Date(end).toISOString().slice(0, 10)
    const remedy = ['put a new certificate and its key into the two files', restart]
    if (end <= Date.now()) return [bad(what, `the certificate ${settings.tlsCert} expired on ${day}`, ...remedy)]
    const says = `TLS until ${day}: ${settings.tlsCert}`
    return [end - Date.now() < soonMs ? note(what, says, ...remedy) : ok(what, says)]
  } catch (error) {
    if (!(error instanceof FailureError)) throw error
    const command = 'openssl req -x509 -newkey rsa:2048 -nodes -days 365 -subj /CN=localhost -keyout key.pem -out cert.pem'
    return [bad(what, error.message, `a pair to try with: ${command}`)]
  }
}

/** A browser sends the bare name, in lower case, with the port unless it is the usual one. */
function nameFindings(names: readonly string[]): Finding[] {
  const wrong = names.filter((name) => !/^(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:\d{1,5})?$/i.test(name))
  if (wrong.length === 0) return []
  const shown = wrong.map((name) => JSON.stringify(name)).join(', ')
  const says = `channels.http.allowed_hosts: ${shown} can never be the name that a client sends`
  const examples = '"agent.example.org", "agent.example.org:8443"; no "*", no "https://"'
  return [bad(what, says, `write the bare name, with the port if people type one: ${examples}`)]
}

type Tokens = { readonly memory: Memory | undefined; readonly host: string; readonly tokenFile: string | undefined }

function tokenFindings({ memory, host, tokenFile }: Tokens): Finding[] {
  const tokens = memory?.tokens.list().filter(({ revoked }) => revoked === undefined) ?? []
  const admins = tokens.filter(({ scopes }) => scopes.includes('admin')).length
  const holders = tokenFile === undefined ? tokens.length : tokens.length + 1
  try {
    if (tokenFile !== undefined) readTokenFile(tokenFile)
  } catch (error) {
    if (!(error instanceof FailureError)) throw error
    return [bad('tokens', `channels.http.token_file: ${error.message}`, makeToken)]
  }
  if (holders > 0) {
    const says = `${count(tokens.length, 'token')} in force, ${admins} with scope admin${tokenFile === undefined ? '' : `, and the one of ${tokenFile}`}`
    return [ok('tokens', says, 'revoke what nobody uses: braidclaw token list, braidclaw token revoke NAME')]
  }
  const says = isLoopback(host)
    ? 'nobody has a token, so every request is refused'
    : `nobody has a token, so the server does not start on ${host}`
  return [bad('tokens', says, makeToken)]
}

function openFindings(host: string, isSecure: boolean): Finding[] {
  if (isLoopback(host) || isSecure) return []
  const says = `channels.http.host = "${host}" without TLS: tokens and answers can be read on the way by whoever is on that network`
  const proxy = 'or listen on 127.0.0.1 behind a proxy that speaks HTTPS, with its name in allowed_hosts'
  return [bad(what, says, 'name a certificate: [channels.http] tls_cert = … and tls_key = …', proxy)]
}

/** Checks for `doctor` that the files of the dashboard are there, or can be built from the sources. */
type Files = () => Promise<ReadonlyMap<string, { readonly gzip: Uint8Array }>>

export async function dashboardFindings(files: Files): Promise<Finding[]> {
  try {
    const found = await files()
    const bytes = [...found.values()].reduce((sum, { gzip }) => sum + gzip.byteLength, 0)
    if (found.has('/')) return [ok('dashboard', `${found.size} files, ${Math.ceil(bytes / 1024)} KiB compressed`)]
    return [broken('it has no first page')]
  } catch (error) {
    return [broken(error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error))]
  }
}

function broken(why: string): Finding {
  return bad('dashboard', `the page cannot be shown: ${why}`, 'install BraidClaw again with its packages: npm ci')
}
