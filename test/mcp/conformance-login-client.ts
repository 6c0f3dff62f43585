/** The client that the official conformance package starts: it connects, logs in where that is asked for, and uses each tool once. */

import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client, InsufficientScopeError, StreamableHTTPClientTransport, UnauthorizedError } from '@modelcontextprotocol/client'
import { loginFetch, loginMcp, openCredentials } from '../../src/host/toolset/guests/mcp/mcp-login.ts'
import { createTokenSource } from '../../src/mcp/client/oauth.ts'
import { createRedactor } from '../../src/security/redaction/redact.ts'
import { browse } from './authorization-server.ts'

const url = process.argv.at(-1) ?? ''
const given: { client_id?: string; client_secret?: string } = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? '{}')
const client = { id: given.client_id ?? 'https://conformance-test.local/client-metadata.json', secret: given.client_secret }
const server = { id: 'conformance', url }
const setup = {
  home: mkdtempSync(join(tmpdir(), 'conformance-')),
  redactor: createRedactor(),
  policy: { allowedDomains: [], allowedPorts: [] },
  server,
}
const auth = createTokenSource({ store: openCredentials(setup, server), fetch: loginFetch(setup), now: Date.now })

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

async function login(scope?: string): Promise<void> {
  await loginMcp({ ...setup, client, scope, show: browse, signal: AbortSignal.timeout(20_000) })
}

for (let logins = 0; ; logins++) {
  try {
    await use()
    break
  } catch (error) {
    if (logins === 3) throw error
    if (error instanceof InsufficientScopeError) await login(error.requiredScope)
    else if (error instanceof UnauthorizedError) await login()
    else throw error
  }
}
