/** Computes the budgets of a home from its configuration and their present state, and creates the meter that each model call passes. */

import type { LimitsConfig } from '../../../config/config.ts'
import type { CommitQueue } from '../../../memory/commit-queue.ts'
import type { Memory } from '../../../memory/memory.ts'
import {
  type Amount,
  type BudgetLedger,
  type BudgetLimit,
  createBudgetLedger,
  type ReserveResult,
} from '../../../memory/spend/budget-ledger.ts'
import type { Payer as Charged } from '../../../memory/spend/spend.ts'
import type { Usage } from '../../../runtime/event.ts'
import { type Clock, type Grant, type Log, type Meter, ProviderFailure, type Quote } from '../../../runtime/port.ts'

/** Names who pays for the calls of a conversation or run. */
export type Payer = Pick<Charged, 'agent' | 'conversationId' | 'channel' | 'token' | 'runId'>

export type MeterOptions = {
  readonly limits: LimitsConfig
  readonly memory: Pick<Memory, 'store'>
  /** Runs a write through the only writer. */
  readonly add: CommitQueue['add']
  readonly log: Log
  readonly now: Clock
  /** The warnings that were given: each is given once. */
  readonly warned: Set<string>
  /** A budget that several conversations share. */
  readonly shared?: Budget | undefined
}

/** A budget with the names of its settings. */
export type Budget = BudgetLimit & { readonly tokensKey: string; readonly microsKey: string }

/** Returns the budgets, outermost first and the run's last. */
export function budgetsOf(limits: LimitsConfig, { agent, conversationId, channel, token, runId }: Payer): Budget[] {
  const of = (scope: string, window: Budget['window'], key: string, tokens?: number, usd?: number): Budget => ({
    scope,
    window,
    tokens,
    ...(usd === undefined ? {} : { micros: Math.round(usd * 1_000_000) }),
    tokensKey: `limits.${key}_tokens`,
    microsKey: `limits.${key}_usd`,
  })
  const all = [
    of('home', 'day', 'daily', limits.dailyTokens, limits.dailyUsd),
    ...(channel === '' ? [] : [of(`channel:${channel}`, 'day', 'channel_daily', limits.channelDailyTokens, limits.channelDailyUsd)]),
    ...(token === undefined ? [] : [of(`token:${token}`, 'day', 'token_daily', limits.tokenDailyTokens, limits.tokenDailyUsd)]),
    of(`agent:${agent}`, 'day', 'agent_daily', limits.agentDailyTokens, limits.agentDailyUsd),
    of(`conversation:${conversationId}`, 'ever', 'max_conversation', limits.maxConversationTokens, limits.maxConversationUsd),
    ...(runId === undefined ? [] : [of(`run:${runId}`, 'ever', 'max_run', limits.maxRunTokens, limits.maxRunUsd)]),
  ]
  return all.filter(({ tokens, micros }) => tokens !== undefined || micros !== undefined)
}

/** @returns undefined when there is no budget: then nothing is reserved */
export function meterFor({ limits, memory, add, log, now, warned, shared }: MeterOptions, payer: Payer): Meter | undefined {
  const budgets = [...budgetsOf(limits, payer), ...(shared ? [shared] : [])]
  if (budgets.length === 0) return undefined
  return async (quote) => {
    const enforced = withPrices(budgets, quote, (warning) => {
      if (!warned.has(warning)) log('warn', warning)
      warned.add(warning)
    })
    const ledger = createBudgetLedger(memory.store, now)
    const id = `res_${crypto.randomUUID()}`
    const charged = { ...payer, provider: quote.provider, model: quote.model, priced: quote.prices !== null }
    const reserved = await add(() => reserve(ledger, { id, budgets: enforced, quote, payer: charged, now: now() }))
    if (!reserved.ok) throw refusal(reserved, { quote, now: now() })
    const ahead = ledger.dayAhead()
    if (ahead !== undefined)
      log('warn', 'the clock is behind the budget', { counted: ahead, today: new Date(now()).toISOString().slice(0, 10) })
    return grantOf(reserved.amount, quote, (used) => add(() => ledger.settle(id, used)))
  }
}

/**
 * Without known prices a limit of money cannot be enforced. Where the same budget has a limit of tokens, that one holds alone, and a warning
 * says so; otherwise the call is refused, because nothing would bound it. The run's limit only causes a warning, because it applies to all
 * models alike.
 */
function withPrices(budgets: readonly Budget[], { prices, provider }: Quote, warn: (warning: string) => void): readonly Budget[] {
  if (prices) return budgets
  const blind = budgets.filter(({ micros }) => micros !== undefined)
  const unbounded = blind.find(({ tokens, scope }) => tokens === undefined && !scope.startsWith('run:'))
  if (unbounded)
    throw new ProviderFailure(
      'budget',
      `${unbounded.microsKey} cannot hold: the prices of provider "${provider}" are not known; give it price_input and price_output (0 when it costs nothing), list the model in models.toml, or set ${unbounded.tokensKey} too`,
      { provider },
    )
  for (const { microsKey, tokensKey, tokens } of blind)
    if (tokens !== undefined)
      warn(`${microsKey} cannot hold: the prices of provider "${provider}" are not known; only ${tokensKey} limits it`)
  return budgets.map(({ micros: _, ...rest }) => rest)
}

/** An answer shorter than this is useless. */
const leastOutputTokens = 256

/** The time to settle a call after its deadline, in milliseconds. */
const graceMs = 60_000

type BudgetReservation = {
  readonly id: string
  readonly budgets: readonly Budget[]
  readonly quote: Quote
  readonly payer: Charged
  readonly now: number
}

