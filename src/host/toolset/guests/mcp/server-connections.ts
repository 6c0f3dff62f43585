/**
 * Keeps the connections of a host to MCP servers: one a server, opened by its first use, and after failures later and later. A server that
 * runs on this machine is confined to what was approved for it.
 */

import { mkdirSync } from 'node:fs'
import { lazy } from '../../../../kit/lazy.ts'
import { sha256 } from '../../../../kit/sha256.ts'
import type {
  Connect,
  McpConnection,
  McpFailure,
  McpListName,
  McpPorts,
  McpToolDefinition,
  McpTransport,
} from '../../../../mcp/contract.ts'
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
  readonly sandbox?: SandboxName
  /** Asks again what the server offers if it said that this changed. @returns the digest of each definition by name */
  digests(signal: AbortSignal): Promise<ReadonlyMap<string, string> | McpFailure>
}

export type ConnectionDeps = { readonly setup: Setup; readonly sandboxOn: ToolDeps['sandboxOn']; readonly maxBytes: number }

export type McpConnections = {
  /** Opens the connection, or returns the open one. Never rejects. */
  use(server: McpServer, deps: ConnectionDeps, signal: AbortSignal): Promise<LiveServer | McpFailure>
  /** Ends the connection of this server, if there is one. */
  end(key: string): Promise<void>
  close(): Promise<void>
}

/** Returns the connections that these guests keep; the first call makes them. */
export function connectionsOf(guests: GuestConnections): McpConnections {
  const { mcp = createConnections() } = guests
  guests.mcp = mcp
  if (isOurs(mcp)) return mcp
  throw new TypeError('these are not connections to MCP servers')
}

