/** Exports the registry of MCP servers: `import { createMcpRegistry } from 'braidclaw/mcp'`. It runs in Bun, and its servers in the sandbox. */

import { channelRows } from '../../channels/list.ts'
import { createHybridIndex, type Entry, paramsOf, type Why } from '../../discovery/hybrid-index.ts'
import { type HostOptions, setUpFor } from '../../host/open/library.ts'
import { policyOf } from '../../host/setup/effective-policy.ts'
import type { McpPermissions, McpServer } from '../../host/toolset/guests/mcp/configured-servers.ts'
import { createConnections } from '../../host/toolset/guests/mcp/server-connections.ts'
import { createConfinement } from '../../host/toolset/sandbox/command-sandbox.ts'
import { isJsonObject, type JsonObject } from '../../kit/json.ts'
import { lazy } from '../../kit/lazy.ts'
import { didYouMean, quote } from '../../kit/text.ts'
import type * as mcp from '../../mcp/contract.ts'

/** `token` is sent as `Authorization: Bearer …`. */
export type AuthConfig = { readonly token?: string; readonly headers?: Readonly<Record<string, string>> }

/** A command runs in the sandbox: without `permissions` it sees no folder but one of its own, and reaches no host. */
export type MCPServerConfig = {
  readonly id: string
  readonly name: string
  readonly transport: 'http' | 'stdio'
  readonly url?: string
  readonly command?: string[]
  readonly auth?: AuthConfig
  readonly permissions?: Partial<McpPermissions>
}

/** `server` is what the server says about itself. */
export type MCPClient = { readonly id: string; readonly server: mcp.McpServerInfo }
/** Defaults: 5 hits, of all servers. */
export type SearchOptions = { readonly limit?: number; readonly serverId?: string }
export type MCPMatch<Name extends string, Definition> = Readonly<Record<Name, Definition> & { serverId: string; score: number; why: Why }>
export type MCPRegistry = ReturnType<typeof createMcpRegistry>

type Definition = mcp.McpToolDefinition | mcp.McpResourceDefinition | mcp.McpPromptDefinition

const lists = ['tools', 'resources', 'prompts'] as const

/** Opens the servers of the list, and keeps in the index what they offer. */
function createServers(options: HostOptions, index: ReturnType<typeof createDefinitions>['index'], signal: AbortSignal) {
  const listed = new Map<string, { readonly config: MCPServerConfig; readonly server: McpServer }>()
  const followed = new WeakSet<mcp.McpConnection>()
  const host = lazy(async () => {
    const setup = setUpFor({ ...options, channels: channelRows }, {})
    const policy = policyOf(setup.config, setup.paths, setup.context.env)
    const sandboxOn = (workspace: string) => createConfinement('auto', { setup, policy: { ...policy, workspace } })
    return { connections: createConnections(), deps: { setup, sandboxOn, maxBytes: setup.config.limits.maxResultBytes } }
  })

  /** Returns the open connection of a server, or opens it again. */
  async function connectionOf(id: string): Promise<mcp.McpConnection> {
    const found = listed.get(id)
    if (!found) throw new Error(`no MCP server ${quote(id)}${didYouMean(id, [...listed.keys()]) || '; add it with servers.add'}`)
    const { connections, deps } = await host.get()
    const live = await connections.use(found.server, deps, signal)
    if ('why' in live) throw new Error(`the MCP server ${id} cannot be used: ${live.why}`)
    const { connection } = live
    if (followed.has(connection)) return connection
    followed.add(connection)
    connection.onListChanged((list) => void read(connection, list, id))
    await Promise.all(lists.map((list) => read(connection, list, id)))
    return connection
  }

  async function read(connection: mcp.McpConnection, list: mcp.McpListName, id: string): Promise<void> {
    const found = await connection[list](signal)
    if ('why' in found || !listed.has(id)) return
    index.remove(({ kind, source }) => source === id && kind === list)
    index.put(found.items.map((item: Definition) => entryOf(list, item, id)))
  }

  return {
    connectionOf,
    /** Connects, and reads what the server offers. */
    async add(config: MCPServerConfig): Promise<MCPClient> {
      const { id } = config
      if (listed.has(id)) throw new Error(`there is an MCP server ${quote(id)} already; remove it first`)
      listed.set(id, { config, server: serverOf(config) })
      try {
        return { id, server: (await connectionOf(id)).server }
      } catch (error) {
        listed.delete(id)
        throw error
      }
    },
    /** Ends the server, and forgets what it offers. */
    async remove(serverId: string): Promise<void> {
      const found = listed.get(serverId)
      listed.delete(serverId)
      index.remove(({ source }) => source === serverId)
      if (found) await (await host.get()).connections.end(found.server.key)
    },
    list: (): MCPServerConfig[] => [...listed.values()].map(({ config }) => config),
  }
}

