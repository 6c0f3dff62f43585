import { afterAll, describe, expect, test } from 'bun:test'
import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client, StreamableHTTPClientTransport, UnauthorizedError } from '@modelcontextprotocol/client'
import { serverAddresses } from '../../src/host/toolset/guarded-get.ts'
import { loginFetch, loginMcp, logoutMcp, openCredentials } from '../../src/host/toolset/guests/mcp/mcp-login.ts'
import { createTokenSource } from '../../src/mcp/client/oauth.ts'
import { createRedactor } from '../../src/security/redaction/redact.ts'
import { browse, startAuthorizationServer } from './authorization-server.ts'

const root = mkdtempSync(join(tmpdir(), 'mcp-login-'))
afterAll(() => rmSync(root, { recursive: true, force: true }))

const policy = { allowedDomains: [], allowedPorts: [] }
type Login = Partial<Parameters<typeof loginMcp>[0]>

function homeFor(url: string) {
  const server = { id: 'guarded', url }
  const setup = { home: mkdtempSync(join(root, 'home-')), redactor: createRedactor(), policy, server }
  const store = openCredentials(setup, server)
  return {
    ...setup,
    store,
    file: join(setup.home, 'mcp/login/guarded/credentials.json'),
    login: (more: Login = {}) => loginMcp({ ...setup, show: browse, signal: AbortSignal.timeout(20_000), ...more }),
    source: (now: () => number = Date.now) =>
      createTokenSource({ url, store: openCredentials(setup, server), fetch: loginFetch(setup), now }),
  }
}

/** Logs in, and returns the sentence that says why not. */
async function refusal(work: Promise<void>): Promise<string> {
  return work.then(
    () => 'logged in',
    (error) => String(error),
  )
}

/** Lists the tools with what the source gives. */
async function toolsWith(url: string, authProvider: ReturnType<typeof createTokenSource>): Promise<readonly string[]> {
  const client = new Client({ name: 'test', version: '1' })
  try {
    await client.connect(new StreamableHTTPClientTransport(new URL(url), { authProvider }))
    return (await client.listTools()).tools.map(({ name }) => name)
  } finally {
    await client.close()
  }
}

const hourMs = 3_600_000

