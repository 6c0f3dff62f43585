/** Resolves a host name to judged addresses; the caller connects to one of these addresses only. Explains network errors. */

import { aborted } from '../../kit/abort.ts'
import { errnoOf } from '../../kit/errors.ts'

type PinQuestion = { readonly url: URL; readonly judgeAddress: JudgeAddress; readonly resolve: Resolve; readonly signal: AbortSignal }

/** One refused address among several refuses the host, because the name server must not choose which address is used. */
export async function pin({ url, judgeAddress, resolve, signal }: PinQuestion): Promise<{ ok: true; ips: readonly string[] } | NetRefusal> {
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1')
  // The URL parser has turned every spelling of an IPv4 address into four decimals, and no other host has digits only. (node:net's isIP
  // would cost 6 ms to load.)
  const ips = host !== url.hostname || /^[\d.]+$/.test(host) ? [host] : await lookUp(host, resolve, signal)
  if (!Array.isArray(ips)) return ips
  for (const ip of ips) {
    const verdict = judgeAddress({ host, ip, port: portOf(url) })
    if (!verdict.ok) return { ok: false, denied: verdict.rule, message: verdict.reason }
  }
  return { ok: true, ips }
}

async function lookUp(host: string, resolve: Resolve, signal: AbortSignal): Promise<string[] | NetRefusal> {
  const unknown: NetRefusal = { ok: false, message: `the host ${JSON.stringify(host)} was not found; check its spelling` }
  try {
    const ips = await Promise.race([resolve(host), aborted(signal)])
    if (ips === undefined) throw signal.reason
    return ips.length === 0 ? unknown : [...ips]
  } catch (error) {
    if (signal.aborted) throw error
    return unknown
  }
}

function portOf(url: URL): number {
  return Number(url.port) || (url.protocol === 'https:' ? 443 : 80)
}

export async function systemResolve(host: string): Promise<string[]> {
  return (await Bun.dns.lookup(host)).map(({ address }) => address)
}

/** The answer of the network gate to the guarded fetch. */
type NetVerdict = { readonly ok: true } | { readonly ok: false; readonly rule: string; readonly reason: string }

/** Called for every hop, before any name is resolved. */
export type JudgeUrl = (input: { readonly url: string; readonly method: string }) => NetVerdict

/** Called for every address of a host name, and for addresses written in the URL. `ip` has no brackets. */
export type JudgeAddress = (input: { readonly host: string; readonly ip: string; readonly port: number }) => NetVerdict

/** @returns all addresses of a host name. May throw. */
export type Resolve = (host: string) => Promise<readonly string[]>

/** `denied` names the rule that refused; without it the request was allowed but failed. */
export type NetRefusal = { readonly ok: false; readonly denied?: string; readonly message: string }

export type Headers = { readonly [name: string]: string }

/** One outgoing request; `headers` have lower-case names. */
export type Outgoing = { readonly url: URL; readonly method: string; readonly headers: Headers; readonly body?: string }

const meanings: { readonly [code: string]: string } = {
  ECONNREFUSED: 'nothing listens there (connection refused)',
  ECONNRESET: 'the server closed the connection before its answer was complete',
  EPIPE: 'the server closed the connection before the request was complete',
  ENETUNREACH: 'the network cannot be reached',
  EHOSTUNREACH: 'the host cannot be reached',
  ETIMEDOUT: 'the host does not answer',
  HPE_HEADER_OVERFLOW: 'its headers are larger than 32 KiB',
  ERR_INVALID_CHAR: 'a request header holds a character that HTTP does not allow',
  ERR_HTTP_INVALID_HEADER_VALUE: 'a request header has no value',
  ERR_INVALID_HTTP_TOKEN: 'the method or a header name is not an HTTP token',
  Z_DATA_ERROR: 'its compressed body is damaged',
  Z_BUF_ERROR: 'its compressed body is incomplete',
}

/** Explains a network error in words that a person or a model can act on. */
export function explain(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const code = errnoOf(error) ?? ''
  if (meanings[code] !== undefined) return meanings[code]
  if (code.startsWith('HPE_')) return `its answer is not HTTP (${error.message})`
  if (/CERT|TLS|SSL|SELF_SIGNED|ALTNAME/.test(code)) return `its TLS certificate or handshake was refused (${code}: ${error.message})`
  return error.message
}
