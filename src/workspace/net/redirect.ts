/** Builds the next request of a redirect: its method, whether it carries the body, and never a credential for another origin. */

import type { Headers, NetRefusal, Outgoing } from './pin.ts'

/** The only headers of the caller that another origin gets; a key may be in a header of any other name. */
const harmless = new Set(['accept', 'accept-encoding', 'accept-language', 'range', 'user-agent'])

export type Hop = { readonly ok: true; readonly next: Outgoing }

export function isRedirect(status: number): boolean {
  return [301, 302, 303, 307, 308].includes(status)
}

export function follow({ from, status, location }: { from: Outgoing; status: number; location: string }): Hop | NetRefusal {
  const target = URL.parse(location, from.url.href)
  if (target === null)
    return { ok: false, message: `${from.url.origin} redirects to ${JSON.stringify(location.slice(0, 200))}, which is not a URL` }
  const same = target.origin === from.url.origin
  const plain = from.method === 'GET' || from.method === 'HEAD'
  const headers = same ? from.headers : only(from.headers)
  if (plain) return { ok: true, next: { url: target, method: from.method, headers } }
  if (status === 307 || status === 308) return repeated({ from, target, same })
  // As browsers do: after a form was accepted, a plain GET reads the page that the response names.
  return { ok: true, next: { url: target, method: 'GET', headers: only(headers, ['content-type']) } }
}

/** A body that was sent to one origin must not go to another. */
function repeated({ from, target, same }: { readonly from: Outgoing; readonly target: URL; readonly same: boolean }): Hop | NetRefusal {
  if (same) return { ok: true, next: { ...from, url: target } }
  const message = `${from.url.origin} wants the ${from.method} repeated at ${target.origin}; send it there directly if that is meant`
  return { ok: false, denied: 'url.redirect', message }
}

function only(headers: Headers, without?: readonly string[]): Headers {
  const keep = (name: string) => (without === undefined ? harmless.has(name) : !without.includes(name))
  return Object.fromEntries(Object.entries(headers).filter(([name]) => keep(name)))
}