describe('what ends without a login', () => {
  test('an answer with another state is ignored on loopback, and refused when it is pasted', async () => {
    using server = startAuthorizationServer()
    const home = homeFor(server.url)
    const seen: number[] = []
    const forged = async (address: string) => {
      const redirect = new URL(address).searchParams.get('redirect_uri') ?? ''
      for (const query of ['code=stolen&state=guessed', 'code=stolen', 'error=access_denied'])
        seen.push((await fetch(`${redirect}?${query}`)).status)
      return `${redirect}?code=stolen&state=guessed`
    }
    expect(await refusal(home.login({ show: forged }))).toContain('its state is another one')
    expect(seen).toEqual([404, 404, 404])
    expect(server.requests.filter(({ path }) => path === '/token')).toEqual([])
    expect(home.store.read()).toBeUndefined()
  })

  test('the answer of another authorization server is refused before its code is used', async () => {
    for (const change of [(iss: URLSearchParams) => iss.set('iss', 'https://evil.example'), (iss: URLSearchParams) => iss.delete('iss')]) {
      using server = startAuthorizationServer({ callback: change })
      const home = homeFor(server.url)
      expect(await refusal(home.login())).toContain('ssuer')
      expect(server.requests.filter(({ path }) => path === '/token')).toEqual([])
    }
  })

  test('metadata of another issuer is refused', async () => {
    using server = startAuthorizationServer({ metadata: (own) => ({ ...own, issuer: 'https://other.example' }) })
    expect(await refusal(homeFor(server.url).login())).toContain('ssuer mismatch')
    expect(server.requests.map(({ path }) => path)).not.toContain('/register')
  })

  test('a server without PKCE gets no client and no user', async () => {
    for (const methods of [undefined, [], ['plain']]) {
      using server = startAuthorizationServer({ metadata: (own) => ({ ...own, code_challenge_methods_supported: methods }) })
      expect(await refusal(homeFor(server.url).login())).toContain('does not support PKCE')
      expect(server.clients.size + server.logins.length).toBe(0)
    }
  })

  test('metadata for another resource is refused', async () => {
    using server = startAuthorizationServer({ resource: (own) => ({ ...own, resource: 'https://bank.example/mcp' }) })
    expect(await refusal(homeFor(server.url).login())).toContain('describes another server: https://bank.example/mcp')
  })

  test('addresses inside a network are refused wherever the server names them', async () => {
    const inside = 'http://10.0.0.1:1'
    const cases = [
      { challenge: () => `Bearer resource_metadata="${inside}/meta"` },
      { resource: (own: object) => ({ ...own, authorization_servers: [inside] }) },
      { metadata: (own: object) => ({ ...own, registration_endpoint: 'https://169.254.169.254/register' }) },
      { metadata: (own: object) => ({ ...own, token_endpoint: 'https://192.168.1.1/token' }) },
      { metadata: (own: object) => ({ ...own, authorization_endpoint: 'https://10.0.0.1/authorize' }) },
    ]
    for (const changes of cases) {
      using server = startAuthorizationServer(changes)
      const show = (address: string) => browse(address.replace('https://10.0.0.1', server.origin))
      expect(await refusal(homeFor(server.url).login({ show }))).toMatch(/is not encrypted|is private|is link-local/)
    }
  })

  test('no browser is sent to a program or a file', async () => {
    for (const scheme of ['javascript:alert(1)', 'file:///etc/passwd', 'http://example.com/authorize']) {
      using server = startAuthorizationServer({ metadata: (own) => ({ ...own, authorization_endpoint: scheme }) })
      const shown: string[] = []
      const show = async (address: string) => void shown.push(address)
      expect(await refusal(homeFor(server.url).login({ show }))).toContain('no login')
      expect(shown).toEqual([])
    }
  })

  test('a redirect of metadata or of the token page is not followed to another origin', async () => {
    using other = startAuthorizationServer()
    for (const page of ['/.well-known/oauth-authorization-server', '/token', '/register']) {
      const moved = (path: string) => (path === page ? Response.redirect(`${other.origin}${page}`, 307) : undefined)
      using server = startAuthorizationServer({ answer: moved })
      expect(await refusal(homeFor(server.url).login())).toContain('no login')
    }
    expect(other.requests).toEqual([])
  })

  test('a public server cannot send us to this machine or its network', async () => {
    using local = startAuthorizationServer()
    const fetch = loginFetch({ server: { id: 'public', url: 'https://mcp.example.com/mcp' }, policy })
    for (const url of [
      local.origin,
      local.origin.replace('127.0.0.1', 'localhost'),
      'https://127.0.0.1/',
      'https://[::1]/',
      'https://intranet/',
    ])
      expect(fetch(url)).rejects.toThrow(TypeError)
    expect(await fetch('https://10.1.2.3/token').catch(String)).toContain('is private')
    expect(local.requests).toEqual([])
  })

  test('a refusal of the user is said, with nothing hidden in it', async () => {
    const callback = (answer: URLSearchParams) => {
      answer.delete('code')
      answer.set('error', 'access_denied')
      answer.set('error_description', 'no\u001b[2J way')
    }
    using server = startAuthorizationServer({ callback })
    const said = await refusal(homeFor(server.url).login())
    expect(said).toContain('access_denied: no\\u{1b}[2J way')
  })

  test('metadata of more than a megabyte is not read', async () => {
    using server = startAuthorizationServer({ metadata: (own) => ({ ...own, pad: 'x'.repeat(3_000_000) }) })
    const said = await refusal(homeFor(server.url).login())
    expect(said).toContain('no login')
    expect(said.length).toBeLessThan(700)
  })

  test('the words of a refusal are shown only when they come from the server of this login', async () => {
    const callback = (answer: URLSearchParams) => {
      answer.delete('code')
      answer.set('error', 'call this number')
      answer.set('iss', 'https://evil.example')
    }
    using server = startAuthorizationServer({ callback })
    expect(await refusal(homeFor(server.url).login())).not.toContain('call this number')
  })

  test('a public name that turns out to be an address inside is refused, and a local name of the operator is not', () => {
    const at = (url: string, host: string, ip: string) => serverAddresses({ url, policy }).judgeAddress({ host, ip, port: 443 }).ok
    expect(at('https://mcp.example.com/mcp', 'mcp.example.com', '127.0.0.1')).toBe(false)
    expect(at('https://mcp.example.com/mcp', 'mcp.example.com', '10.0.0.1')).toBe(false)
    expect(at('http://intranet/mcp', 'login.example.com', '10.0.0.1')).toBe(false)
    expect(at('http://127.0.0.1:1/mcp', 'login.example.com', '127.0.0.1')).toBe(false)
    expect(at('http://intranet/mcp', 'intranet', '10.0.0.1')).toBe(true)
    expect(at('https://mcp.example.com/mcp', 'mcp.example.com', '93.184.215.14')).toBe(true)
  })
})

