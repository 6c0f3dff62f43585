/**
 * Simulates Discord's REST API, version 10, on loopback: messages, typing, rate limits per route and global, and refusals in Discord's
 * wording.
 */

export type Post = { readonly channel: string; readonly body: Record<string, unknown>; readonly authorization: string | null }
export type Message = { readonly id: string; readonly channel: string; readonly content: string; readonly nonce: unknown }

export type RestSettings = {
  readonly token: string
  readonly gatewayUrl: () => string
  /** Existing channels; the bot may not write in the `closed` ones. */
  readonly channels: readonly string[]
  readonly closed: readonly string[]
  /** Messages per channel and window. */
  readonly bucket: { readonly limit: number; readonly windowMs: number }
  readonly accepted: (message: Message) => void
  readonly nextId: () => string
}

/**
 * Replaces an answer. `stage: 'after'` carries out the request first and still gives this answer: a lost reply. `'never'` gives no answer.
 */
export type Mishap = {
  readonly status: number
  readonly body?: unknown
  readonly headers?: Record<string, string>
  readonly stage?: 'before' | 'after' | 'never'
}

export function createRest(settings: RestSettings) {
  const seen = {
    posts: [] as Post[],
    messages: [] as Message[],
    typing: [] as string[],
    paths: [] as string[],
    agents: new Set<string | null>(),
  }
  const trouble = { next: [] as Mishap[], gateway: [] as Mishap[], remaining: 1000, resetAfterMs: 86_400_000 }
  const buckets = new Map<string, { left: number; resets: number }>()
  const all = { until: 0 }

  async function handle(request: Request): Promise<Response> {
    const { pathname } = new URL(request.url)
    seen.paths.push(`${request.method} ${pathname}`)
    seen.agents.add(request.headers.get('user-agent'))
    if (pathname === '/api/v10/gateway') return Response.json({ url: settings.gatewayUrl() })
    if (request.headers.get('authorization') !== `Bot ${settings.token}`) return failure(401, 0, '401: Unauthorized')
    if (pathname === '/api/v10/gateway/bot') return gatewayBot()
    const [, channel = '', what] = /^\/api\/v10\/channels\/([^/]+)\/(messages|typing)$/.exec(pathname) ?? []
    if (what === undefined || request.method !== 'POST') return failure(404, 0, '404: Not Found')
    return what === 'typing' ? typing(channel) : await post(request, channel)
  }

  function gatewayBot(): Response {
    const mishap = trouble.gateway.shift()
    if (mishap !== undefined) return answer(mishap)
    const session_start_limit = { total: 1000, remaining: trouble.remaining, reset_after: trouble.resetAfterMs, max_concurrency: 1 }
    return Response.json({ url: settings.gatewayUrl(), shards: 1, session_start_limit })
  }

  function typing(channel: string): Response {
    seen.typing.push(channel)
    return missing(channel) ?? new Response(null, { status: 204 })
  }

  async function post(request: Request, channel: string): Promise<Response> {
    const body: Record<string, unknown> = Object(await request.json())
    seen.posts.push({ channel, body, authorization: request.headers.get('authorization') })
    const mishap = trouble.next.shift()
    if (mishap?.stage === 'never') await new Promise(() => {})
    if (mishap !== undefined && mishap.stage !== 'after') return answer(mishap)
    const done = limited(channel) ?? missing(channel) ?? malformed(body) ?? accept(channel, body)
    return mishap === undefined ? done : answer(mishap)
  }

  function limited(channel: string): Response | undefined {
    if (Date.now() < all.until)
      return tooMany((all.until - Date.now()) / 1000, { 'x-ratelimit-global': 'true', 'x-ratelimit-scope': 'global' })
    const bucket = take(channel)
    if (bucket.left >= 0) return undefined
    return tooMany((bucket.resets - Date.now()) / 1000, { ...headersOf(channel), 'x-ratelimit-scope': 'user' })
  }

  function take(channel: string) {
    const old = buckets.get(channel)
    const bucket =
      old !== undefined && Date.now() < old.resets ? old : { left: settings.bucket.limit, resets: Date.now() + settings.bucket.windowMs }
    bucket.left -= 1
    buckets.set(channel, bucket)
    return bucket
  }

  function headersOf(channel: string): Record<string, string> {
    const { left, resets } = buckets.get(channel) ?? { left: 0, resets: 0 }
    return {
      'x-ratelimit-limit': String(settings.bucket.limit),
      'x-ratelimit-remaining': String(Math.max(0, left)),
      'x-ratelimit-reset': (resets / 1000).toFixed(3),
      'x-ratelimit-reset-after': Math.max(0, (resets - Date.now()) / 1000).toFixed(3),
      'x-ratelimit-bucket': 'abcd1234',
    }
  }

  function missing(channel: string): Response | undefined {
    if (!settings.channels.includes(channel) && !settings.closed.includes(channel)) return failure(404, 10003, 'Unknown Channel')
    return settings.closed.includes(channel) ? failure(403, 50001, 'Missing Access') : undefined
  }

  function accept(channel: string, body: Record<string, unknown>): Response {
    const twin = body.enforce_nonce === true && seen.messages.find((one) => one.channel === channel && one.nonce === body.nonce)
    const message = twin || { id: settings.nextId(), channel, content: String(body.content), nonce: body.nonce }
    if (!twin) {
      seen.messages.push(message)
      settings.accepted(message)
    }
    return Response.json({ ...message, channel_id: channel, type: 0 }, { headers: headersOf(channel) })
  }

  return {
    handle,
    seen,
    trouble,
    limitAll(ms: number) {
      all.until = Date.now() + ms
    },
  }
}

function malformed({ content, nonce }: Record<string, unknown>): Response | undefined {
  if (typeof content !== 'string' || content.trim() === '') return failure(400, 50006, 'Cannot send an empty message')
  if (typeof nonce === 'string' && nonce.length > 25) return invalid('nonce', 'Must be 25 or fewer in length.')
  return [...content].length > 2000 ? invalid('content', 'Must be 2000 or fewer in length.') : undefined
}

function invalid(field: string, message: string): Response {
  const errors = { [field]: { _errors: [{ code: 'BASE_TYPE_MAX_LENGTH', message }] } }
  return Response.json({ code: 50035, message: 'Invalid Form Body', errors }, { status: 400 })
}

function failure(status: number, code: number, message: string): Response {
  return Response.json({ message, code }, { status })
}

/** The header has whole seconds, the body the exact time. */
function tooMany(seconds: number, headers: Record<string, string>): Response {
  const body = { message: 'You are being rate limited.', retry_after: seconds, global: 'x-ratelimit-global' in headers }
  return Response.json(body, { status: 429, headers: { 'retry-after': String(Math.ceil(seconds)), ...headers } })
}

function answer({ status, body, headers = {} }: Mishap): Response {
  return typeof body === 'string' ? new Response(body, { status, headers }) : Response.json(body ?? {}, { status, headers })
}
