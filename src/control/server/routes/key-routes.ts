/** Makes and revokes secrets, each shown once: the keys of agents and the tokens of operators; and says whose a secret is. */

import { z } from '@hono/zod-openapi'
import { json, plain } from '../../../http/answers/shapes.ts'
import { agentKey, identity, newAgentKey, newOperatorToken, operatorToken } from '../../contract/fleet-shapes.ts'
import { name } from '../../contract/task-shapes.ts'
import { controlRoute, prefix } from '../access/control-route.ts'
import type { ControlApi, ControlServer } from '../control-server.ts'
import { agentAt, keyAt, madeAt, nothing } from '../request-shapes.ts'

const newOperator = z.strictObject({ name })

export function keyRoutes(app: ControlApi, { plane }: ControlServer): void {
  const { fleet, access } = plane
  app.openapi(
    controlRoute({
      method: 'get',
      path: `${prefix}/whoami`,
      summary: 'Whose credential is this, and at which control plane? A worker asks for its agent and role',
      responses: { 200: json(identity, 'The sender') },
    }),
    async (c) => c.json(plain(await access.identityOf(c.var.caller)), 200),
  )
  app.openapi(
    controlRoute({
      method: 'get',
      path: `${prefix}/agents/{id}/keys`,
      summary: 'The keys of an agent, without their secrets',
      request: { params: agentAt },
      responses: { 200: json(z.object({ keys: z.array(agentKey) }), 'The keys') },
    }),
    async (c) => c.json({ keys: plain(await fleet.keys(c.var.caller, c.req.valid('param').id)) }, 200),
  )
  app.openapi(
    controlRoute(
      {
        method: 'post',
        path: `${prefix}/agents/{id}/keys`,
        summary: 'Make a key; its secret is shown this once',
        request: { params: agentAt, body: json(nothing, 'Nothing') },
        responses: { 201: json(newAgentKey, 'The key') },
      },
      'secret',
    ),
    async (c) => c.json(plain(await fleet.newKey(c.var.caller, c.req.valid('param').id)), 201),
  )
  app.openapi(
    controlRoute(
      {
        method: 'post',
        path: `${prefix}/agents/{id}/keys/rotate`,
        summary: 'Make a key and revoke all others; running leases stay',
        request: { params: agentAt, body: json(nothing, 'Nothing') },
        responses: { 201: json(newAgentKey, 'The key') },
      },
      'secret',
    ),
    async (c) => c.json(plain(await fleet.rotateKey(c.var.caller, c.req.valid('param').id)), 201),
  )
  app.openapi(
    controlRoute({
      method: 'delete',
      path: `${prefix}/agents/{id}/keys/{keyId}`,
      summary: 'Revoke a key; the leases of the agent are released',
      request: { params: keyAt },
      responses: { 200: json(agentKey, 'It is revoked') },
    }),
    async (c) => {
      const { id, keyId } = c.req.valid('param')
      return c.json(plain(await fleet.revokeKey(c.var.caller, id, keyId)), 200)
    },
  )
  app.openapi(
    controlRoute({
      method: 'get',
      path: `${prefix}/operators`,
      summary: 'The tokens of operators, without their secrets',
      responses: { 200: json(z.object({ operators: z.array(operatorToken) }), 'The tokens') },
    }),
    async (c) => c.json({ operators: plain(await access.operators(c.var.caller)) }, 200),
  )
  app.openapi(
    controlRoute(
      {
        method: 'post',
        path: `${prefix}/operators`,
        summary: 'Make an operator token; its secret is shown this once',
        request: { body: json(newOperator, 'For whom') },
        responses: { 201: json(newOperatorToken, 'The token') },
      },
      'secret',
    ),
    async (c) => c.json(plain(await access.newOperator(c.var.caller, c.req.valid('json').name)), 201),
  )
  app.openapi(
    controlRoute({
      method: 'delete',
      path: `${prefix}/operators/{id}`,
      summary: 'Revoke an operator token; its sessions end with it',
      request: { params: madeAt },
      responses: { 200: json(operatorToken, 'It is revoked'), 409: { description: 'It is the last one' } },
    }),
    async (c) => c.json(plain(await access.revokeOperator(c.var.caller, c.req.valid('param').id)), 200),
  )
}
