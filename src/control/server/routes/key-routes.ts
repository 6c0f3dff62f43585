/** Makes and revokes secrets, each shown once: the keys of agents and the tokens of operators; and says whose a secret is. */

import { z } from '@hono/zod-openapi'
import { agentKey, identity, newAgentKey, newOperatorToken, operatorToken } from '../../contract/fleet-shapes.ts'
import { name } from '../../contract/task-shapes.ts'
import { addRoute } from '../access/control-route.ts'
import type { ControlApi, ControlServer } from '../control-server.ts'
import { agentAt, keyAt, madeAt, nothing } from '../request-shapes.ts'

const newOperator = z.strictObject({ name })
const madeKey = { params: agentAt, body: [nothing, 'Nothing'], gives: [newAgentKey, 'The key'], status: 201, replay: 'secret' } as const

export function keyRoutes(app: ControlApi, { plane }: ControlServer): void {
  const { fleet, access } = plane
  addRoute(app, 'get', '/whoami', {
    summary: 'Whose credential is this, and at which control plane? A worker asks for its agent and role',
    gives: [identity, 'The sender'],
    answer: ({ caller }) => access.identityOf(caller),
  })
  addRoute(app, 'get', '/agents/{id}/keys', {
    summary: 'The keys of an agent, without their secrets',
    params: agentAt,
    gives: [z.object({ keys: z.array(agentKey) }), 'The keys'],
    answer: async ({ caller, params }) => ({ keys: await fleet.keys(caller, params.id) }),
  })
  addRoute(app, 'post', '/agents/{id}/keys', {
    summary: 'Make a key; its secret is shown this once',
    ...madeKey,
    answer: ({ caller, params }) => fleet.newKey(caller, params.id),
  })
  addRoute(app, 'post', '/agents/{id}/keys/rotate', {
    summary: 'Make a key and revoke all others; running leases stay',
    ...madeKey,
    answer: ({ caller, params }) => fleet.rotateKey(caller, params.id),
  })
  addRoute(app, 'delete', '/agents/{id}/keys/{keyId}', {
    summary: 'Revoke a key; the leases of the agent are released',
    params: keyAt,
    gives: [agentKey, 'It is revoked'],
    answer: ({ caller, params }) => fleet.revokeKey(caller, params.id, params.keyId),
  })
  addRoute(app, 'get', '/operators', {
    summary: 'The tokens of operators, without their secrets',
    gives: [z.object({ operators: z.array(operatorToken) }), 'The tokens'],
    answer: async ({ caller }) => ({ operators: await access.operators(caller) }),
  })
  addRoute(app, 'post', '/operators', {
    summary: 'Make an operator token; its secret is shown this once',
    body: [newOperator, 'For whom'],
    gives: [newOperatorToken, 'The token'],
    status: 201,
    replay: 'secret',
    answer: ({ caller, body }) => access.newOperator(caller, body.name),
  })
  addRoute(app, 'delete', '/operators/{id}', {
    summary: 'Revoke an operator token; its sessions end with it',
    params: madeAt,
    gives: [operatorToken, 'It is revoked'],
    others: { 409: 'It is the last one' },
    answer: ({ caller, params }) => access.revokeOperator(caller, params.id),
  })
}
