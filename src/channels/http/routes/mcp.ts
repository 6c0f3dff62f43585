/** Answers clients of the Model Context Protocol at /mcp, in the streamable HTTP of both eras. */

import { anyScope, guarding, inScope } from '../../../http/api.ts'
import { credentialEnd } from '../../../http/callers.ts'
import { lazy } from '../../../kit/lazy.ts'
import type { McpOffer, ServerOptions } from '../../../mcp/server/mcp-server.ts'
import { createHomeOffer } from '../../mcp/home-offer.ts'
import { type Caller, ownerOf, signatureOf } from '../access.ts'
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
