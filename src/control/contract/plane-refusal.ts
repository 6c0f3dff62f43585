/** Describes why the control plane refuses a request: a word for programs, a sentence for people, and facts. */

export const refusalCodes = [
  'bad_request',
  'unauthorized',
  'forbidden',
  'not_found',
  'conflict',
  'version_conflict',
  'lease_lost',
  'already_decided',
  'in_doubt',
  'budget_exceeded',
  'agent_paused',
  'approval_required',
  'dependency_cycle',
  'idempotency_mismatch',
  'too_large',
  'too_many',
  'unavailable',
] as const

export type RefusalCode = (typeof refusalCodes)[number]

/** Only `server/` knows which status a code has. */
export class PlaneRefusal extends Error {
  constructor(
    readonly code: RefusalCode,
    message: string,
    /** Facts for programs: they become `error.details`; `retry_after_ms` becomes a field of its own. */
    readonly details: { readonly [name: string]: unknown; readonly retry_after_ms?: number } = {},
  ) {
    super(message)
  }
}
