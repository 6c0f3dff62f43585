/** Makes the control plane pay for the model calls of the own runner: it reserves before each call and settles after it. */

import { errorText } from '../../kit/errors.ts'
import type { Usage } from '../../runtime/event.ts'
import { type Grant, type Meter, type Provider, ProviderFailure, type Quote } from '../../runtime/port.ts'
import type { Reservation, ReserveRequest, Settled, SettleRequest } from '../contract/fleet-shapes.ts'
import { PlaneRefusal } from '../contract/plane-refusal.ts'

export type RunBudget = {
  reserve(request: ReserveRequest): Promise<Reservation>
  settle(request: SettleRequest): Promise<Settled>
  /** Returns the tokens that the run may still spend; null without a limit. */
  remaining(): Promise<number | null>
}

/** An answer shorter than this is not worth a call. */
const leastAnswer = 256
const waits = { tries: 40, ms: 250 } as const

/** Charges both budgets: that of the control plane, and that of the worker's own home. */
export function meteredByPlane(provider: Provider, budget: RunBudget): Provider {
  const meter = planeMeter(budget)
  return { ...provider, chat: (request, signal) => provider.chat({ ...request, meter: both(meter, request.meter) }, signal) }
}

/** @throws ProviderFailure `budget` when the control plane refuses */
export function planeMeter({ reserve, settle, remaining }: RunBudget): Meter {
  const state: { left?: number | null } = {}
  return async (quote) => {
    if (state.left === undefined) state.left = await remaining().catch(() => null)
    const outputTokens = affordable(quote, state.left)
    const tokens = Math.max(1, quote.inputTokens + outputTokens)
    const purpose = `${quote.provider}/${quote.model}`.slice(0, 200)
    const reservation = await reserveWhenFree(() => reserve({ tokens, purpose })).catch(refused)
    state.left = reservation.budget_remaining
    return {
      outputTokens,
      async settle(used) {
        const spent = tokensOf(used, tokens)
        const done = await settle({ reservation_id: reservation.reservation_id, tokens: spent, model: quote.model.slice(0, 200) })
        state.left = done.budget_remaining
      },
    }
  }
}

/** Tries again while calls of others, which end soon, have reserved what this one needs. */
async function reserveWhenFree<T>(reserve: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await reserve()
    } catch (error) {
      if (tries >= waits.tries || !(error instanceof PlaneRefusal) || error.details.shortage !== 'soon') throw error
      await Bun.sleep(waits.ms)
    }
  }
}

/** Returns how long the answer may be. When not even a short one can be paid, the control plane is asked all the same, and refuses with its message. */
function affordable({ inputTokens, outputTokens }: Quote, left: number | null): number {
  if (left === null || inputTokens + outputTokens <= left) return outputTokens
  return Math.min(outputTokens, Math.max(leastAnswer, left - inputTokens))
}

/** Counts the tokens of an answer. One that cannot be counted costs all that was reserved. */
function tokensOf(used: Usage | 'nothing' | 'unknown', reserved: number): number {
  if (used === 'nothing') return 0
  if (used === 'unknown') return reserved
  const counted = used.inputTokens + used.outputTokens
  return used.estimated ? Math.max(reserved, counted) : counted
}

function refused(error: unknown): never {
  const message = errorText(error)
  if (error instanceof PlaneRefusal && error.code === 'budget_exceeded') throw new ProviderFailure('budget', message)
  if (error instanceof PlaneRefusal && error.code !== 'unavailable') throw new ProviderFailure('aborted', message, { unsent: true })
  throw new ProviderFailure('server', message, { unsent: true })
}

function both(plane: Meter, home: Meter | undefined): Meter {
  if (home === undefined) return plane
  return async (quote): Promise<Grant> => {
    const own = await home(quote)
    const paid = await plane({ ...quote, outputTokens: Math.min(quote.outputTokens, own.outputTokens) }).catch(async (error: unknown) => {
      await own.settle('nothing')
      throw error
    })
    return {
      outputTokens: Math.min(own.outputTokens, paid.outputTokens),
      async settle(used) {
        await Promise.all([own.settle(used), paid.settle(used)])
      },
    }
  }
}