/** Opens nothing before the first server is added. A method rejects with an Error that says why; a call that failed is a result. */
export function createMcpRegistry(options: HostOptions = {}) {
  const { signal } = new AbortController()
  const { index, tools, resources, prompts } = createDefinitions()
  const { connectionOf, ...servers } = createServers(options, index, signal)

  return {
    tools: {
      ...tools,
      execute: async (name: string, args: unknown, serverId: string): Promise<mcp.McpContent> =>
        (await connectionOf(serverId)).callTool(name, argumentsIn(name, args), { signal }),
    },
    resources: {
      ...resources,
      read: async (uri: string, serverId: string) => (await connectionOf(serverId)).readResource(uri, { signal }),
      /** Yields when the resource changed; leaving the loop ends the subscription. */
      async *subscribe(uri: string, serverId: string): AsyncGenerator<{ readonly uri: string }> {
        const over = new AbortController()
        try {
          yield* (await connectionOf(serverId)).subscribe(uri, over.signal)
        } finally {
          over.abort()
        }
      },
    },
    prompts: {
      ...prompts,
      async get(name: string, args: unknown, serverId: string): Promise<mcp.McpContent> {
        const texts = Object.entries(argumentsIn(name, args ?? {})).map(([key, value]) => [key, String(value)])
        return (await connectionOf(serverId)).getPrompt(name, Object.fromEntries(texts), { signal })
      },
    },
    /** Returns the five of each kind that fit an intent best. It asks no server. */
    async discoverRelevant(intent: string) {
      return { tools: await tools.search(intent), resources: await resources.search(intent), prompts: await prompts.search(intent) }
    },
    servers,
  }
}

/** Keeps what the servers offer, to be found by an intent. */
function createDefinitions() {
  const index = createHybridIndex<Entry & { readonly item: Definition }>()
  const known = <Name extends string, Kind extends Definition>(list: mcp.McpListName, name: Name) => ({
    async search(query: string, { limit, serverId }: SearchOptions = {}): Promise<MCPMatch<Name, Kind>[]> {
      const accept = ({ kind, source }: Entry) => kind === list && (serverId === undefined || source === serverId)
      const hits = index.search(query, { limit, accept })
      return hits.map(({ entry: { item, source }, score, why }) => ({ [name]: item, serverId: source, score, why }) as MCPMatch<Name, Kind>)
    },
    /** Makes one known by hand; those that a server lists are known from the start. */
    register: async (item: Kind, serverId: string) => index.put([entryOf(list, item, serverId)]),
  })
  return {
    index,
    tools: known<'tool', mcp.McpToolDefinition>('tools', 'tool'),
    resources: known<'resource', mcp.McpResourceDefinition>('resources', 'resource'),
    prompts: known<'prompt', mcp.McpPromptDefinition>('prompts', 'prompt'),
  }
}

function entryOf(kind: mcp.McpListName, item: Definition, source: string) {
  const [name, params] = ['uri' in item ? item.uri : item.name, 'inputSchema' in item ? paramsOf(item.inputSchema) : '']
  return { kind, source, name, description: item.description ?? '', params, context: item.name, item }
}

function argumentsIn(name: string, args: unknown): JsonObject {
  if (isJsonObject(args)) return args
  throw new TypeError(`${name} takes its arguments as an object of JSON values; got ${quote(args)}`)
}

/** @throws Error that says what the configuration lacks */
function serverOf({ id, name, transport, url = '', command = [], auth = {}, permissions }: MCPServerConfig): McpServer {
  const isHttp = transport === 'http'
  if (isHttp ? !/^https?:/.test(url) : command.length === 0)
    throw new Error(`the MCP server ${quote(id)} needs ${isHttp ? 'an http or https address as "url"' : 'a program as "command"'}`)
  const headers = { ...(auth.token !== undefined && { authorization: `Bearer ${auth.token}` }), ...auth.headers }
  return {
    ...{ id, name, origin: 'braidclaw/mcp', key: `program:${id}`, enabled: true },
    transport: isHttp ? { kind: 'http', url, headers } : { kind: 'stdio', argv: command, env: {} },
    permissions: { files: 'none', folders: [], hosts: [], variables: [], ...permissions },
  }
}
