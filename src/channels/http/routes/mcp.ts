/** Answers clients of the Model Context Protocol at /mcp, in the streamable HTTP of both eras, and about the servers that are configured here. */

import { z } from '@hono/zod-openapi'
import { patchText } from '../../../host/changes/patch-text.ts'
import { FailureError } from '../../../host/failure.ts'
import { startText } from '../../../host/toolset/guests/mcp/approved-definitions.ts'
import { type Mcp, type McpStatus, openMcp } from '../../../host/toolset/guests/mcp/open-mcp.ts'
import { addJsonRoute, anyScope, guarding, inScope } from '../../../http/api.ts'
import { credentialEnd } from '../../../http/callers.ts'
import { HttpError } from '../../../http/http-error.ts'
import { atAsyncEnd } from '../../../kit/errors.ts'
import { canonical } from '../../../kit/json.ts'
import { lazy } from '../../../kit/lazy.ts'
import { sha256 } from '../../../kit/sha256.ts'
import type { McpOffer, ServerOptions } from '../../../mcp/server/mcp-server.ts'
import { createHomeOffer } from '../../mcp/home-offer.ts'
import { reached } from '../../mcp-command.ts'
import { type Caller, ownerOf, signatureOf } from '../access.ts'
import { mcpServer, mcpServerShown } from '../answer-shapes.ts'
import type { Gateway, GatewayApi } from '../gateway.ts'

/** Serves one token at all its requests. */
type Client = { readonly offer: McpOffer; readonly waiting: NonNullable<ServerOptions['waiting']> }

export function mcpRoutes(app: GatewayApi, { host, openConversations }: Gateway): void {
  const server = lazy(() => import('../../../mcp/server/mcp-server.ts'))
  const clients = new Map<string, Client>()
  const turns = { running: 0 }

  function openClient(caller: Caller): Client {
    const { access, scopes, id } = caller
    const has = (scope: string) => scopes.includes(scope) || scopes.includes('admin')
    const home = {
      ...{ host, options: { access }, name: signatureOf(caller), owner: ownerOf(caller) },
      may: { call: has('chat'), agent: has('chat'), read: has('read'), approve: has('approve') },
      sees: (conversationId: string) => openConversations.sees(caller, conversationId),
      begun: (conversationId: string) => (access.memory === 'own' ? host.tokens.own(conversationId, id) : undefined),
    }
    return { offer: createHomeOffer(home, turns), waiting: new Map() }
  }

  app.all('/mcp', guarding({ ...inScope(anyScope), replay: 'never' }), async ({ var: { caller }, env, req }) => {
    const key = JSON.stringify([caller.id, caller.access])
    const client = clients.get(key) ?? openClient(caller)
    clients.set(key, client)
    env.connection.stay()
    const limit = (over: AbortSignal) => {
      const ended = new AbortController()
      void credentialEnd(env.isInForce, over).then((isEnded) => isEnded && ended.abort())
      return AbortSignal.any([ended.signal, host.stopping, env.connection.disconnected])
    }
    const { answerRequest } = await server.get()
    return answerRequest(req.raw, env.json, client.offer, { waiting: client.waiting, limit })
  })
}

const named = { params: z.object({ id: z.string().max(64).openapi({ description: 'The id of the server' }) }) }
const tool = z.string().max(200).optional().openapi({ description: 'Only this tool of it' })

