/** Lists who may use each route of the control plane. A route without a row here cannot be declared. */

import type { Caller } from '../contract/caller.ts'

/**
 * `all`: the plane decides which things the caller may use; `own`: only when the `{id}` of the path is its own task, run or agent. An
 * operator may use every route of the API but those that need a lease.
 */
type PermissionScope = 'all' | 'own'
export type Permission = {
  readonly operator?: 'all'
  readonly agent?: PermissionScope
  readonly run?: PermissionScope
  /** The shared secret may use exactly the seed's five routes. */
  readonly seed?: 'all'
}

const operator: Permission = { operator: 'all' }
const everybody: Permission = { operator: 'all', agent: 'all', run: 'all', seed: 'all' }
const run: Permission = { run: 'own' }

export const whoMay: { readonly [route: string]: Permission } = {
  'GET /state': everybody,
  'GET /tasks': everybody,
  'GET /approvals': everybody,
  'POST /hostd': everybody,
  'POST /activity': everybody,

  'POST /tasks': { operator: 'all', agent: 'all' },
  'POST /tasks/batch': { operator: 'all', agent: 'all' },
  'GET /tasks/{id}': { operator: 'all', agent: 'all', run: 'own' },
  'PATCH /tasks/{id}': operator,
  'POST /tasks/claim': { operator: 'all', agent: 'all' },
  'POST /tasks/{id}/beat': run,
  'POST /tasks/{id}/release': run,
  'POST /tasks/{id}/cancel': operator,
  'POST /tasks/{id}/retry': operator,
  'POST /tasks/{id}/resolve': operator,
  'GET /tasks/{id}/effects': { operator: 'all', agent: 'all', run: 'own' },
  'POST /tasks/{id}/effects': run,
  'POST /tasks/{id}/effects/done': run,
  'POST /tasks/{id}/effects/{key}/done': run,

  'GET /approvals/{id}': { operator: 'all', agent: 'all', run: 'all' },
  'POST /approvals/{id}/decision': operator,
  'POST /approvals/{id}/use': { agent: 'all', run: 'all' },

  'GET /activity': { operator: 'all', agent: 'all' },
  'GET /events': { operator: 'all', agent: 'all' },

  'GET /budget': operator,
  'GET /budget/ledger': operator,
  'PUT /budget': operator,
  'POST /budget/reserve': { run: 'all' },
  'POST /budget/settle': { run: 'all' },

  'GET /whoami': { operator: 'all', agent: 'all', run: 'all' },
  'GET /agents': operator,
  'POST /agents': operator,
  'GET /agents/{id}': { operator: 'all', agent: 'own', run: 'own' },
  'PATCH /agents/{id}': operator,
  'DELETE /agents/{id}': operator,
  'POST /agents/{id}/pause': operator,
  'POST /agents/{id}/resume': operator,
  'POST /agents/{id}/wake': operator,
  'POST /agents/{id}/report': { agent: 'own' },
  'GET /agents/{id}/keys': operator,
  'POST /agents/{id}/keys': operator,
  'POST /agents/{id}/keys/rotate': operator,
  'DELETE /agents/{id}/keys/{keyId}': operator,
  'GET /agents/{id}/sessions': { operator: 'all', agent: 'own', run: 'own' },
  'POST /agents/{id}/sessions': { agent: 'own', run: 'own' },

  'GET /runs': { operator: 'all', agent: 'all' },
  'GET /runs/{id}': { operator: 'all', agent: 'all', run: 'own' },
  'POST /runs/{id}/deliver': { operator: 'all', agent: 'all', run: 'own' },
  'GET /runs/{id}/log': { operator: 'all', agent: 'all', run: 'own' },
  'POST /runs/{id}/log': { agent: 'all', run: 'own' },
  'GET /runs/{id}/artifacts/{name}': { operator: 'all', agent: 'all', run: 'own' },
  'PUT /runs/{id}/artifacts/{name}': { agent: 'all', run: 'own' },

  'GET /schedules': operator,
  'POST /schedules': operator,
  'POST /schedules/{id}/enable': operator,
  'POST /schedules/{id}/disable': operator,
  'DELETE /schedules/{id}': operator,

  'GET /operators': operator,
  'POST /operators': operator,
  'DELETE /operators/{id}': operator,
  'GET /receipts/status': operator,
  'GET /hostd/ops': { operator: 'all', agent: 'all', run: 'all' },

  // These routes are outside of the API's prefix.
  'GET session': operator,
  'GET metrics': operator,
  'GET openapi.json': operator,
}

export function permissionScope(permission: Permission, kind: Caller['kind']): PermissionScope | undefined {
  return permission[kind]
}

/** Tells whether the `{id}` of a path names the caller's own task, run or agent. */
export function isOwn(caller: Caller, route: string, id: string): boolean {
  const [, collection] = /^[A-Z]+ \/(\w+)\//.exec(route) ?? []
  if (collection === 'tasks') return caller.kind === 'run' && caller.taskId === id
  if (collection === 'runs') return caller.kind === 'run' && caller.runId === id
  return collection === 'agents' && caller.kind !== 'operator' && caller.id === id
}