describe('a login', () => {
  test('registers a client, proves itself by PKCE, and keeps the tokens for this address alone', async () => {
    using server = startAuthorizationServer({ expiresIn: 3_600 })
    const home = homeFor(server.url)
    await home.login()
    const { tokens, client } = home.store.read() ?? {}
    expect(await toolsWith(server.url, home.source())).toEqual(['echo'])
    expect(server.logins[0]?.get('scope')).toBe('tools')
    expect(server.logins[0]?.get('resource')).toBe(server.url)
    expect(server.clients.get(client?.id ?? '')).toEqual([client?.redirect ?? ''])
    expect(statSync(home.file).mode & 0o777).toBe(0o600)
    expect(home.redactor.text(`it is ${tokens?.access_token} and ${tokens?.refresh_token}`)).toBe(
      'it is [redacted:mcp guarded] and [redacted:mcp guarded]',
    )
    for (const url of [`${server.url}/`, `${server.origin}/other`, 'https://evil.example/mcp'])
      expect(openCredentials(home, { id: 'guarded', url }).read()).toBeUndefined()
    expect(openCredentials(home, { id: 'other', url: server.url }).read()).toBeUndefined()
    chmodSync(home.file, 0o644)
    expect(home.store.read()).toBeUndefined()
  })

  test('the pasted address of a browser on another machine is enough', async () => {
    using server = startAuthorizationServer()
    const home = homeFor(server.url)
    const show = async (address: string) => ` ${(await fetch(address, { redirect: 'manual' })).headers.get('location')}\n`
    await home.login({ show })
    expect(await toolsWith(server.url, home.source())).toEqual(['echo'])
  })

  test('a client metadata document is used where the server reads one, and registration where not', async () => {
    const client = { id: 'https://me.example/client.json' }
    using modern = startAuthorizationServer({ metadata: (own) => ({ ...own, client_id_metadata_document_supported: true }) })
    await homeFor(modern.url).login({ client })
    expect(modern.logins[0]?.get('client_id')).toBe(client.id)
    expect(modern.clients.size).toBe(0)
    using old = startAuthorizationServer()
    await homeFor(old.url).login({ client })
    expect(old.clients.has(old.logins[0]?.get('client_id') ?? '')).toBe(true)
  })

  test('a client that was registered by hand stays the client of this server', async () => {
    using server = startAuthorizationServer({ metadata: (own) => ({ ...own, client_id_metadata_document_supported: true }) })
    const home = homeFor(server.url)
    await home.login({ client: { id: 'https://me.example/client.json' } })
    await home.login()
    expect(server.logins.map((login) => login.get('client_id'))).toEqual([
      'https://me.example/client.json',
      'https://me.example/client.json',
    ])
  })

  test('where nobody can register, the message says what to do', async () => {
    using server = startAuthorizationServer({ metadata: (own) => ({ ...own, registration_endpoint: undefined }) })
    expect(await refusal(homeFor(server.url).login())).toContain('--client-id')
  })
})

