/**
 * Keeps the connections of a host to MCP servers: one a server, opened by its first use, and after failures later and later. A server that
 * runs on this machine is confined to what was approved for it.
 */

import { mkdirSync } from 'node:fs'
import { lazy } from '../../../../kit/lazy.ts'
import { sha256 } from '../../../../kit/sha256.ts'
import { quote } from '../../../../kit/text.ts'
import type { Connect, McpConnection, McpFailure, McpPorts } from '../../../../mcp/contract.ts'
import type { SandboxName } from '../../../../sandbox/contract.ts'
import { startLineProcess } from '../../../../sandbox/pipes/line-process.ts'
import type { Policy } from '../../../../security/policy.ts'
import { expandHosts } from '../../../../security/targets/host-lists.ts'
import { cleanEnvironment } from '../../../../tools/process.ts'
import type { Setup } from '../../../api.ts'
import { policyOf } from '../../../setup/effective-policy.ts'
import type { GuestConnections, ToolDeps } from '../../contract.ts'
import { guardedFetch } from '../../guarded-get.ts'
import { type Definitions, openDefinitions, startText, toolDigest } from './approved-definitions.ts'
import { expanded, type McpServer, stateFolder } from './configured-servers.ts'

const longestBackOffMs = 60_000
const idleMs = 300_000

/** A connection whose server said in this process what it offers. */
export type LiveServer = {
  readonly connection: McpConnection
  /** Absent for a server that runs elsewhere. */
  readonly sandbox?: SandboxName | undefined
  /** Asks again what the server offers if it said that this changed. @returns the digest of each definition by name */
  digests(signal: AbortSignal): Promise<ReadonlyMap<string, string> | McpFailure>
}

type ConnectionDeps = { readonly setup: Setup; readonly sandboxOn: ToolDeps['sandboxOn']; readonly maxBytes: number }

export type McpConnections = ReturnType<typeof createConnections>

/** Returns the connections that these guests keep; the first call makes them. */
export function connectionsOf(guests: GuestConnections): McpConnections {
  guests.mcp ??= createConnections()
  // The host only closes them, so that it need not know this type.
  return guests.mcp as McpConnections
}

type Kept = {
  readonly server: string
  opening?: Promise<LiveServer | McpFailure> | undefined
  close?: (() => Promise<void>) | undefined
  failures: number
  notBefore: number
  idle?: ReturnType<typeof setTimeout>
}

/** The library of the protocol loads with the first connection. */
const connect: Connect = async (...given) => (await import('../../../../mcp/client/connect.ts')).connect(...given)

export function createConnections() {
  const all = new Map<string, Kept>()

  /** Opens the connection, or returns the open one. Never rejects. */
  async function use(server: McpServer, deps: ConnectionDeps, signal: AbortSignal): Promise<LiveServer | McpFailure> {
    const policy = policyOf(deps.setup.config, deps.setup.paths, deps.setup.context.env)
    const state = stateFolder(deps.setup.paths.home, server.key)
    const isHere = server.transport.kind === 'stdio'
    if (isHere) mkdirSync(state, { recursive: true, mode: 0o700 })
    // Without access to the workspace, the sandbox shows a folder of the server's own in its place.
    const cwd = server.permissions.files === 'none' ? state : policy.workspace
    const own = deps.sandboxOn(cwd)
    // Two conversations share a server only where it is started in the same way, in the same place, under the same sandbox.
    const sandbox = isHere ? await own.kind() : undefined
    const key = JSON.stringify([server.key, sha256(startText(server)), policy.workspace, sandbox])
    const kept = all.get(key) ?? { server: server.key, failures: 0, notBefore: 0 }
    all.set(key, kept)
    clearTimeout(kept.idle)
    const wait = kept.notBefore - Date.now()
    if (kept.opening === undefined && wait > 0)
      return { why: `it failed ${kept.failures} times in a row; it is tried again in ${Math.ceil(wait / 1_000)} s` }
    if (kept.opening !== undefined) own.close()
    kept.opening ??= open({ server, ...deps, policy, own, cwd, kept, sandbox, signal })
    const live = await kept.opening
    if ('why' in live) {
      kept.opening = undefined
      kept.failures += 1
      kept.notBefore = Date.now() + (kept.failures < 2 ? 0 : Math.min(longestBackOffMs, 500 * 2 ** (kept.failures - 1)))
      return live
    }
    kept.failures = 0
    kept.idle = setTimeout(() => void kept.close?.(), idleMs)
    kept.idle.unref()
    return live
  }

  const close = async (server?: string) => {
    for (const [key, kept] of all) {
      if (server !== undefined && kept.server !== server) continue
      all.delete(key)
      clearTimeout(kept.idle)
      await kept.opening
      await kept.close?.()
    }
  }
  return {
    use,
    /** Ends the connections of this server, if there are any. */
    end: (key: string) => close(key),
    close: () => close(),
  }
}

