/** Asks the control plane about agents, their keys, operators and receipts. */

import type {
  Agent,
  AgentDraft,
  AgentKey,
  AgentPatch,
  Identity,
  NewAgentKey,
  NewOperatorToken,
  OperatorToken,
} from '../contract/fleet-shapes.ts'
import type { Input } from './inputs.ts'
import type { Transport } from './transport.ts'

export type AgentReceipts = {
  readonly agent_id: string
  readonly receipts: Record<string, unknown> | null
  readonly reported_at: string | null
}

export type FleetClient = {
  /** Whose token this client has. */
  whoAmI(): Promise<Identity>
  list(): Promise<readonly Agent[]>
  get(id: string): Promise<Agent>
  add(draft: Input<AgentDraft, 'heartbeat_enabled' | 'description' | 'daily_tokens'>): Promise<Agent>
  edit(id: string, patch: AgentPatch): Promise<Agent>
  remove(id: string): Promise<void>
  pause(id: string, reason?: string): Promise<Agent>
  resume(id: string): Promise<Agent>
  wake(id: string): Promise<Agent>
  report(id: string, worker: Record<string, unknown>, receipts?: Record<string, unknown>): Promise<Agent>
  keys(id: string): Promise<readonly AgentKey[]>
  newKey(id: string): Promise<NewAgentKey>
  revokeKey(id: string, keyId: string): Promise<AgentKey>
  rotateKey(id: string): Promise<NewAgentKey>
  receipts(): Promise<readonly AgentReceipts[]>
  operators(): Promise<readonly OperatorToken[]>
  newOperator(name: string): Promise<NewOperatorToken>
  revokeOperator(id: string): Promise<OperatorToken>
}

export function fleetClient({ json }: Transport): FleetClient {
  const at = (id: string, rest = '') => `agents/${encodeURIComponent(id)}${rest}`
  const get = <T>(path: string) => json<T>({ method: 'GET', path })
  const post = <T>(path: string, body: unknown = {}, repeatable = false) => json<T>({ method: 'POST', path, body, repeatable })

  return {
    whoAmI: () => get('whoami'),
    list: async () => (await get<{ agents: Agent[] }>('agents')).agents,
    get: (id) => get(at(id)),
    add: (draft) => post('agents', draft),
    edit: (id, body) => json({ method: 'PATCH', path: at(id), body }),
    remove: async (id) => void (await json({ method: 'DELETE', path: at(id) })),
    pause: (id, reason = '') => post(at(id, '/pause'), { reason }, true),
    resume: (id) => post(at(id, '/resume'), {}, true),
    wake: (id) => post(at(id, '/wake'), {}, true),
    report: (id, worker, receipts) => post(at(id, '/report'), { worker, ...(receipts ? { receipts } : {}) }, true),
    keys: async (id) => (await get<{ keys: AgentKey[] }>(at(id, '/keys'))).keys,
    newKey: (id) => post(at(id, '/keys')),
    revokeKey: (id, keyId) => json({ method: 'DELETE', path: at(id, `/keys/${encodeURIComponent(keyId)}`) }),
    rotateKey: (id) => post(at(id, '/keys/rotate')),
    receipts: async () => (await get<{ receipts: AgentReceipts[] }>('receipts/status')).receipts,
    operators: async () => (await get<{ operators: OperatorToken[] }>('operators')).operators,
    newOperator: (name) => post('operators', { name }),
    revokeOperator: (id) => json({ method: 'DELETE', path: `operators/${encodeURIComponent(id)}` }),
  }
}
