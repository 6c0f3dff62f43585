/** Sends a request to the vendor, reads its answer up to a limit, and hides what only the operator may see: the key, and what the vendor says about it. */

import { unauthorized } from '../../http/callers.ts'
import { HttpError } from '../../http/http-error.ts'
import type { Plane, PlaneOptions } from '../contract/plane.ts'

type UpstreamRequest = {
  readonly deps: Pick<PassThroughDeps, 'fetchFor'>
  readonly request: Request
  readonly upstream: Upstream
  readonly path: string
  readonly method: 'GET' | 'POST'
  readonly body: string
  readonly signal: AbortSignal
}

/** @throws HttpError 502 when the vendor refuses the operator's key; what fetch throws when there is no connection */
export async function askUpstream({ deps, request, upstream, path, method, body, signal }: UpstreamRequest): Promise<Response> {
  const send = deps.fetchFor(upstream.baseUrl)
  const answer = await send(`${upstream.baseUrl}${path}${queryOf(request.url)}`, {
    ...{ method, headers: vendorHeaders(request.headers, upstream), signal },
    body: method === 'POST' ? body : undefined,
    // A model may think for a long time before its first word.
    ...{ timeout: false },
  })
  if (answer.status !== 401 && answer.status !== 403) return answer
  await answer.body?.cancel()
  throw new HttpError(
    502,
    'upstream_key',
    `the ${upstream.vendor} API refused the key of the control plane (${answer.status}); its operator must set CONTROLPLANE_${upstream.vendor.toUpperCase()}_KEY`,
  )
}

/** Passes on `beta`, which Anthropic's clients send in the query. */
function queryOf(url: string): string {
  return new URL(url).searchParams.get('beta') === 'true' ? '?beta=true' : ''
}

/** No model answers with more in one document. */
export const maxDocumentBytes = 67_108_864

/**
 * Reads up to a limit, so that an endless answer, or one that unpacks to much more than was sent, does not fill the memory. `isWhole` is false
 * when there was more and the connection was closed.
 */
export async function readText({ body }: Response, most: number) {
  const pieces: Uint8Array[] = []
  let bytes = 0
  for await (const piece of body ?? []) {
    pieces.push(piece.subarray(0, most - bytes))
    bytes += piece.byteLength
    if (bytes > most) break
  }
  return { text: new TextDecoder().decode(Buffer.concat(pieces)), bytes, isWhole: bytes <= most }
}

/** Removes the key from a text of the vendor, which may repeat it. */
export function redactorOf({ key }: Upstream): (text: string) => string {
  return (text) => (key.length >= 8 && text.includes(key) ? text.replaceAll(key, '[REDACTED]') : text)
}

export type PassThroughDeps = {
  readonly plane: {
    readonly access: Pick<Plane['access'], 'callerOf'>
    readonly tasks: Pick<Plane['tasks'], 'get'>
    readonly budget: Pick<Plane['budget'], 'remaining' | 'reserve' | 'settle'>
  }
  readonly upstreams: Upstreams
  /** Returns the guarded fetch for this base URL (createProviderFetch). */
  readonly fetchFor: (baseUrl: string) => typeof fetch
  readonly sleep: (ms: number) => Promise<void>
  readonly now: () => number
  readonly log: PlaneOptions['log']
}

/** Excludes commas: a header that was sent twice arrives joined by one. */
const tokenPattern = /^[\x21-\x2b\x2d-\x7e]{1,512}$/

/** Reads the run token from the bearer, or where Anthropic's clients put their key. @throws HttpError 401 */
export function runTokenOf(headers: Headers): string {
  const [, bearer] = /^Bearer +(\S+) *$/i.exec(headers.get('authorization') ?? '') ?? []
  const token = bearer ?? headers.get('x-api-key') ?? ''
  if (!tokenPattern.test(token)) throw unauthorized('send the run token as "Authorization: Bearer TOKEN", or as "x-api-key: TOKEN"')
  return token
}

/** Other headers of a runner could name another account, or change what is paid. */
const passedOn = ['anthropic-version', 'anthropic-beta', 'openai-beta', 'accept']

function vendorHeaders(from: Headers, { vendor, key }: Upstream): Headers {
  const headers = new Headers({ 'content-type': 'application/json', 'user-agent': 'braidclaw-control' })
  for (const name of passedOn) {
    const value = from.get(name)
    if (value !== null) headers.set(name, value)
  }
  if (vendor === 'anthropic' && !headers.has('anthropic-version')) headers.set('anthropic-version', '2023-06-01')
  if (key !== '' && vendor === 'anthropic') headers.set('x-api-key', key)
  if (key !== '' && vendor === 'openai') headers.set('authorization', `Bearer ${key}`)
  return headers
}

/** Other headers reveal facts about the operator's account. */
const passedBack = ['content-type', 'retry-after', 'retry-after-ms', 'request-id', 'x-request-id', 'x-should-retry']

export function clientHeaders(from: Headers): Record<string, string> {
  return Object.fromEntries(passedBack.flatMap((name) => (from.has(name) ? [[name, from.get(name) ?? '']] : [])))
}

export type Vendor = 'openai' | 'anthropic'

/** `baseUrl` ends with the version of the API, without a slash. */
export type Upstream = { readonly vendor: Vendor; readonly baseUrl: string; readonly key: string }

type Upstreams = { readonly [vendor in Vendor]?: Upstream }

const vendorUrls = { openai: 'https://api.openai.com/v1', anthropic: 'https://api.anthropic.com/v1' } as const

/** Uses an upstream without a key only when its URL is set: a private model server often needs none. @throws TypeError for a wrong URL */
export function upstreamsOf(env: { readonly [name: string]: string | undefined }): Upstreams {
  const openai = upstreamOf('openai', env.CONTROLPLANE_OPENAI_URL, env.CONTROLPLANE_OPENAI_KEY ?? env.OPENAI_API_KEY)
  const anthropic = upstreamOf('anthropic', env.CONTROLPLANE_ANTHROPIC_URL, env.CONTROLPLANE_ANTHROPIC_KEY ?? env.ANTHROPIC_API_KEY)
  return { openai, anthropic }
}

function upstreamOf(vendor: Vendor, url = '', key = ''): Upstream | undefined {
  if (url === '' && key === '') return undefined
  return { vendor, baseUrl: versioned(url === '' ? vendorUrls[vendor] : url, vendor), key }
}

/** Adds the version to a base URL without one: vendors' own libraries accept both forms. */
function versioned(url: string, vendor: Vendor): string {
  const parsed = URL.parse(url)
  if (parsed === null || !['http:', 'https:'].includes(parsed.protocol))
    throw new TypeError(`CONTROLPLANE_${vendor.toUpperCase()}_URL: ${JSON.stringify(url)} is not an http(s) URL`)
  const base = `${parsed.origin}${parsed.pathname}`.replace(/\/+$/, '')
  return /\/v\d+[a-z]*$/.test(base) ? base : `${base}/v1`
}
