/** The client that the official conformance package starts: it connects, logs in where that is asked for, and uses each tool once. */

import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  Client,
  discoverOAuthServerInfo,
  InsufficientScopeError,
  StreamableHTTPClientTransport,
  UnauthorizedError,
} from '@modelcontextprotocol/client'
import { loginFetch, loginMcp, openCredentials } from '../../src/host/toolset/guests/mcp/mcp-login.ts'
import { createTokenSource } from '../../src/mcp/client/oauth.ts'
import { createRedactor } from '../../src/security/redaction/redact.ts'
import { browse } from './authorization-server.ts'

const url = process.argv.at(-1) ?? ''
const given: { client_id?: string; client_secret?: string; private_key_pem?: string } = JSON.parse(
  process.env.MCP_CONFORMANCE_CONTEXT ?? '{}',
)
const client = { id: given.client_id ?? 'https://conformance-test.local/client-metadata.json', secret: given.client_secret }
const isAlone = process.env.MCP_CONFORMANCE_SCENARIO?.startsWith('auth/client-credentials') ?? false
const proof = given.private_key_pem ? ('key' as const) : ('secret' as const)
const secret = given.private_key_pem ?? given.client_secret
// An operator knows the issuer of the client; here only the server names it.
const issuer = isAlone ? ((await discoverOAuthServerInfo(url)).authorizationServerMetadata?.issuer ?? '') : ''
const login = isAlone ? { clientId: client.id, issuer, scope: '', proof, variable: 'SECRET', secret } : undefined
const server = { id: 'conformance', url, login }
const setup = {
  home: mkdtempSync(join(tmpdir(), 'conformance-')),
  redactor: createRedactor(),
  policy: { allowedDomains: [], allowedPorts: [] },
  server,
}
const auth = createTokenSource({ ...server, store: openCredentials(setup, server), fetch: loginFetch(setup), now: Date.now })

async function use(): Promise<void> {
  const connection = new Client({ name: 'braidclaw', version: '1' }, { versionNegotiation: { mode: 'auto' } })
  try {
    await connection.connect(new StreamableHTTPClientTransport(new URL(url), { authProvider: auth }))
    const { tools } = await connection.listTools()
    for (const { name } of tools) await connection.callTool({ name, arguments: {} })
  } finally {
    await connection.close()
  }
}

async function logIn(scope?: string): Promise<void> {
  await loginMcp({ ...setup, client, scope, show: browse, signal: AbortSignal.timeout(20_000) })
}

for (let logins = 0; ; logins++) {
  try {
    await use()
    break
  } catch (error) {
    if (logins === 3) throw error
    if (error instanceof InsufficientScopeError) await logIn(error.requiredScope)
    else if (error instanceof UnauthorizedError) await logIn()
    else throw error
  }
}
