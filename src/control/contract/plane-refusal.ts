/** Describes why the control plane refuses a request: a word for programs, a sentence for people, and facts. */

import { HttpError } from '../../http/http-error.ts'

/** Lists the codes with the status that HTTP gives them; 409 means that the state of a thing forbids the request. */
export const refusalStatuses = {
  bad_request: 400,
  unauthorized: 401,
  forbidden: 403,
  not_found: 404,
  conflict: 409,
  version_conflict: 409,
  lease_lost: 409,
  already_decided: 409,
  in_doubt: 409,
  budget_exceeded: 402,
  agent_paused: 409,
  approval_required: 403,
  dependency_cycle: 409,
  idempotency_mismatch: 422,
  too_large: 413,
  too_many: 429,
  unavailable: 503,
} as const

export type RefusalCode = keyof typeof refusalStatuses

export function isRefusalCode(code: unknown): code is RefusalCode {
  return typeof code === 'string' && Object.hasOwn(refusalStatuses, code)
}

export class PlaneRefusal extends Error {
  constructor(
    readonly code: RefusalCode,
    message: string,
    /** Holds facts for programs: they become `error.details`; `retry_after_ms` becomes a field of its own. */
    readonly details: { readonly [name: string]: unknown; readonly retry_after_ms?: number } = {},
  ) {
    super(message)
  }
}

/** Tells whether a connection failed, or the control plane is busy or restarting, so that another try may succeed. */
export function isPassing(error: unknown): boolean {
  return !(error instanceof PlaneRefusal) || error.code === 'unavailable' || error.code === 'too_many'
}

/** Lists the refusals of a caller, which may pass: a daemon that restarts or a proxy in its form may give one. */
const doubtful: readonly string[] = ['unauthorized', 'forbidden', 'not_found', 'bad_request']
const certainAfter = 3

/** Counts the refusals in a row, until `reset` after an answer. */
export function countRefusals() {
  const state = { refusals: 0 }
  return {
    /** Tells whether no other answer can be expected: refusals of another kind are final at once. */
    isFinal(error: unknown): boolean {
      if (error instanceof PlaneRefusal && !isPassing(error) && !doubtful.includes(error.code)) return true
      state.refusals = isPassing(error) ? 0 : state.refusals + 1
      return state.refusals >= certainAfter
    },
    reset(): void {
      state.refusals = 0
    },
  }
}

const heldRetries = { tries: 40, ms: 250 } as const

/** Tries again while calls of others, which end soon, have reserved the tokens that this reservation needs. @throws the last refusal */
export async function whileOthersHold<T>(
  reserve: () => Promise<T>,
  { sleep, isOver = () => false }: { readonly sleep: (ms: number) => Promise<void>; readonly isOver?: () => boolean },
): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await reserve()
    } catch (error) {
      const isHeld = error instanceof PlaneRefusal && error.code === 'budget_exceeded' && error.details.shortage === 'soon'
      if (!isHeld || tries >= heldRetries.tries || isOver()) throw error
      await sleep(heldRetries.ms)
    }
  }
}

/** @returns undefined for other errors */
export function httpErrorOf(error: unknown): HttpError | undefined {
  if (!(error instanceof PlaneRefusal)) return undefined
  const { retry_after_ms, ...details } = error.details
  const wait: { [name: string]: string } = retry_after_ms === undefined ? {} : { 'retry-after': String(Math.ceil(retry_after_ms / 1000)) }
  const fields = { retry_after_ms, details: Object.keys(details).length === 0 ? undefined : details }
  return new HttpError(refusalStatuses[error.code], error.code, error.message, wait, fields)
}