describe('tokens', () => {
  test('are renewed once before they expire, also when several processes need them', async () => {
    using server = startAuthorizationServer({ expiresIn: 3_600 })
    const home = homeFor(server.url)
    await home.login()
    const before = home.store.read()?.tokens?.access_token
    expect(await home.source(() => Date.now() + hourMs - 90_000).token()).toBe(before)
    const soon = () => Date.now() + hourMs - 30_000
    const given = await Promise.all([home.source(soon).token(), home.source(soon).token()])
    expect(given[0]).not.toBe(before)
    expect(server.access.has(given[0] ?? '')).toBe(true)
    expect(given[1]).toBe(given[0])
    expect(server.counts).toMatchObject({ refreshed: 1, reused: 0 })
  })

  test('a revoked access token is renewed while the server is asked', async () => {
    using server = startAuthorizationServer()
    const home = homeFor(server.url)
    await home.login()
    server.access.clear()
    expect(await toolsWith(server.url, home.source())).toEqual(['echo'])
    expect(server.counts.refreshed).toBe(1)
  })

  test('after the login was revoked nothing is sent any more, and the next login uses the same client', async () => {
    using server = startAuthorizationServer()
    const home = homeFor(server.url)
    await home.login()
    server.access.clear()
    server.refresh.clear()
    expect(await toolsWith(server.url, home.source()).catch((error) => error instanceof UnauthorizedError)).toBe(true)
    expect(home.store.read()?.tokens).toBeUndefined()
    expect(await home.source().token()).toBeUndefined()
    await home.login()
    expect(server.clients.size).toBe(1)
    expect(await toolsWith(server.url, home.source())).toEqual(['echo'])
  })

  test('a token without a refresh token ends with a login that is needed', async () => {
    using server = startAuthorizationServer({ refreshes: false, expiresIn: 3_600 })
    const home = homeFor(server.url)
    await home.login()
    expect(await home.source(() => Date.now() + 2 * hourMs).token()).toBeUndefined()
  })

  test('a server that cannot be reached costs no tokens', async () => {
    const server = startAuthorizationServer({ expiresIn: 3_600 })
    const home = homeFor(server.url)
    await home.login()
    server[Symbol.dispose]()
    const soon = home.source(() => Date.now() + hourMs - 30_000)
    expect(await soon.token()).toBe(home.store.read()?.tokens?.access_token ?? '')
    expect(home.source(() => Date.now() + 2 * hourMs).token()).rejects.toThrow()
    expect(home.store.read()?.tokens).toBeDefined()
  })

  test('a logout revokes them at the server and forgets them here', async () => {
    using server = startAuthorizationServer()
    const home = homeFor(server.url)
    await home.login()
    const { tokens } = JSON.parse(readFileSync(home.file, 'utf8')).credentials
    expect(await logoutMcp(home)).toEqual({ wasLoggedIn: true, why: undefined })
    expect(server.requests.at(-1)?.body.get('token')).toBe(tokens.refresh_token)
    expect(server.access.size + server.refresh.size).toBe(0)
    expect(home.store.read()).toBeUndefined()
    expect(await logoutMcp(home)).toEqual({ wasLoggedIn: false })
  })

  test('a logout forgets them also when the server refuses', async () => {
    using server = startAuthorizationServer({ answer: (path) => (path === '/revoke' ? new Response('', { status: 503 }) : undefined) })
    const home = homeFor(server.url)
    await home.login()
    expect(await logoutMcp(home)).toEqual({ wasLoggedIn: true, why: 'it answered 503' })
    expect(home.store.read()).toBeUndefined()
  })
})
