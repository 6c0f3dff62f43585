/** Reserves tokens before a call and settles them after it; with little left the answer becomes shorter. */

import type { Caller } from '../contract/caller.ts'
import type { Plane } from '../contract/plane.ts'
import { PlaneRefusal } from '../contract/plane-refusal.ts'

export type Charge = {
  readonly caller: Caller
  /** Tokens that the request itself has, by estimate. */
  readonly input: number
  /** The most tokens of the answer. */
  readonly output: number
  readonly purpose: string
  readonly gone: AbortSignal
}

export type Reserved = {
  /** How long the answer may be. */
  readonly output: number
  /** Says what was really used; a second call does nothing. Never rejects: what is not settled counts as spent when the run ends. */
  settle(tokens: number, model: string): Promise<void>
}

export type MeterDeps = {
  readonly budget: Pick<Plane['budget'], 'remaining' | 'reserve' | 'settle'>
  readonly sleep: (ms: number) => Promise<void>
  readonly failed: (error: unknown) => void
}

/** A shorter answer would be of no use. */
const shortestAnswer = 256
/** With little left one call takes all of it; with more it leaves half to other calls. */
const little = 4_096
const waits = { tries: 40, ms: 250 }

/** Waits some seconds while other calls hold what this one needs. @throws PlaneRefusal budget_exceeded when too little is left */
export async function reserveCall(deps: MeterDeps, charge: Charge): Promise<Reserved> {
  for (let tries = 0; ; tries += 1) {
    try {
      // A reservation that is refused ends the run, so it is asked first how much there is.
      return await reserve(deps, charge, outputFor(charge, await deps.budget.remaining(charge.caller)))
    } catch (error) {
      if (!isHeldByOthers(error) || tries >= waits.tries || charge.gone.aborted) throw error
      await deps.sleep(waits.ms)
    }
  }
}

function outputFor({ input, output }: Charge, left: number | null): number {
  const rest = left === null ? output : left - input
  if (rest >= output) return output
  return Math.max(rest <= little ? rest : Math.max(little, Math.floor(rest / 2)), Math.min(shortestAnswer, output))
}

async function reserve({ budget, failed }: MeterDeps, { caller, input, purpose }: Charge, output: number): Promise<Reserved> {
  const { reservation_id } = await budget.reserve(caller, { tokens: input + output, purpose })
  const state = { settled: false }
  return {
    output,
    async settle(tokens, model) {
      if (state.settled) return
      state.settled = true
      await budget.settle(caller, { reservation_id, tokens, model: model.slice(0, 200) }).then(() => {}, failed)
    },
  }
}

function isHeldByOthers(error: unknown): boolean {
  return error instanceof PlaneRefusal && error.code === 'budget_exceeded' && error.details.shortage === 'soon'
}
