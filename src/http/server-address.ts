/** Tells which addresses reach only this machine, and under which names a server is known there. */

import { networkInterfaces } from 'node:os'

export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127\./.test(host)
}

export function isEveryAddress(host: string): boolean {
  return host === '0.0.0.0' || host === '::'
}

/** The names in the Host header that mean this server. An address cannot be rebound by a foreign name server, as a name can. */
export function namesOf(host: string): readonly string[] {
  const own = ['127.0.0.1', 'localhost', '[::1]']
  if (!isEveryAddress(host)) return [...new Set([nameOf(host), ...own])]
  const all = Object.values(networkInterfaces()).flatMap((each) => each ?? [])
  return [...new Set([...own, ...all.map(({ address }) => nameOf(address))])]
}

/** An IPv6 address stands in brackets in a URL. */
export function nameOf(host: string): string {
  return host.includes(':') ? `[${host.toLowerCase()}]` : host.toLowerCase()
}

/** Returns where this machine reaches a server with these settings. */
export function localUrl({ host, port, tlsCert }: { readonly host: string; readonly port: number; readonly tlsCert?: string }): string {
  const here = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host
  return `${tlsCert === undefined ? 'http' : 'https'}://${nameOf(here)}:${port}`
}
