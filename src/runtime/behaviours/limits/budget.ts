/** Limits tokens, money and wall-clock time: reserves before a model call, settles after it, and halts the run beyond a limit. */

import type { BThread } from '../../../kernel/thread.ts'
import type { RunEvent, Usage } from '../../event.ts'
import { beginnings } from '../start-events.ts'

/** Zero or absent means no limit. `maxMs` is the wall-clock time of one run, `maxMicros` is in millionths of a US dollar. */
export type BudgetLimits = { readonly maxTokens?: number; readonly maxMicros?: number; readonly maxMs?: number }

type BudgetState = {
  readonly startedAt: number
  readonly tokens: number
  readonly micros: number
  /** The usage of the last call. It is the reservation for the next call, because a conversation only grows. */
  readonly reserveTokens: number
  readonly reserveMicros: number
  readonly wants: { readonly code: 'budget' | 'timeout'; readonly message: string } | null
  readonly spent: boolean
}

export function budget(limits: BudgetLimits): BThread<BudgetState, RunEvent> {
  return {
    name: 'budget',
    priority: 21,
    init: { startedAt: 0, tokens: 0, micros: 0, reserveTokens: 0, reserveMicros: 0, wants: null, spent: false },
    bid: (state) => ({
      wait: [{ type: 'run.start' }, { type: 'model.done' }, { type: 'context.trimmed' }, { type: 'clock' }, { type: 'retry' }],
      // After an answer within the limit a developer's thread may begin no call, because the model would have to read its result.
      block: state.wants || state.spent ? beginnings : overspent(state, limits) ? [{ type: 'judge' }] : [],
      request: state.wants ? [{ type: 'halt', ...state.wants }] : [],
    }),
    next(state, event) {
      if (event.type === 'run.start') return begun(state, event, limits)
      if (event.type === 'halt') return { ...state, wants: null, spent: true }
      if (state.wants || state.spent) return state
      if (event.type === 'clock') return overtime(state, event.at, limits)
      if (event.type === 'model.done') return settle(state, event.usage, limits, event.proposals.length > 0)
      if (event.type === 'context.trimmed' && event.usage) return spend(state, event.usage)
      if (event.type === 'retry') return halted(state, overspent(state, limits))
      return state
    },
  }
}

function overtime(state: BudgetState, now: number, { maxMs }: BudgetLimits): BudgetState {
  if (!maxMs || now - state.startedAt < maxMs) return state
  return { ...state, wants: { code: 'timeout', message: `the run took longer than limits.max_run_seconds (${maxMs / 1000} s)` } }
}

/** The summary of a trim counts, but the next call is not expected to cost as much. */
function spend(state: BudgetState, { inputTokens, outputTokens, costMicros = 0 }: Usage): BudgetState {
  return { ...state, tokens: state.tokens + inputTokens + outputTokens, micros: state.micros + costMicros }
}

function settle(state: BudgetState, usage: Usage, limits: BudgetLimits, needsAnotherCall: boolean): BudgetState {
  const used = usage.inputTokens + usage.outputTokens
  const cost = usage.costMicros ?? 0
  const settled = { ...state, tokens: state.tokens + used, micros: state.micros + cost, reserveTokens: used, reserveMicros: cost }
  return halted(settled, needsAnotherCall ? overspent(settled, limits) : undefined)
}

function halted(state: BudgetState, message: string | undefined): BudgetState {
  return message ? { ...state, wants: { code: 'budget', message } } : state
}

/** Counts what a wiggum run used up before its process died. */
function begun(state: BudgetState, { at, continues }: Extract<RunEvent, { type: 'run.start' }>, limits: BudgetLimits): BudgetState {
  const { tokens = 0, micros = 0 } = continues?.wiggum ?? {}
  const started = { ...state, startedAt: at, tokens, micros }
  return halted(started, overspent(started, limits))
}

/** A run that has its answer is not stopped. A run that needs another call stops if a call like the last one would exceed the limit. */
function overspent(state: BudgetState, { maxTokens, maxMicros }: BudgetLimits): string | undefined {
  if (maxTokens && state.tokens + state.reserveTokens > maxTokens) {
    return `${state.tokens} tokens are spent and the next call would pass limits.max_run_tokens (${maxTokens})`
  }
  if (maxMicros && state.micros + state.reserveMicros > maxMicros) {
    return `$${usd(state.micros)} are spent and the next call would pass limits.max_run_usd ($${usd(maxMicros)})`
  }
}

const usd = (micros: number) => (micros / 1_000_000).toFixed(4)