function reserve(ledger: BudgetLedger, { id, budgets, quote, payer, now }: BudgetReservation): ReserveResult {
  const { outputTokens, longestMs } = quote
  const least = costOf(quote, Math.min(outputTokens, leastOutputTokens))
  const expires = Math.ceil(now + longestMs + graceMs)
  return ledger.reserve({ id, limits: budgets, most: costOf(quote, outputTokens), least, expires, payer })
}

function costOf({ inputTokens, prices }: Quote, outputTokens: number): Amount {
  const { input, output } = prices ?? { input: 0, output: 0 }
  return { tokens: inputTokens + outputTokens, micros: Math.ceil(inputTokens * input + outputTokens * output) }
}

function grantOf(
  amount: Amount,
  { inputTokens, outputTokens, prices }: Quote,
  settle: (used: Amount | 'unknown' | 'uncounted') => Promise<boolean>,
): Grant {
  const paid = prices && prices.output > 0 ? Math.floor((amount.micros - inputTokens * prices.input) / prices.output) : outputTokens
  return {
    outputTokens: Math.max(1, Math.min(outputTokens, amount.tokens - inputTokens, paid)),
    settle: async (used) => void (await settle(amountOf(used))),
  }
}

function amountOf(used: Usage | 'nothing' | 'unknown'): Amount | 'unknown' | 'uncounted' {
  if (used === 'unknown') return used
  if (used === 'nothing') return { tokens: 0, micros: 0 }
  return used.estimated ? 'uncounted' : { tokens: used.inputTokens + used.outputTokens, micros: used.costMicros ?? 0 }
}

type RefusedReservation = Extract<ReserveResult, { ok: false }>

function refusal({ limit, unit, spent, reserved }: RefusedReservation, { quote, now }: { quote: Quote; now: number }): ProviderFailure {
  const show = (amount: Amount) => shown(amount[unit], unit)
  const least = costOf(quote, Math.min(quote.outputTokens, leastOutputTokens))
  const key = keyOf(limit, unit)
  const reservedText = reserved[unit] > 0 ? ` and ${show(reserved)} reserved by calls under way` : ''
  const message = `${limit.scope}: of ${key} (${shown(limit[unit] ?? 0, unit)}) ${show(spent)} are spent${reservedText}; this call needs at least ${show(least)}; ${howToGoOn(limit, key, now)}`
  return new ProviderFailure('budget', message, { provider: quote.provider })
}

function keyOf(limit: BudgetLimit & Partial<Budget>, unit: keyof Amount): string {
  return (unit === 'tokens' ? limit.tokensKey : limit.microsKey) ?? 'its limit'
}

export function shown(amount: number, unit: keyof Amount): string {
  return unit === 'tokens' ? `${amount} tokens` : `$${(amount / 1_000_000).toFixed(4)}`
}

/** Says when the budget is free again, or what to change. */
function howToGoOn({ scope, window }: BudgetLimit, key: string, now: number): string {
  if (window === 'day') return `free again at ${freeAt(now)} (in ${untilText(now)}), or raise ${key}`
  return scope.startsWith('conversation:') ? `begin a new conversation, or raise ${key}` : `raise ${key}`
}

export function freeAt(now: number): string {
  return `${new Date(now + 86_400_000).toISOString().slice(0, 10)}T00:00Z`
}

function untilText(now: number): string {
  const minutes = Math.ceil((86_400_000 - (now % 86_400_000)) / 60_000)
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}

export type BudgetState = {
  readonly scope: string
  readonly setting: string
  readonly unit: keyof Amount
  readonly spent: number
  readonly reserved: number
  readonly limit: number
  readonly left: number
  /** When the budget is free again; only for daily budgets. */
  readonly freeAt?: string
}

/**
 * Returns of each budget of a home what is spent and reserved, and when it is free again. @param agent the agent that answers here, shown
 * even when it has spent nothing
 */
export function budgetStates(ledger: BudgetLedger, limits: LimitsConfig, agent: string): readonly BudgetState[] {
  const all = payersIn(ledger, agent).flatMap((payer) => statesOf(ledger, budgetsOf(limits, payer)))
  return [...new Map(all.map((state) => [`${state.scope} ${state.unit}`, state])).values()]
}

/** Returns everyone with counted calls in the last week. */
function payersIn(ledger: BudgetLedger, agent: string): Payer[] {
  const nobody = { agent, conversationId: '', channel: '' }
  const named = (prefix: string) => ledger.scopes(prefix).map((scope) => scope.slice(prefix.length))
  return [
    nobody,
    ...named('agent:').map((each) => ({ ...nobody, agent: each })),
    ...named('channel:').map((channel) => ({ ...nobody, channel })),
    ...named('token:').map((token) => ({ ...nobody, token })),
    ...named('conversation:').map((conversationId) => ({ ...nobody, conversationId })),
  ]
}

function statesOf(ledger: BudgetLedger, budgets: readonly Budget[]): BudgetState[] {
  return budgets
    .filter(({ scope }) => scope !== 'conversation:')
    .flatMap((budget) => [stateOf(ledger, budget, 'tokens'), stateOf(ledger, budget, 'micros')])
    .filter((state) => state !== undefined)
}

function stateOf(ledger: BudgetLedger, budget: Budget, unit: keyof Amount): BudgetState | undefined {
  const limit = budget[unit]
  if (limit === undefined) return undefined
  const { scope, window, tokensKey, microsKey } = budget
  const state = ledger.state(budget)
  const [spent, reserved] = [state.spent[unit], state.reserved[unit]]
  const setting = unit === 'tokens' ? tokensKey : microsKey
  const frees = window === 'day' ? { freeAt: freeAt(Date.now()) } : {}
  return { scope, setting, unit, spent, reserved, limit, left: Math.max(0, limit - spent - reserved), ...frees }
}
