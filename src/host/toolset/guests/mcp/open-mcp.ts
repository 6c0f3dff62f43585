/** Manages the MCP servers of a home: which are configured, which of their tools are approved, and what changed since. */

import { replaceFile } from '../../../../kit/files.ts'
import type { JsonObject } from '../../../../kit/json.ts'
import { sha256 } from '../../../../kit/sha256.ts'
import { didYouMean, quote } from '../../../../kit/text.ts'
import type { McpFailure, McpToolDefinition } from '../../../../mcp/contract.ts'
import type { ChangeSet } from '../../../../runtime/changes.ts'
import type { SandboxKind } from '../../../../sandbox/contract.ts'
import type { Setup } from '../../../api.ts'
import { FailureError } from '../../../failure.ts'
import { policyOf } from '../../../setup/effective-policy.ts'
import { createConfinement } from '../../sandbox/command-sandbox.ts'
import {
  type Definitions,
  differenceOfTexts,
  openDefinitions,
  type ServerApproval,
  type ServerState,
  serverState,
  startText,
  type ToolState,
  textsOf,
  toolDigest,
  toolState,
} from './approved-definitions.ts'
import { configuredServers, type McpPermissions, type McpServer, ownServerFile, serversIn } from './configured-servers.ts'
import { createConnections } from './server-connections.ts'

export type McpToolStatus = {
  readonly name: string
  readonly state: ToolState
  readonly digest?: string
  readonly definition?: McpToolDefinition
}

export type McpStatus = {
  readonly server: McpServer
  readonly state: ServerState
  /** Absent: the server was never asked. */
  readonly seen?: Definitions
  /** Approved tools that are gone stand among them. */
  readonly tools: readonly McpToolStatus[]
}

export type Mcp = ReturnType<typeof openMcp>

/** Nothing starts before a method says that it starts a server. Close it after use. */
export function openMcp({ setup, sandbox = 'auto' }: { readonly setup: Setup; readonly sandbox?: SandboxKind | undefined }) {
  const reader = createReader(setup)
  const { servers, find, statusOf, store } = reader
  const connections = createConnections()
  const policy = policyOf(setup.config, setup.paths, setup.context.env)
  const sandboxOn = (workspace: string) => createConfinement(sandbox, { setup, policy: { ...policy, workspace } })

  /** Asks the server what it offers, and keeps that on disk; a local server runs for it. It approves nothing. */
  async function probe(id: string, signal: AbortSignal): Promise<McpStatus | McpFailure> {
    const server = find(id)
    if (server.project !== undefined && store.read().get(server.key)?.start !== sha256(startText(server)))
      return {
        why: `${server.origin} of a project configures ${id}, and it never started here; look at it, and run: braidclaw mcp approve ${id}`,
      }
    const found = await connections.use(server, { setup, sandboxOn, maxBytes: setup.config.limits.maxResultBytes }, signal)
    if ('why' in found) return found.needsLogin ? { ...found, why: `${found.why}; run: braidclaw mcp login ${id}` } : found
    const digests = await found.digests(signal)
    return 'why' in digests ? digests : statusOf(server)
  }

  return {
    servers,
    find,
    status: (id: string) => statusOf(find(id)),
    probe,
    ...approvalsOf(reader),
    ...ownServersOf(reader),
    /** Lists the resources and prompts of approved servers, whose texts nobody approves. */
    items: () =>
      servers().servers.flatMap((server) => {
        const { state, seen } = statusOf(server)
        if (state !== 'approved' || seen === undefined) return []
        const source = `mcp:${server.id}`
        return [
          ...seen.resources.map(({ uri, description, name }) => {
            return { kind: 'mcp_resource', source, name: uri, description: `${name}: ${description}` }
          }),
          ...seen.prompts.map(({ name, description }) => ({ kind: 'mcp_prompt', source, name, description })),
        ]
      }),
    close: connections.close,
  }
}

type Reader = ReturnType<typeof createReader>

function createReader(setup: Setup) {
  const store = openDefinitions(setup.paths.home)

  /** Returns the servers with the permissions that were chosen when they were approved. */
  function servers(): ReturnType<typeof configuredServers> {
    const found = configuredServers(setup)
    const book = store.read()
    const approved = (server: McpServer) => ({ ...server, permissions: book.get(server.key)?.permissions ?? server.permissions })
    return { ...found, servers: found.servers.map(approved) }
  }

  /** @throws FailureError `usage` when there is no server of that id */
  function find(id: string): McpServer {
    const all = servers().servers
    const found = all.find((server) => server.id === id)
    if (found !== undefined) return found
    const ids = all.map((server) => server.id)
    const others = ids.length === 0 ? '; none is configured, run: braidclaw mcp add' : `; there are: ${ids.join(', ')}`
    throw new FailureError('usage', `no MCP server ${quote(id)}${didYouMean(id, ids) || others}`)
  }

  const statusOf = (server: McpServer): McpStatus => statusFrom(server, store.read().get(server.key), store.seen(server.key))
  return { setup, store, servers, find, statusOf }
}

