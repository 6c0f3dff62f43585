/** Tests servers whose client logs in without a user: what is refused, which proof is sent to whom, and who renews a token. */

import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import { existsSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { mcpLine } from '../../src/channels/mcp-command.ts'
import { serverFindings } from '../../src/cli/commands/doctor/doctor-home.ts'
import { configuredServers } from '../../src/host/toolset/guests/mcp/configured-servers.ts'
import { loginOf, logoutMcp, tokensFor } from '../../src/host/toolset/guests/mcp/mcp-login.ts'
import type { JsonObject } from '../../src/kit/json.ts'
import { nest } from '../support/cli.ts'
import { type AuthorizationServer, startAuthorizationServer } from './authorization-server.ts'
import { guestStage } from './guest-stage.ts'

const secret = 'q9f8e7d6c5b4a3928170'
const alone = { id: 'robot', secret }
type Changes = Parameters<typeof startAuthorizationServer>[0]

/** A home whose server `docs` has the client of `auth`; absent fields are right. */
async function stageFor(server: AuthorizationServer, auth: JsonObject = {}, env: Record<string, string> = { DOCS_SECRET: secret }) {
  const { port } = new URL(server.url)
  const stage = guestStage({ config: `[security]\nallowed_domains = ["127.0.0.1"]\nallowed_ports = [${port}]\n`, env })
  const proof: JsonObject = 'private_key_variable' in auth ? {} : { client_secret_variable: 'DOCS_SECRET' }
  await stage.mcp().add('docs', { url: server.url, auth: { client_id: 'robot', issuer: server.origin, ...proof, ...auth } })
  const [configured] = configuredServers(stage.load()).servers
  if (configured === undefined) throw new Error('no server')
  return { stage, configured, file: join(stage.home, 'mcp/login/docs/credentials.json') }
}

/** Tries to approve the server, and returns why not. */
async function refusal(changes: Changes, auth: JsonObject = {}, env?: Record<string, string>) {
  using server = startAuthorizationServer({ alone, ...changes })
  const { stage, file } = await stageFor(server, auth, env)
  using _stage = stage
  const why = await stage.approve('docs').then(
    () => 'approved',
    (error: Error) => error.message,
  )
  expect(existsSync(file)).toBe(false)
  const tokenRequests = server.requests.filter(({ path }) => path === '/token')
  return { why, tokenRequests, granted: server.counts.granted }
}

describe('no token is given, and the message says what to check', () => {
  test('a wrong secret', async () => {
    const { why, tokenRequests } = await refusal({}, {}, { DOCS_SECRET: 'not-the-secret-00' })
    expect(why).toMatch(/^the client "robot" got no token: http:\/\/127\.0\.0\.1:\d+ refused it: invalid_client/)
    expect(why).toEndWith('check "auth" of the server and the variable DOCS_SECRET')
    expect(why).not.toContain('not-the-secret')
    expect(tokenRequests.length).toBeGreaterThan(0)
  })

  test('a server that sends the client to another issuer gets no proof of it', async () => {
    const { why, tokenRequests } = await refusal({}, { issuer: 'https://login.example.org' })
    expect(why).toContain('credentials are bound to "https://login.example.org"')
    expect(tokenRequests).toEqual([])
  })

  test('metadata for another resource', async () => {
    const { why, tokenRequests } = await refusal({ resource: (own) => ({ ...own, resource: 'https://bank.example/mcp' }) })
    expect(why).toContain('its metadata describes another server: https://bank.example/mcp')
    expect(tokenRequests).toEqual([])
  })

  test('a token page inside the network', async () => {
    const { why } = await refusal({ metadata: (own) => ({ ...own, token_endpoint: 'https://192.168.1.1/token' }) })
    expect(why).toContain('is private')
  })

  test('a variable that is not set, and a key that is none', async () => {
    expect((await refusal({}, {}, {})).why).toContain('needs the variable DOCS_SECRET, which is not set')
    const { why, tokenRequests } = await refusal({}, { private_key_variable: 'DOCS_KEY' }, { DOCS_KEY: secret })
    expect(why).toContain('the variable DOCS_KEY')
    expect(why).not.toContain(secret)
    expect(tokenRequests).toEqual([])
  })

  test('a token that the server does not accept asks for no login of a user', async () => {
    const refuseAll = (path: string) => (path === '/mcp' ? new Response(null, { status: 401 }) : undefined)
    using server = startAuthorizationServer({ alone, answer: refuseAll })
    const { stage } = await stageFor(server)
    using _stage = stage
    const why = await stage.approve('docs').catch((error: Error) => error.message)
    expect(why).toBe('it accepts no token of the client "robot"; check the scope in "auth", and ask its operator what this client may do')
    expect(server.counts.granted).toBeGreaterThan(0)
  })

  test('a client that is named by halves, by two proofs, or for a program; "mcp add" writes a whole one into the file', async () => {
    using at = nest()
    const client = ['--client-id', 'robot', '--issuer', 'https://login.example.org']
    const add = (id: string, ...words: string[]) => at.run(['mcp', 'add', id, ...words])
    const [address, secretIn] = ['https://mcp.example.org/mcp', ['--client-secret-variable', 'DOCS_SECRET']]
    for (const [words, why] of [
      [[address, ...secretIn, '--issuer', 'https://login.example.org'], 'auth.client_id is missing'],
      [[address, '--client-id', 'robot', ...secretIn], 'auth.issuer is missing; it is a text\n'],
      [[address, ...client], 'auth.client_secret_variable is missing'],
      [[address, ...client, ...secretIn, '--private-key-variable', 'K'], 'and "private_key_variable" exclude each other'],
      [[...client, ...secretIn, '--', 'npx', 'x'], 'are for a server at an address'],
    ] as const) {
      const { code, stderr } = await add('x', ...words)
      expect([code, stderr]).toEqual([2, expect.stringContaining(why)])
    }
    expect(existsSync(join(at.home, '.braidclaw/mcp.json'))).toBe(false)
    expect(await add('docs', address, ...client, ...secretIn, '--scope', 'read')).toMatchObject({ code: 0 })
    expect(JSON.parse(readFileSync(join(at.home, '.braidclaw/mcp.json'), 'utf8')).mcpServers.docs.auth).toEqual({
      ...{ client_id: 'robot', client_secret_variable: 'DOCS_SECRET', issuer: 'https://login.example.org', scope: 'read' },
    })
  })

  test('a secret that stands in the file, a token beside it, and a client without an issuer are refused and not repeated', async () => {
    using stage = guestStage()
    const add = (auth: JsonObject) =>
      stage
        .mcp()
        .add('docs', { url: 'https://mcp.example.org/', auth })
        .then(
          () => 'added',
          (error: Error) => error.message,
        )
    const whole = { client_id: 'robot', client_secret_variable: 'DOCS_SECRET', issuer: 'https://login.example.org' }
    const written = await add({ ...whole, client_secret_variable: secret })
    expect(written).toContain('client_secret_variable is the name of the environment variable')
    expect(written).not.toContain(secret)
    expect(await add({ ...whole, token: 'x' })).toContain('leave one out')
    expect(await add({ ...whole, issuer: 'login' })).toContain('issuer is the address of the authorization server')
    expect(await add({ ...whole, client_secret: secret })).toContain('client_secret is not a field')
  })
})

describe('a client that logs in alone', () => {
  let server: AuthorizationServer
  beforeEach(() => {
    server = startAuthorizationServer({ alone, expiresIn: 3_600 })
  })
  afterEach(() => server[Symbol.dispose]())

  test('gets a token for this resource and scope, which is kept for its owner alone, and calls a tool', async () => {
    const { stage, file, configured } = await stageFor(server, { scope: 'read' })
    using _stage = stage
    await stage.approve('docs')
    const [request] = server.requests.filter(({ path }) => path === '/token')
    expect(Object.fromEntries(request?.body ?? [])).toEqual({ grant_type: 'client_credentials', resource: server.url, scope: 'read' })
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(readFileSync(file, 'utf8')).not.toContain(secret)
    const runtime = await stage.open()
    expect(await stage.on(runtime).call('mcp_docs_echo')).toMatchObject({ status: 'allowed', output: 'done' })
    await runtime.close()
    expect(server.counts.granted).toBe(1)
    expect(configured.transport).not.toHaveProperty('login.secret')
    // Neither another client nor another issuer gets the token.
    const setup = stage.load()
    const other = (more: object) => tokensFor({ ...configured, transport: { ...configured.transport, ...more } as never }, setup)
    const login = { clientId: 'other', issuer: server.origin, scope: 'read', proof: 'secret', variable: 'DOCS_SECRET' }
    expect(await other({ login })?.token()).toBeUndefined()
    expect(await other({ login: undefined })?.token()).toBeUndefined()
  })

  test('is renewed once before it expires and once after it was revoked, also when several need it', async () => {
    const { stage, configured, file } = await stageFor(server)
    using _stage = stage
    await stage.approve('docs')
    const source = () => tokensFor(configured, stage.load())
    const kept = JSON.parse(readFileSync(file, 'utf8'))
    await Bun.write(file, JSON.stringify({ ...kept, credentials: { ...kept.credentials, expires: Date.now() + 30_000 } }))
    const [first, second] = await Promise.all([source()?.token(), source()?.token()])
    expect(first).toBe(second ?? '')
    expect(first).not.toBe(kept.credentials.tokens.access_token)
    expect(server.counts.granted).toBe(2)
    server.access.clear()
    const runtime = await stage.open()
    expect(await stage.on(runtime).call('mcp_docs_echo')).toMatchObject({ status: 'allowed' })
    await runtime.close()
    expect(server.counts).toEqual({ granted: 3, refreshed: 0, reused: 0 })
  })

  test('is named by the list and the doctor, which says that its variable is not set', async () => {
    const { stage } = await stageFor(server)
    using _stage = stage
    await stage.approve('docs')
    expect(mcpLine(stage.mcp().status('docs'))).toEndWith(`${server.url} as the client robot of ${server.origin}`)
    const { context, ...setup } = stage.load()
    const findings = (env: Record<string, string | undefined>) => serverFindings({ ...setup, context: { ...context, env } } as never)
    expect(findings(context.env)).toMatchObject([{ state: 'ok' }])
    expect(findings({ HOME: context.env.HOME })).toMatchObject([
      { state: 'bad', says: expect.stringContaining('the variable DOCS_SECRET, which is not set') },
    ])
  })

  test('a logout proves the client, revokes the token, and forgets it', async () => {
    const { stage, configured, file } = await stageFor(server)
    using _stage = stage
    await stage.approve('docs')
    const login = loginOf(configured, stage.load())
    expect(login && (await logoutMcp(login))).toEqual({ wasLoggedIn: true, why: undefined })
    expect(server.requests.at(-1)).toMatchObject({ path: '/revoke', authorization: `Basic ${btoa(`robot:${secret}`)}` })
    expect(server.access.size).toBe(0)
    expect(existsSync(file)).toBe(false)
  })
})

const pairs: [string, () => { readonly publicKey: KeyObject; readonly privateKey: KeyObject }][] = [
  ['P-256', () => generateKeyPairSync('ec', { namedCurve: 'P-256' })],
  ['RSA', () => generateKeyPairSync('rsa', { modulusLength: 2048 })],
  ['Ed25519', () => generateKeyPairSync('ed25519')],
]
test.each(pairs)('a private key of %s signs for its issuer, and the key of somebody else does not count', async (_, pair) => {
  const { publicKey: key, privateKey } = pair()
  const pem = (of: KeyObject) => of.export({ type: 'pkcs8', format: 'pem' }).toString()
  const auth = { private_key_variable: 'DOCS_KEY' }
  const changes: Changes = {
    alone: { id: 'robot', key },
    metadata: (own) => ({ ...own, token_endpoint_auth_methods_supported: ['private_key_jwt'] }),
  }
  expect((await refusal(changes, auth, { DOCS_KEY: pem(pair().privateKey) })).why).toContain('refused it: invalid_client')
  using server = startAuthorizationServer(changes)
  const { stage, file } = await stageFor(server, auth, { DOCS_KEY: pem(privateKey) })
  using _stage = stage
  await stage.approve('docs')
  expect(server.counts.granted).toBe(1)
  expect(readFileSync(file, 'utf8')).not.toContain('PRIVATE KEY')
})