function isOurs(kept: object): kept is McpConnections {
  return 'use' in kept
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
const withLibrary: Connect = async (...given) => (await import('../../../../mcp/client/connect.ts')).connect(...given)

export function createConnections(connect = withLibrary): McpConnections {
  const all = new Map<string, Kept>()

  async function use(server: McpServer, deps: ConnectionDeps, signal: AbortSignal): Promise<LiveServer | McpFailure> {
    const policy = policyOf(deps.setup.config, deps.setup.paths, deps.setup.context.env)
    const state = stateFolder(deps.setup.paths.home, server.key)
    if (server.transport.kind === 'stdio') mkdirSync(state, { recursive: true, mode: 0o700 })
    // Without access to the workspace, the sandbox shows a folder of the server's own in its place.
    const place = server.permissions.files === 'none' ? state : policy.workspace
    const own = deps.sandboxOn(place)
    // Two conversations share a server only where it is started in the same way, in the same place, under the same sandbox.
    const kind = server.transport.kind === 'stdio' ? await own.kind() : undefined
    const key = JSON.stringify([server.key, sha256(startText(server)), policy.workspace, kind])
    const kept = all.get(key) ?? { server: server.key, failures: 0, notBefore: 0 }
    all.set(key, kept)
    clearTimeout(kept.idle)
    const wait = kept.notBefore - Date.now()
    if (kept.opening === undefined && wait > 0)
      return { why: `it failed ${kept.failures} times in a row; it is tried again in ${Math.ceil(wait / 1_000)} s` }
    if (kept.opening !== undefined) own.close()
    kept.opening ??= open({ server, deps, policy, own, kept, connect, signal, kind, cwd: place })
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

  const closeAll = async (which: (kept: Kept) => boolean) => {
    const chosen = [...all].filter(([, kept]) => which(kept))
    for (const [key, kept] of chosen) {
      all.delete(key)
      clearTimeout(kept.idle)
      await kept.opening
      await kept.close?.()
    }
  }
  return { use, end: (key) => closeAll(({ server }) => server === key), close: () => closeAll(() => true) }
}

type Opening = {
  readonly server: McpServer
  readonly deps: ConnectionDeps
  readonly policy: Policy
  readonly own: ReturnType<ToolDeps['sandboxOn']>
  readonly kept: Kept
  readonly connect: Connect
  readonly signal: AbortSignal
  readonly kind: SandboxName | undefined
  readonly cwd: string
}

async function open({ server, deps, policy, own, kept, connect, signal, kind, cwd }: Opening): Promise<LiveServer | McpFailure> {
  const { setup } = deps
  const over = new AbortController()
  const close = async (connection?: McpConnection) => {
    kept.opening = undefined
    kept.close = undefined
    await connection?.close()
    over.abort()
    own.close()
  }
  const transport = expanded(server, setup)
  if ('why' in transport) {
    await close()
    return transport
  }
  const connection = await connect(transport, portsOf({ server, deps, policy, own, cwd, closed: over.signal }), signal)
  if ('why' in connection) {
    await close()
    return connection
  }
  const listed = await definitionsOf(connection, signal)
  if ('why' in listed) {
    await close(connection)
    return listed
  }
  const store = openDefinitions(setup.paths.home)
  const state = { digests: digestsOf(listed.tools), isStale: false }
  store.keepSeen(server.key, listed)
  connection.onListChanged(() => {
    state.isStale = true
  })
  connection.closed.addEventListener('abort', () => void close(), { once: true })
  kept.close = () => close(connection)
  return {
    connection,
    ...(kind ? { sandbox: kind } : {}),
    async digests(asking) {
      if (!state.isStale) return state.digests
      state.isStale = false
      const again = await definitionsOf(connection, asking)
      if ('why' in again) {
        state.isStale = true
        return again
      }
      state.digests = digestsOf(again.tools)
      store.keepSeen(server.key, again)
      return state.digests
    },
  }
}

function digestsOf(tools: readonly McpToolDefinition[]): ReadonlyMap<string, string> {
  return new Map(tools.map((tool) => [tool.name, toolDigest(tool)]))
}

export async function definitionsOf(connection: McpConnection, signal: AbortSignal): Promise<Definitions | McpFailure> {
  const { server } = connection
  const has = (list: McpListName) => server.offers.includes(list)
  const none = { items: [], refused: [] }
  const tools = has('tools') ? await connection.tools(signal) : none
  if ('why' in tools) return tools
  const resources = has('resources') ? await connection.resources(signal) : none
  const prompts = has('prompts') ? await connection.prompts(signal) : none
  // A server without these two works as well.
  const [found, asked] = ['why' in resources ? none : resources, 'why' in prompts ? none : prompts]
  return { server, tools: tools.items, resources: found.items, prompts: asked.items, refused: tools.refused }
}

type Ports = Omit<Opening, 'kept' | 'connect' | 'signal' | 'kind'> & { readonly closed: AbortSignal }

function portsOf({ server, deps, policy, own, cwd, closed }: Ports): McpPorts {
  const { setup, maxBytes } = deps
  const { permissions, transport } = server
  const isWriter = permissions.files === 'write'
  const folders = permissions.folders.map((path) => path.replace(/^~(?=\/)/, policy.home))
  const to = expanded(server, setup)
  const url = 'url' in to ? to.url : 'https://localhost/'
  const state = stateFolder(setup.paths.home, server.key)
  return {
    start: (command: Extract<McpTransport, { kind: 'stdio' }>, listener) =>
      startLineProcess({
        ...listener,
        spawn: own.spawn,
        closed,
        plan: {
          argv: command.argv,
          cwd,
          env: { ...cleanEnvironment({ home: cwd }), ...command.env },
          network: expandHosts(permissions.hosts),
          readablePaths: [
            ...(cwd === state ? [] : [{ path: state, writable: true as const }]),
            ...folders.map((path) => (isWriter ? { path, writable: true as const } : { path })),
          ],
          readOnly: permissions.files === 'read',
        },
      }),
    fetch: guardedFetch({ policy, url }),
    ...(transport.kind === 'stdio' ? {} : { auth: tokensOf(server, setup) }),
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
