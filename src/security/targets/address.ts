/** Decides which internet addresses a tool may connect to: only public ones, whatever their spelling. */

import { quote } from '../../kit/text.ts'
import { type Refusal, refuse } from '../rules.ts'

/** Every range that is not public unicast, with its kind (IANA special-purpose registries, and one cloud host's service address). */
const ranges: readonly (readonly [cidr: string, word: string])[] = [
  ['0.0.0.0/8', 'unspecified'],
  ['10.0.0.0/8', 'private'],
  ['100.64.0.0/10', 'carrier-grade NAT'],
  ['127.0.0.0/8', 'loopback'],
  ['168.63.129.16/32', 'a cloud host service'],
  ['169.254.0.0/16', 'link-local'],
  ['172.16.0.0/12', 'private'],
  ['192.0.0.0/24', 'protocol-reserved'],
  ['192.0.2.0/24', 'documentation'],
  ['192.88.99.0/24', '6to4 relay'],
  ['192.168.0.0/16', 'private'],
  ['198.18.0.0/15', 'benchmarking'],
  ['198.51.100.0/24', 'documentation'],
  ['203.0.113.0/24', 'documentation'],
  ['224.0.0.0/4', 'multicast'],
  ['255.255.255.255/32', 'broadcast'],
  ['240.0.0.0/4', 'reserved'],
  ['::/128', 'unspecified'],
  ['::1/128', 'loopback'],
  ['::ffff:0:0/96', 'IPv4-mapped'],
  ['::/96', 'IPv4-compatible'],
  ['::ffff:0:0:0/96', 'IPv4-translated'],
  ['64:ff9b::/96', 'NAT64'],
  ['64:ff9b:1::/48', 'local NAT64'],
  ['100::/64', 'discard'],
  ['2001::/32', 'Teredo'],
  ['2001::/23', 'protocol-reserved'],
  ['2001:db8::/32', 'documentation'],
  ['2002::/16', '6to4'],
  ['3fff::/20', 'documentation'],
  ['fc00::/7', 'unique local'],
  ['fe80::/10', 'link-local'],
  ['fec0::/10', 'site-local'],
  ['ff00::/8', 'multicast'],
]

export type Address = { readonly bits: 32 | 128; readonly value: bigint }

export type AddressVerdict = { readonly ok: true } | Refusal

/** Takes an address as a resolver returns it. Refuses any text that does not parse (a zone, octal, a name). */
export function judgeAddress(ip: string): AddressVerdict {
  const address = parseAddress(ip)
  if (!address) return refuse('url.private_address', `address: ${quote(ip)} is not a plain IPv4 or IPv6 address`)
  const word = kindOf(address)
  if (word === undefined) return { ok: true }
  return refuse('url.private_address', `address: ${quote(ip)} is ${word}; only public addresses are fetched`)
}

/**
 * Judges one connection of `host`. An address that the operator listed exactly in allowed_domains is allowed when it is the host itself,
 * never when another name resolves to it (rebinding).
 */
export function judgeConnection(to: { host: string; ip: string; allowedDomains: readonly string[] }): AddressVerdict {
  const host = to.host.replace(/^\[(.*)\]$/, '$1')
  return sameAddress(host, to.ip) && isListedAddress(host, to.allowedDomains) ? { ok: true } : judgeAddress(to.ip)
}

export function isListedAddress(host: string, allowedDomains: readonly string[]): boolean {
  return allowedDomains.some((entry) => sameAddress(entry.replace(/^\[(.*)\]$/, '$1'), host))
}

function sameAddress(one: string, other: string): boolean {
  const [a, b] = [parseAddress(one), parseAddress(other)]
  return a !== undefined && b !== undefined && a.bits === b.bits && a.value === b.value
}

/** @returns undefined for a public unicast address, else its kind. IPv6 outside 2000::/3 is not in use. */
function kindOf(address: Address): string | undefined {
  const found = ranges.find(([cidr]) => contains(cidr, address))
  if (found) return found[1]
  return address.bits === 128 && address.value >> 125n !== 1n ? 'reserved' : undefined
}

/** `cidr`: an address, a slash and how many of its bits count. */
export function contains(cidr: string, address: Address): boolean {
  const [base = '', length = ''] = cidr.split('/')
  const range = parseAddress(base)
  if (range?.bits !== address.bits) return false
  const shift = BigInt(address.bits - Number(length))
  return range.value >> shift === address.value >> shift
}

/** Strict: four decimal numbers without leading zeros, or RFC 4291 IPv6 without brackets or zone. */
export function parseAddress(text: string): Address | undefined {
  const value = text.includes(':') ? parseV6(text) : parseV4(text)
  return value === undefined ? undefined : { bits: text.includes(':') ? 128 : 32, value }
}

function parseV4(text: string): bigint | undefined {
  const parts = text.split('.')
  if (parts.length !== 4 || !parts.every((part) => /^(0|[1-9]\d{0,2})$/.test(part) && Number(part) <= 255)) return
  return parts.reduce((value, part) => (value << 8n) | BigInt(part), 0n)
}

function parseV6(text: string): bigint | undefined {
  const halves = withoutDots(text)?.split('::')
  if (!halves || halves.length > 2) return
  const [head = [], tail] = halves.map((half) => (half === '' ? [] : half.split(':')))
  const missing = 8 - head.length - (tail?.length ?? 0)
  if (tail === undefined ? missing !== 0 : missing < 1) return
  const groups = [...head, ...Array.from({ length: missing }, () => '0'), ...(tail ?? [])]
  if (!groups.every((group) => /^[\da-f]{1,4}$/i.test(group))) return
  return groups.reduce((value, group) => (value << 16n) | BigInt(`0x${group}`), 0n)
}

/** Rewrites a dotted ending (`::ffff:1.2.3.4`) as two groups. */
function withoutDots(text: string): string | undefined {
  const dotted = /^(.*:)([^:]*\.[^:]*)$/.exec(text)
  if (!dotted) return text
  const value = parseV4(dotted[2] ?? '')
  return value === undefined ? undefined : `${dotted[1]}${(value >> 16n).toString(16)}:${(value & 0xffffn).toString(16)}`
}