/** Answers about the MCP servers of others. A change decides what the model may call, so it needs the scope admin. */
export function mcpServerRoutes(app: GatewayApi, { host, setup }: Gateway): void {
  async function withServers<T>(work: (mcp: Mcp) => T | Promise<T>): Promise<T> {
    const mcp = openMcp({ setup })
    await using _end = atAsyncEnd(() => mcp.close())
    return await work(mcp)
  }
  const shown = (mcp: Mcp, id: string) => {
    const status = statusOf(mcp, id)
    return setup.redactor.value({ ...serverOut(status), seal: sealOf(status), patch: patchText(mcp.difference(id)) })
  }

  addJsonRoute(app, inScope('read'), 'get /mcp/servers', {
    summary: 'The MCP servers that are configured, and which of their tools are offered',
    gives: [z.object({ servers: z.array(mcpServer), problems: z.array(z.string()) }), 'The servers; none is started'],
    answer: () =>
      withServers((mcp) => {
        const { servers, problems, notices } = mcp.servers()
        const all = servers.map(({ id }) => serverOut(mcp.status(id)))
        return setup.redactor.value({ servers: all, problems: [...problems, ...notices] })
      }),
  })
  addJsonRoute(app, inScope('read'), 'get /mcp/servers/{id}', {
    summary: 'One MCP server, and how it differs from what was approved',
    ...named,
    gives: [mcpServerShown, 'The server'],
    answer: ({ params: { id } }) => withServers((mcp) => shown(mcp, id)),
  })
  addJsonRoute(app, inScope('admin'), 'patch /mcp/servers/{id}', {
    summary: 'Offer the tools of an approved server, or one of them, again or no longer',
    ...named,
    body: [z.strictObject({ enabled: z.boolean(), tool }), 'What changes'],
    gives: [mcpServerShown, 'The server'],
    answer: ({ params: { id }, body: { enabled, tool } }) =>
      withServers(async (mcp) => {
        statusOf(mcp, id)
        await mcp.enable(id, enabled, tool).catch(refuse)
        return shown(mcp, id)
      }),
  })
  addJsonRoute(app, inScope('admin'), 'post /mcp/servers/{id}/approve', {
    summary: 'Approve how the server starts and its tools, exactly as they were shown',
    ...named,
    body: [
      z.strictObject({ seal: z.string().max(64), tools: z.array(z.string().max(200)).max(10_000).optional() }),
      'The seal of what was shown',
    ],
    gives: [mcpServerShown, 'The server'],
    others: { 409: 'The server changed since it was shown; nothing was approved' },
    answer: ({ params: { id }, body: { seal, tools } }) =>
      withServers(async (mcp) => {
        const status = statusOf(mcp, id)
        if (sealOf(status) !== seal) throw new HttpError(409, 'changed', `${id} changed since it was shown; nothing was approved`)
        await mcp.approve(id, status, tools).catch(refuse)
        return shown(mcp, id)
      }),
  })
  addJsonRoute(app, inScope('admin'), 'post /mcp/servers/{id}/test', {
    summary: 'Ask the server what it offers now; a local one starts for it, in its sandbox. It approves nothing',
    ...named,
    gives: [mcpServerShown, 'The server'],
    others: { 502: 'The server cannot be reached, or gave no usable answer' },
    answer: ({ params: { id } }) =>
      withServers(async (mcp) => {
        statusOf(mcp, id)
        const asked = await mcp.probe(id, host.stopping)
        if ('why' in asked) throw new HttpError(502, 'mcp', setup.redactor.text(asked.why))
        return shown(mcp, id)
      }),
  })
}

/** @throws HttpError 404 when no server of that id is configured */
function statusOf(mcp: Mcp, id: string): McpStatus {
  try {
    return mcp.status(id)
  } catch (error) {
    return refuse(error, 404, 'not_found')
  }
}

function refuse(error: unknown, status = 409, code = 'not_open'): never {
  throw error instanceof FailureError ? new HttpError(status, code, error.message) : error
}

/** Covers everything that an approval of the server covers. */
function sealOf({ server, tools }: McpStatus): string {
  return sha256(canonical({ start: startText(server), tools: tools.map(({ name, digest = '' }) => [name, digest]) }))
}

/** Leaves out the values of headers and variables, which are keys as often as not. */
function serverOut({ server, state, seen, tools }: McpStatus): z.infer<typeof mcpServer> {
  const { id, origin, project = null, transport, permissions } = server
  const { files, folders, hosts, variables } = permissions
  return {
    ...{ id, state, origin, project, transport: transport.kind, reached: reached(server) },
    permissions: { files, folders: [...folders], hosts: [...hosts], variables: [...variables] },
    says: seen ? `${seen.server.name} ${seen.server.version}, revision ${seen.server.protocol}` : null,
    tools: tools.map(({ name, state, definition }) => ({ name, state, description: definition?.description ?? '' })),
    refused: (seen?.refused ?? []).map(({ name, why }) => ({ name, why })),
  }
}