type Starting = Pick<ConnectionDeps, 'setup' | 'maxBytes'> & {
  readonly server: McpServer
  readonly policy: Policy
  readonly own: Pick<ReturnType<ToolDeps['sandboxOn']>, 'spawn' | 'close'>
  readonly cwd: string
}
type Opening = Starting & Pick<LiveServer, 'sandbox'> & { readonly kept: Kept; readonly signal: AbortSignal }

async function open({ kept, sandbox, signal, ...starting }: Opening): Promise<LiveServer | McpFailure> {
  const { server, setup, own } = starting
  const over = new AbortController()
  let connection: McpConnection | McpFailure | undefined
  const close = async () => {
    kept.opening = undefined
    kept.close = undefined
    if (connection && !('why' in connection)) await connection.close()
    over.abort()
    own.close()
  }
  const transport = expanded(server, setup)
  const client = 'login' in transport ? transport.login : undefined
  // No login of a user helps where a client logs in by itself.
  const refusal = client && {
    why: `it accepts no token of the client ${quote(client.clientId)}; check the scope in "auth", and ask its operator what this client may do`,
  }
  const failed = (failure: McpFailure) => close().then(() => (failure.needsLogin && refusal) || failure)
  if ('why' in transport) return failed(transport)
  connection = await connect(transport, portsOf({ ...starting, closed: over.signal }), signal)
  if ('why' in connection) return failed(connection)
  const { closed } = connection
  const store = openDefinitions(setup.paths.home)
  let isStale = true
  let known: ReadonlyMap<string, string> = new Map()
  connection.onListChanged(() => {
    isStale = true
  })
  const live: LiveServer = {
    connection,
    sandbox,
    async digests(asking) {
      if (!isStale) return known
      isStale = false
      const listed = await definitionsOf(live.connection, asking)
      if ('why' in listed) {
        isStale = true
        return listed
      }
      store.keepSeen(server.key, listed)
      known = new Map(listed.tools.map((tool) => [tool.name, toolDigest(tool)]))
      return known
    },
  }
  const first = await live.digests(signal)
  if ('why' in first) return failed(first)
  closed.addEventListener('abort', () => void close(), { once: true })
  kept.close = close
  return live
}

export async function definitionsOf(connection: McpConnection, signal: AbortSignal): Promise<Definitions | McpFailure> {
  const tools = await connection.tools(signal)
  if ('why' in tools) return tools
  // A server whose other two lists fail works as well.
  const [resources, prompts] = [await connection.resources(signal), await connection.prompts(signal)]
  return {
    server: connection.server,
    tools: tools.items,
    resources: 'why' in resources ? [] : resources.items,
    prompts: 'why' in prompts ? [] : prompts.items,
    refused: tools.refused,
  }
}

export function portsOf({ server, setup, maxBytes, policy, own, cwd, closed }: Starting & { readonly closed: AbortSignal }): McpPorts {
  const { permissions, key } = server
  const access = permissions.files === 'write' ? { writable: true as const } : {}
  const folders = permissions.folders.map((path) => ({ path: path.replace(/^~(?=\/)/, policy.home), ...access }))
  const to = expanded(server, setup)
  const state = stateFolder(setup.paths.home, key)
  return {
    start: ({ argv, env }, listener) =>
      startLineProcess({
        ...listener,
        spawn: own.spawn,
        closed,
        plan: {
          argv,
          cwd,
          env: { ...cleanEnvironment({ home: cwd }), ...env },
          network: expandHosts(permissions.hosts),
          readablePaths: [...(cwd === state ? [] : [{ path: state, writable: true as const }]), ...folders],
          readOnly: permissions.files === 'read',
        },
      }),
    fetch: guardedFetch({ policy, url: 'url' in to ? to.url : 'https://localhost/' }),
    ...('url' in to ? { auth: tokensOf(server, setup) } : {}),
    version: setup.context.version ?? '0',
    maxBytes,
    callTimeoutMs: setup.config.limits.toolTimeoutS * 1_000,
  }
}

/** Loads the login with the first request to a server at an address. */
function tokensOf(server: McpServer, setup: Setup): McpPorts['auth'] {
  const tokens = lazy(async () => (await import('./mcp-login.ts')).tokensFor(server, setup))
  return {
    token: async () => (await tokens.get())?.token(),
    onUnauthorized: async (refused) => (await tokens.get())?.onUnauthorized?.(refused),
  }
}
