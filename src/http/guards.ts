/** Refuses requests that a foreign page, a rebound name or a confused proxy sends, before anything else looks at them. */

import { HttpError } from './http-error.ts'

export type Places = {
  /** The values of Host that are ours, in lower case, each with its port unless it is the usual one. */
  readonly hosts: ReadonlySet<string>
  /** The values of Origin that are ours. */
  readonly origins: ReadonlySet<string>
}

export type PlaceOptions = {
  readonly names: readonly string[]
  readonly port: number
  readonly secure: boolean
  /** Names under which a proxy in front of this server is reached, with the port if people type one. */
  readonly proxies?: readonly string[]
}

export function placesOf({ names, port, secure, proxies = [] }: PlaceOptions): Places {
  const usual = secure ? 443 : 80
  const own = names.flatMap((name) => [...(port === usual ? [name] : []), `${name}:${port}`])
  const [scheme, others] = [secure ? 'https' : 'http', proxies.map((name) => name.toLowerCase())]
  return {
    hosts: new Set([...own, ...others]),
    origins: new Set([...own.map((host) => `${scheme}://${host}`), ...others.flatMap((host) => [`http://${host}`, `https://${host}`])]),
  }
}

/** @throws HttpError for a request that is not meant for this server, or that a page of another site sent */
export function assertOurs({ headers, url }: Pick<Request, 'headers' | 'url'>, { hosts, origins }: Places, hint: string): void {
  const host = headers.get('host')
  // Without a host Bun leaves only the path in the url.
  if (host === null || host === '' || !/^https?:/.test(url))
    throw new HttpError(400, 'no_host', 'the request names no host: send HTTP/1.1 with exactly one Host header')
  if (!hosts.has(host.toLowerCase()))
    throw new HttpError(
      403,
      'foreign_host',
      `the host ${JSON.stringify(host.slice(0, 100))} is not one of this server; use ${[...hosts][0]}, or ${hint}`,
    )
  const origin = headers.get('origin')
  if (origin !== null && !origins.has(origin.toLowerCase()))
    throw new HttpError(403, 'foreign_origin', `pages of ${JSON.stringify(origin.slice(0, 100))} may not talk to this server`)
  const site = headers.get('sec-fetch-site')
  if (site === 'cross-site' || site === 'same-site')
    throw new HttpError(403, 'foreign_origin', 'pages of other sites may not talk to this server')
}

/**
 * Returns the URL with its escaped slashes unescaped: an id may contain one. @throws HttpError for a path with parts that some programs
 * read in another way than others
 */
export function plainUrl(url: string): string {
  if (/%00/.test(url)) throw new HttpError(400, 'bad_path', 'the URL has a NUL character; take it out')
  const path = url.slice(url.indexOf('/', url.indexOf('://') + 3)).split(/[?#]/)[0] ?? ''
  if (/%2e|%5c|\\|\/\/|[^\x21-\x7e]/i.test(path))
    throw new HttpError(400, 'bad_path', 'the path has an escaped or doubled separator; write it without')
  if (!/%2f/i.test(path)) return url
  const unescaped = path.replace(/%2f/gi, '/')
  if (/\/\.{1,2}(?:\/|$)/.test(unescaped))
    throw new HttpError(400, 'bad_path', 'the path leads elsewhere once its separators are unescaped; write it without "." and ".."')
  return url.replace(path, unescaped)
}
