/** Sends model requests through Bun's fetch, but only to the origin that the operator configured. */

import { isRedirect } from './redirect.ts'

/**
 * `baseUrl` is trusted (loopback is allowed), so no address is judged. Rejects a request to another origin and a redirect to one. Follows
 * a redirect within the origin when the request can be repeated unchanged; `redirect: 'manual'` returns it to the caller.
 * @throws TypeError at once when `baseUrl` is not an http(s) URL
 */
export function createProviderFetch({ baseUrl }: { readonly baseUrl: string }): typeof fetch {
  const base = URL.parse(baseUrl)
  if (base === null || !['http:', 'https:'].includes(base.protocol))
    throw new TypeError(`base_url: ${JSON.stringify(baseUrl)} is not an http(s) URL`)
  const send = async (input: string | URL | Request, init: RequestInit = {}) => {
    const url = typeof input === 'string' ? input : addressOf(input)
    check(base.origin, url)
    const answer = await fetch(input, { ...init, redirect: 'manual' })
    return init.redirect === 'manual' ? answer : onward({ origin: base.origin, url, input, init }, answer)
  }
  return Object.assign(send, { preconnect: fetch.preconnect })
}

function addressOf(input: URL | Request): string {
  return input instanceof Request ? input.url : input.href
}

const MAX_REDIRECTS = 3

type SentRequest = { readonly origin: string; readonly url: string; readonly input: string | URL | Request; readonly init: RequestInit }

async function onward({ origin, url, input, init }: SentRequest, first: Response): Promise<Response> {
  let answer = first
  let at = url
  for (let hop = 0; isRedirect(answer.status); hop++) {
    const location = answer.headers.get('location')
    if (location === null) return answer
    await answer.body?.cancel()
    const target = new URL(location, at).href
    check(origin, target)
    if (hop >= MAX_REDIRECTS) throw new Error(`${url} redirects more than ${MAX_REDIRECTS} times`)
    if (!isRepeatable(input, init, answer.status)) throw new Error(`${at} redirects to ${target}; set base_url to the new place`)
    at = target
    answer = await fetch(target, { ...init, redirect: 'manual' })
  }
  return answer
}

/**
 * A GET may be redirected anywhere in the origin. A body is sent again only when the server asks for it (307, 308) and the body is still
 * available.
 */
function isRepeatable(input: string | URL | Request, init: RequestInit, status: number): boolean {
  if (input instanceof Request) return false
  const { method = 'GET', body } = init
  if (method.toUpperCase() === 'GET') return true
  return (status === 307 || status === 308) && (body === undefined || body === null || typeof body === 'string')
}

function check(origin: string, url: string): void {
  // The common case: avoids parsing the URL again.
  if (url.startsWith(`${origin}/`)) return
  const target = new URL(url).origin
  if (target !== origin) throw new Error(`refused: ${target} is not the configured base_url origin ${origin}`)
}

/**
 * Opens the connection that a request will need while the program is still starting; the next request to that origin uses it. Errors are
 * ignored here, because that request will meet and report them; for example, this version of Bun refuses the default ports. Does nothing
 * where a proxy is configured, because the connection would bypass it.
 */
export function preconnectTo(url: string, env: { readonly [name: string]: string | undefined }): void {
  if (proxies.some((name) => env[name])) return
  try {
    fetch.preconnect(url)
  } catch {}
}

const proxies = ['http_proxy', 'https_proxy', 'HTTP_PROXY', 'HTTPS_PROXY', 'all_proxy', 'ALL_PROXY']
