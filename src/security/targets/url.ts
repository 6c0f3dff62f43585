/** Judges a URL by its text; address.ts judges the addresses of its host at connection time. */

import { quote } from '../../kit/text.ts'
import type { Risk } from '../../runtime/event.ts'
import type { Policy } from '../policy.ts'
import { type Refusal, refuse } from '../rules.ts'
import { isListedAddress, judgeAddress, parseAddress } from './address.ts'

/** `url` is the canonical text to fetch, without fragment; `host` has no brackets and no trailing dot. */
export type UrlVerdict =
  | {
      readonly ok: true
      readonly url: string
      readonly method: string
      readonly host: string
      readonly port: number
      readonly allowed: boolean
      readonly reads: boolean
      /** It could take data along: it sends, goes to a host that is not listed, or has a long path and query. */
      readonly carries: boolean
      readonly risk: Risk
      readonly reason: string
    }
  | Refusal

export type UrlPolicy = Pick<Policy, 'allowedDomains' | 'allowedPorts'>

export type UrlQuestion = { readonly url: string; readonly method: string; readonly policy: UrlPolicy }

const reading = ['GET', 'HEAD', 'OPTIONS']
const sending = ['POST', 'PUT', 'PATCH', 'DELETE']

/** Path and query of a request that only reads from a listed host may have so many characters; more of them could carry data away. */
const longestQuestion = 200

/**
 * Pure; never throws. Reading (GET, HEAD, OPTIONS) from an allowed domain is low risk, from other hosts medium, because the query can
 * carry data out. Sending to an allowed domain is medium, to other hosts high.
 */
export function judgeUrl(question: UrlQuestion): UrlVerdict {
  const method = question.method.toUpperCase()
  if (![...reading, ...sending].includes(method))
    return refuse('url.method', `method: ${quote(question.method)} is not one of ${[...reading, ...sending].join(', ')}`)
  const parsed = parse(question.url)
  if (!parsed.ok) return parsed
  const { url, host, port } = parsed
  return wrongHost(question, parsed) ?? wrongPort(question, port) ?? rated({ url, host, port, method, policy: question.policy })
}

type ParsedUrl = { readonly ok: true; readonly url: string; readonly rawHost: string; readonly host: string; readonly port: number }

/** Refuses every text that the WHATWG parser would repair, because two parsers may repair it differently. */
function parse(text: string): ParsedUrl | Refusal {
  const bad = refuse('url.invalid', `url: ${quote(text)} is not a plain absolute URL; write it as https://host/path`)
  if (text.length > 8192 || !text.isWellFormed() || /[\p{Cc}\p{Bidi_Control}\s\\]/u.test(text)) return bad
  const scheme = /^([a-z][a-z\d+.-]*):/i.exec(text)?.[1]?.toLowerCase()
  if (scheme === undefined) return bad
  if (scheme !== 'http' && scheme !== 'https')
    return refuse('url.scheme', `url: ${quote(text)} uses ${scheme}:; only http and https are fetched`)
  const authority = /^[^:]+:\/\/([^/?#]+)/.exec(text)?.[1]
  if (authority === undefined || !URL.canParse(text)) return bad
  if (authority.includes('@')) return refuse('url.userinfo', `url: ${quote(text)} has "@" before the path; remove the user name`)
  return parts(new URL(text), authority.replace(/:\d*$/, ''))
}

function parts(url: URL, rawHost: string): ParsedUrl {
  url.hash = ''
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1').replace(/\.$/, '')
  return { ok: true, url: url.href, rawHost, host, port: Number(url.port) || (url.protocol === 'https:' ? 443 : 80) }
}

function wrongHost(question: UrlQuestion, { rawHost, host }: ParsedUrl): Refusal | undefined {
  if (disguised(rawHost, host))
    return refuse('url.host_spelling', `url: ${quote(question.url)} means the host ${quote(host)}; write that host`)
  if (parseAddress(host)) {
    const verdict = judgeAddress(host)
    return verdict.ok || isListedAddress(host, question.policy.allowedDomains) ? undefined : verdict
  }
  if (isLocalName(host))
    return refuse('url.local_name', `url: ${quote(question.url)} names this machine or its network; only public hosts are fetched`)
}

/** Detects octal, hex or short IPv4, percent-encoding, full-width digits and dots; the parser spells real IDN names as `xn--`. */
function disguised(rawHost: string, host: string): boolean {
  const spelt = rawHost.toLowerCase().replace(/\.$/, '')
  if (!/^[\da-z.:_-]+$/.test(host) || (!host.includes(':') && host.split('.').some((label) => label === ''))) return true
  if (spelt.startsWith('[')) return parseAddress(host) === undefined
  if (spelt === host) return rawHost.endsWith('.') && parseAddress(host) !== undefined
  return !/[^\p{ASCII}]/u.test(spelt) || !/(^|\.)xn--/.test(host)
}

/** A name of one label never leaves the local network; the listed endings are reserved for it (RFC 6761, 6762, 8375, ICANN). */
export function isLocalName(host: string): boolean {
  return !host.includes('.') || /\.(localhost|localdomain|local|internal|intranet|lan|home|corp|private|home\.arpa)$/.test(host)
}

function wrongPort({ url, policy }: UrlQuestion, port: number): Refusal | undefined {
  if (port === 80 || port === 443 || policy.allowedPorts.includes(port)) return
  return refuse('url.port', `url: ${quote(url)} uses port ${port}; only 80, 443 and allowed_ports are`)
}

type Rated = { url: string; host: string; port: number; method: string; policy: UrlPolicy }

function rated({ url, host, port, method, policy }: Rated): UrlVerdict {
  const allowed = isAllowed(host, policy.allowedDomains)
  const reads = reading.includes(method)
  const risk: Risk = allowed ? (reads ? 'low' : 'medium') : reads ? 'medium' : 'high'
  const reason = `${method} to ${host}, which is ${allowed ? '' : 'not '}an allowed domain`
  const { pathname, search } = new URL(url)
  const carries = !(reads && allowed) || pathname.length + search.length > longestQuestion
  return { ok: true, url, method, host, port, allowed, reads, carries, risk, reason }
}

/** Matches exactly, or `*.suffix` at a label boundary. Entries may be IDN; an entry that is not a host matches nothing. */
export function isAllowed(host: string, allowedDomains: readonly string[]): boolean {
  return isListedAddress(host, allowedDomains) || allowedDomains.some((entry) => matches(host, entry))
}

function matches(host: string, entry: string): boolean {
  const wild = entry.startsWith('*.')
  const name = wild ? entry.slice(2) : entry
  if (!/^[^\s/:@?#*\\[\]%]+$/.test(name) || !URL.canParse(`http://${name}`)) return false
  const plain = new URL(`http://${name}`).hostname.replace(/\.$/, '')
  if (parseAddress(plain)) return false
  return wild ? host.endsWith(`.${plain}`) : host === plain
}