function approvalsOf({ store, find }: Reader) {
  const change = (id: string, work: (server: McpServer, entry: ServerApproval | undefined) => ServerApproval) => {
    const server = find(id)
    return store.change((book) => void book.set(server.key, work(server, book.get(server.key))))
  }

  return {
    /** Lets the server start in the way in which it is configured now, with these permissions if they are given. It approves no tool. */
    allowStart: (id: string, permissions?: McpPermissions) =>
      change(id, (server, entry) => {
        const chosen = permissions ?? entry?.permissions
        const start = sha256(startText({ ...server, permissions: chosen ?? server.permissions }))
        return { tools: {}, off: [], ...entry, enabled: true, start, permissions: chosen }
      }),
    /**
     * Approves how the server starts and exactly the definitions of `status`, or those named in `tools`. @throws FailureError when the server
     * was never asked, has no such tool, or says something else by now
     */
    async approve(id: string, shown: McpStatus, tools?: readonly string[]): Promise<void> {
      const server = find(id)
      const seen = store.seen(server.key)
      if (seen === undefined) throw new FailureError('error', `${id} never said what it offers; run: braidclaw mcp test ${id}`)
      const now = new Map(seen.tools.map((tool) => [tool.name, toolDigest(tool)]))
      const chosen = tools ?? [...now.keys()]
      const unknown = chosen.find((name) => !now.has(name))
      if (unknown !== undefined)
        throw new FailureError('usage', `${id} has no tool ${quote(unknown)}${didYouMean(unknown, [...now.keys()])}`)
      const isShown = chosen.every((name) => shown.tools.find((tool) => tool.name === name)?.digest === now.get(name))
      if (!isShown || startText(shown.server) !== startText(server))
        throw new FailureError('error', `${id} changed while it was shown; nothing was approved`)
      const start = sha256(startText(server))
      await change(id, (_, entry) => ({
        ...{ ...entry, start, enabled: true },
        tools: { ...(tools && entry?.tools), ...Object.fromEntries(chosen.map((name) => [name, now.get(name) ?? ''])) },
        off: (entry?.off ?? []).filter((name) => !chosen.includes(name)),
      }))
      const approved = seen.tools.filter(({ name }) => chosen.includes(name))
      store.keepApproved(server.key, { ...(tools && store.approvedTexts(server.key)), ...textsOf(server, approved) })
    },
    /** Returns how the server and its tools differ from what was approved; everything is new for one that never was. */
    difference(id: string): ChangeSet {
      const server = find(id)
      return differenceOfTexts(store.approvedTexts(server.key), textsOf(server, store.seen(server.key)?.tools ?? []))
    },
    /** Offers the tools of a server again, or no longer; with `tool` only that one. */
    enable: (id: string, enabled: boolean, tool?: string) =>
      change(id, (_, entry) => {
        if (entry?.start === undefined) throw new FailureError('error', `${id} is not approved; run: braidclaw mcp approve ${id}`)
        if (tool === undefined) return { ...entry, enabled }
        if (!Object.hasOwn(entry.tools, tool))
          throw new FailureError('usage', `${id} has no approved tool ${quote(tool)}${didYouMean(tool, Object.keys(entry.tools))}`)
        const others = (entry.off ?? []).filter((name) => name !== tool)
        return { ...entry, off: enabled ? others : [...others, tool] }
      }),
  }
}

/** Returns what changes the servers of mcp.json in our home. */
function ownServersOf({ setup, store, servers, find }: Reader) {
  const file = ownServerFile(setup.paths.home)
  return {
    /** Writes a server into mcp.json of our home. @throws FailureError when one of that id is configured, or the table is wrong */
    async add(id: string, table: JsonObject): Promise<McpServer> {
      const other = servers().servers.find((server) => server.id === id)
      if (other !== undefined)
        throw new FailureError('usage', `${other.origin} has a server ${quote(id)} already; choose another id, or remove it`)
      const problems = configuredServers(setup, { [id]: table }).problems.filter((problem) => problem.startsWith(file))
      if (problems.length > 0) throw new FailureError('usage', problems)
      await store.exclusive(() => writeOwn(file, { [id]: table }))
      return find(id)
    },
    /** Forgets the approval, and takes the server out of mcp.json of our home. @returns the file that still configures it, if one does */
    async remove(id: string): Promise<string | undefined> {
      const server = find(id)
      await store.change((book) => void book.delete(server.key))
      store.forget(server.key)
      if (server.origin !== file) return server.origin
      await store.exclusive(() => writeOwn(file, { [id]: undefined }))
      return undefined
    },
  }
}

export function statusFrom(server: McpServer, entry: ServerApproval | undefined, seen: Definitions | undefined): McpStatus {
  const tools = (seen?.tools ?? []).map((definition): McpToolStatus => {
    const digest = toolDigest(definition)
    return { name: definition.name, state: toolState(entry, definition.name, digest), digest, definition }
  })
  const gone = Object.keys((seen && entry?.tools) ?? {}).filter((name) => !tools.some((tool) => tool.name === name))
  return {
    server,
    state: serverState(server, entry),
    seen,
    tools: [...tools, ...gone.map((name): McpToolStatus => ({ name, state: 'gone' }))],
  }
}

/** Changes servers of a file; one that is undefined goes. */
function writeOwn(file: string, changed: { readonly [id: string]: JsonObject | undefined }): void {
  const servers = serversIn(file)
  if (typeof servers === 'string') throw new FailureError('error', servers)
  replaceFile(file, `${JSON.stringify({ mcpServers: { ...servers, ...changed } }, null, 2)}\n`)
}
