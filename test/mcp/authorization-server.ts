/** An authorization server and the MCP server that it protects, on one port of loopback; and a browser whose user always agrees. */

import { createHash, type KeyObject, randomUUID, verify } from 'node:crypto'

type Changes = {
  /** Changes what its metadata says. */
  readonly metadata?: (own: { [name: string]: unknown }, origin: string) => object
  readonly resource?: (own: { [name: string]: unknown }, origin: string) => object
  /** Replaces the answer to a path; undefined: it answers as always. */
  readonly answer?: (path: string, origin: string) => Response | undefined
  /** Changes what the browser brings back. */
  readonly callback?: (answer: URLSearchParams) => void
  readonly expiresIn?: number
  readonly refreshes?: false
  readonly challenge?: (origin: string) => string
  readonly tools?: readonly object[]
  /** The client that logs in without a user, and how it proves itself. */
  readonly alone?: { readonly id: string; readonly secret: string } | { readonly id: string; readonly key: KeyObject }
}

type Grant = { readonly client: string; readonly redirect: string; readonly challenge: string; readonly scope: string | null }

export type AuthorizationServer = ReturnType<typeof startAuthorizationServer>

export function startAuthorizationServer(changes: Changes = {}) {
  const clients = new Map<string, readonly string[]>()
  const codes = new Map<string, Grant>()
  const [access, refresh, spent] = [new Set<string>(), new Set<string>(), new Set<string>()]
  const requests: { readonly path: string; readonly body: URLSearchParams; readonly authorization: string | null }[] = []
  const logins: URLSearchParams[] = []
  const counts = { reused: 0, refreshed: 0, granted: 0 }

  function issue(scope: string | null): Response {
    const [token, renewal] = [`access-${randomUUID()}`, `refresh-${randomUUID()}`]
    access.add(token)
    refresh.add(renewal)
    const more = changes.refreshes === false ? {} : { refresh_token: renewal }
    return Response.json({ access_token: token, token_type: 'Bearer', expires_in: changes.expiresIn, ...(scope ? { scope } : {}), ...more })
  }

  function refuse(error: string): Response {
    return Response.json({ error }, { status: 400 })
  }

  /** Knows the client by HTTP Basic, or by an assertion that its key signed for this issuer. */
  function isClient(body: URLSearchParams, authorization: string | null): boolean {
    const { alone } = changes
    if (alone === undefined) return false
    if ('secret' in alone) return authorization === `Basic ${btoa(`${alone.id}:${alone.secret}`)}`
    const [head = '', claims = '', seal = ''] = (body.get('client_assertion') ?? '').split('.')
    const { iss, sub, aud, exp } = JSON.parse(Buffer.from(claims || 'e30', 'base64url').toString())
    const key = { key: alone.key, dsaEncoding: 'ieee-p1363' } as const
    const isSigned = verify(
      alone.key.asymmetricKeyType === 'ed25519' ? null : 'sha256',
      Buffer.from(`${head}.${claims}`),
      key,
      Buffer.from(seal, 'base64url'),
    )
    return isSigned && iss === alone.id && sub === alone.id && aud === origin && exp * 1_000 > Date.now()
  }

  function exchange(body: URLSearchParams, authorization: string | null): Response {
    if (body.get('grant_type') === 'client_credentials') {
      if (!isClient(body, authorization)) return Response.json({ error: 'invalid_client' }, { status: 401 })
      counts.granted += 1
      access.clear()
      return issue(body.get('scope'))
    }
    if (body.get('grant_type') === 'refresh_token') {
      const token = body.get('refresh_token') ?? ''
      if (spent.has(token)) counts.reused += 1
      if (!refresh.delete(token)) return refuse('invalid_grant')
      spent.add(token)
      counts.refreshed += 1
      access.clear()
      return issue(null)
    }
    const grant = codes.get(body.get('code') ?? '')
    codes.delete(body.get('code') ?? '')
    const proof = createHash('sha256')
      .update(body.get('code_verifier') ?? '')
      .digest('base64url')
    const fits = grant?.client === body.get('client_id') && grant.redirect === body.get('redirect_uri') && grant.challenge === proof
    return fits ? issue(grant.scope) : refuse('invalid_grant')
  }

  function authorize(query: URLSearchParams): Response {
    logins.push(query)
    const client = query.get('client_id') ?? ''
    const redirect = query.get('redirect_uri') ?? ''
    const isKnown = client.startsWith('https://') || clients.get(client)?.includes(redirect)
    if (!isKnown || query.get('code_challenge_method') !== 'S256') return new Response('who are you?', { status: 400 })
    const code = randomUUID()
    codes.set(code, { client, redirect, challenge: query.get('code_challenge') ?? '', scope: query.get('scope') })
    const answer = new URLSearchParams({ code, state: query.get('state') ?? '', iss: origin })
    changes.callback?.(answer)
    return new Response(null, { status: 302, headers: { location: `${redirect}?${answer}` } })
  }

  async function answerMcp(request: Request): Promise<Response> {
    const token = request.headers.get('authorization')?.replace(/^Bearer /, '') ?? ''
    if (!access.has(token)) {
      const challenge =
        changes.challenge?.(origin) ?? `Bearer resource_metadata="${origin}/.well-known/oauth-protected-resource/mcp", scope="tools"`
      return new Response(null, { status: 401, headers: { 'www-authenticate': challenge } })
    }
    if (request.method !== 'POST') return new Response(null, { status: 405 })
    const { id, method, params }: { id?: number; method: string; params: { protocolVersion: string } } = JSON.parse(await request.text())
    if (id === undefined) return new Response(null, { status: 202 })
    const reply = (result: object) => Response.json({ jsonrpc: '2.0', id, result })
    const tools = changes.tools ?? [{ name: 'echo', description: 'says it again', inputSchema: { type: 'object', properties: {} } }]
    if (method === 'initialize')
      return reply({ protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'guarded', version: '1' } })
    if (method === 'tools/list') return reply({ tools })
    if (method === 'tools/call') return reply({ content: [{ type: 'text', text: 'done' }] })
    return Response.json({ jsonrpc: '2.0', id, error: { code: -32601, message: 'no such method' } })
  }

  const server: Bun.Server<undefined> = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request): Promise<Response> {
      const { pathname, searchParams } = new URL(request.url)
      const text = pathname === '/mcp' ? '' : await request.text()
      requests.push({ path: pathname, body: new URLSearchParams(text), authorization: request.headers.get('authorization') })
      const own = changes.answer?.(pathname, origin)
      if (own !== undefined) return own
      if (pathname === '/mcp') return answerMcp(request)
      if (pathname === '/.well-known/oauth-protected-resource/mcp') {
        const said = { resource: `${origin}/mcp`, authorization_servers: [origin] }
        return Response.json(changes.resource?.(said, origin) ?? said)
      }
      if (pathname === '/.well-known/oauth-authorization-server') {
        const said = metadataOf(origin, changes.alone && 'secret' in changes.alone ? 'client_secret_basic' : 'none')
        return Response.json(changes.metadata?.(said, origin) ?? said)
      }
      if (pathname === '/authorize') return authorize(searchParams)
      if (pathname === '/token') return exchange(new URLSearchParams(text), request.headers.get('authorization'))
      if (pathname === '/register') {
        const id = `client-${randomUUID()}`
        const wanted = JSON.parse(text)
        clients.set(id, wanted.redirect_uris)
        return Response.json({ ...wanted, client_id: id }, { status: 201 })
      }
      if (pathname === '/revoke') {
        access.clear()
        refresh.delete(new URLSearchParams(text).get('token') ?? '')
        return new Response(null, { status: 200 })
      }
      return new Response('nothing here', { status: 404 })
    },
  })
  const origin: string = `http://127.0.0.1:${server.port}`
  return {
    origin,
    url: `${origin}/mcp`,
    /** The valid tokens; a test that empties them revokes them. */
    access,
    refresh,
    clients,
    requests,
    /** The parameters of every login page that was opened. */
    logins,
    counts,
    [Symbol.dispose]: () => void server.stop(true),
  }
}

function metadataOf(origin: string, method: string): { [name: string]: unknown } {
  return {
    issuer: origin,
    authorization_endpoint: `${origin}/authorize`,
    token_endpoint: `${origin}/token`,
    registration_endpoint: `${origin}/register`,
    revocation_endpoint: `${origin}/revoke`,
    response_types_supported: ['code'],
    code_challenge_methods_supported: ['S256'],
    token_endpoint_auth_methods_supported: [method],
    authorization_response_iss_parameter_supported: true,
  }
}

/** Opens the page, agrees, and follows the way back. */
export async function browse(address: string): Promise<undefined> {
  const answer = await fetch(address, { redirect: 'manual' })
  const back = answer.headers.get('location')
  if (back === null) throw new Error(`the page answered ${answer.status}: ${await answer.text()}`)
  await fetch(back)
}
