/** Asks the control plane about runs: their logs, artifacts, manifests and the session lines of agents. */

import type { ListedRun, Run, RunQuery, SessionLine } from '../contract/run-shapes.ts'
import type { Transport } from './transport.ts'

export type Delivery = {
  readonly manifest?: Record<string, unknown>
  readonly changes?: 'none' | 'waiting' | 'applied' | 'dropped'
  readonly skill?: string
}
export type Artifact = { readonly name: string; readonly digest: string; readonly bytes: number }

export type RunClient = {
  get(id: string): Promise<Run>
  list(query?: Partial<RunQuery>): Promise<{ readonly runs: readonly ListedRun[]; readonly next: string | null }>
  /** `at`: the byte where the piece begins; a piece sent twice is stored once. */
  appendLog(id: string, at: number, piece: string): Promise<{ readonly log_bytes: number; readonly log_truncated: boolean }>
  /** Bytes `from` up to and without `to` (default: the end). */
  log(id: string, from?: number, to?: number): Promise<{ readonly bytes: Uint8Array; readonly total: number }>
  deliver(id: string, delivery: Delivery): Promise<Run>
  /** `body` is base64, `digest` the SHA-256 of the bytes in hex. */
  putArtifact(id: string, artifact: { readonly name: string; readonly digest: string; readonly body: string }): Promise<Artifact>
  /** The bytes as they were delivered. */
  artifact(id: string, name: string): Promise<{ readonly digest: string; readonly bytes: Uint8Array }>
  addSession(agentId: string, line: SessionLine): Promise<void>
  sessions(agentId: string, limit?: number): Promise<readonly SessionLine[]>
}

export function runClient({ json, send }: Transport): RunClient {
  const at = (id: string, rest = '') => `runs/${encodeURIComponent(id)}${rest}`
  const artifactAt = (id: string, name: string) => at(id, `/artifacts/${encodeURIComponent(name)}`)
  const sessionsAt = (agentId: string) => `agents/${encodeURIComponent(agentId)}/sessions`
  return {
    get: (id) => json({ method: 'GET', path: at(id) }),
    list: (query = {}) => json({ method: 'GET', path: 'runs', query }),
    appendLog: (id, from, piece) =>
      json({ method: 'POST', path: at(id, '/log'), body: { at: from, piece }, anyText: true, repeatable: true }),
    async log(id, from = 0, to) {
      const response = await send({ method: 'GET', path: at(id, '/log'), query: { from, to } })
      return { bytes: await response.bytes(), total: Number(response.headers.get('x-log-bytes') ?? 0) }
    },
    deliver: (id, body) => json({ method: 'POST', path: at(id, '/deliver'), body, repeatable: true }),
    putArtifact: (id, { name, ...body }) => json({ method: 'PUT', path: artifactAt(id, name), body }),
    async artifact(id, name) {
      const response = await send({ method: 'GET', path: artifactAt(id, name) })
      return { bytes: await response.bytes(), digest: response.headers.get('x-digest-sha256') ?? '' }
    },
    addSession: async (agentId, body) =>
      void (await json({
        method: 'POST',
        path: sessionsAt(agentId),
        body,
        headers: { 'idempotency-key': crypto.randomUUID() },
        repeatable: true,
      })),
    sessions: async (agentId, limit) =>
      (await json<{ sessions: SessionLine[] }>({ method: 'GET', path: sessionsAt(agentId), query: { limit } })).sessions,
  }
}
