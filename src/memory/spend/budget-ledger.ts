/** Records what the model calls of a home reserve before a call and spend after it, by scope and UTC day, for all processes. */

import type { Clock } from '../../runtime/port.ts'
import { isAlive, thisProcess } from '../journal/process-owner.ts'
import type { Store } from '../store.ts'
import { addUnsettled, noPayer, type Payer } from './spend.ts'

/** In tokens and millionths of a US dollar; whole numbers. */
export type Amount = { readonly tokens: number; readonly micros: number }

/** One budget. `scope` is `home`, `agent:ID` and so on; `window` says whether it restarts each UTC day. An absent limit means no limit. */
export type BudgetLimit = { readonly scope: string; readonly window: 'day' | 'ever'; readonly tokens?: number; readonly micros?: number }

export type ReserveRequest = {
  readonly id: string
  /** Outermost first: the result names the first limit without room. */
  readonly limits: readonly BudgetLimit[]
  /** Reserves `most` if there is room, else the remaining amount; never less than `least`. */
  readonly most: Amount
  readonly least: Amount
  /** After this time the reservation has no owner and counts in full. Milliseconds since 1970. */
  readonly expires: number
  /** The payer that a record of this call names, should the reservation never be settled. */
  readonly payer?: Payer
}

export type ReserveResult =
  | { readonly ok: true; readonly amount: Amount }
  | { readonly ok: false; readonly limit: BudgetLimit; readonly unit: keyof Amount; readonly spent: Amount; readonly reserved: Amount }

export type ScopeState = { readonly scope: string; readonly spent: Amount; readonly reserved: Amount }

export type BudgetLedger = ReturnType<typeof createBudgetLedger>

const none: Amount = { tokens: 0, micros: 0 }
const dayMs = 86_400_000
/** Larger than any real value of a provider, and small enough that sums stay exact. */
const highest = 1e12

type Reservation = Amount & {
  readonly id: string
  readonly scopes: string
  readonly day: string
  readonly owner: string
  readonly expires: number
  readonly payer: string | null
}

/** @returns `2026-11-23`, in UTC, so that all processes of a home agree whatever their time zone. */
export function utcDay(at: number): string {
  return new Date(at).toISOString().slice(0, 10)
}

/**
 * Charges to a future day count today as well: setting the clock back does not reopen a day. Days later than tomorrow move to tomorrow;
 * otherwise a clock that was wrong for a minute would block a budget for years.
 */
export function createBudgetLedger(store: Store, now: Clock) {
  const { sql } = store
  const sum = sql<Amount, [string, string]>(
    'SELECT coalesce(sum(tokens), 0) AS tokens, coalesce(sum(micros), 0) AS micros FROM budget_charges WHERE scope = ? AND day >= ?',
  )
  const add = `INSERT INTO budget_charges VALUES (?, ?, ?, ?)
     ON CONFLICT DO UPDATE SET tokens = tokens + excluded.tokens, micros = micros + excluded.micros`
  const insert = 'INSERT INTO budget_reservations(id, scopes, day, tokens, micros, owner, expires, payer) VALUES (?, ?, ?, ?, ?, ?, ?, ?)'
  const all = sql<Reservation, []>('SELECT * FROM budget_reservations')
  const take = sql<Reservation, [string]>('DELETE FROM budget_reservations WHERE id = ? RETURNING *')
  const state = { swept: false }

  /** Reserves in all scopes or in none. Call it within a transaction, like `settle`. */
  function reserve({ id, limits, most, least, expires, payer = noPayer }: ReserveRequest): ReserveResult {
    const at = now()
    if (!state.swept) sweep(at)
    state.swept = true
    bringNear(limits, at)
    let amount = most
    for (const limit of limits) {
      const charged = chargedTo(limit, at)
      const unit = lacking(limit, charged, least)
      if (unit !== undefined) return { ok: false, limit, unit, ...split(limit, charged, at) }
      amount = { tokens: room(limit.tokens, charged.tokens, amount.tokens), micros: room(limit.micros, charged.micros, amount.micros) }
    }
    const scopes = limits.map(({ scope }) => scope)
    for (const scope of scopes) store.run(add, scope, utcDay(at), amount.tokens, amount.micros)
    const { tokens, micros } = amount
    store.run(insert, id, JSON.stringify(scopes), utcDay(at), tokens, micros, thisProcess(), expires, JSON.stringify(payer))
    return { ok: true, amount }
  }

  function chargedTo({ scope, window }: Pick<BudgetLimit, 'scope' | 'window'>, at: number): Amount {
    return sum.get(scope, window === 'day' ? utcDay(at) : '') ?? none
  }

  function split({ scope }: Pick<BudgetLimit, 'scope'>, charged: Amount, at: number): Pick<ScopeState, 'spent' | 'reserved'> {
    const open = all.all().filter((each) => scopesOf(each).includes(scope) && each.expires > at && isAlive(each.owner))
    const reserved = open.reduce((sum, { tokens, micros }) => ({ tokens: sum.tokens + tokens, micros: sum.micros + micros }), none)
    return { reserved, spent: { tokens: charged.tokens - reserved.tokens, micros: charged.micros - reserved.micros } }
  }

  /**
   * Replaces the reserved amount by the used amount, once; `unknown` and `uncounted`: the reserved amount counts in full. An `uncounted`
   * call was answered, and its run has an estimate of the usage. @returns whether it replaced anything
   */
  function settle(id: string, used: Amount | 'unknown' | 'uncounted'): boolean {
    const was = take.get(id)
    if (!was) return false
    if (used === 'unknown') addUnsettled(store, was)
    const is = typeof used === 'object' && isCount(used.tokens) && isCount(used.micros) ? used : was
    for (const scope of scopesOf(was)) store.run(add, scope, was.day, bounded(is.tokens) - was.tokens, bounded(is.micros) - was.micros)
    return true
  }

  function bringNear(limits: readonly BudgetLimit[], at: number): void {
    const tomorrow = utcDay(at + dayMs)
    if (!limits.some(({ scope }) => (latestOf(scope) ?? '') > tomorrow)) return
    const insert = `INSERT INTO budget_charges SELECT scope, ?, sum(tokens), sum(micros) FROM budget_charges WHERE day > ? GROUP BY scope
       ON CONFLICT DO UPDATE SET tokens = tokens + excluded.tokens, micros = micros + excluded.micros`
    store.run(insert, tomorrow, tomorrow)
    store.run('DELETE FROM budget_charges WHERE day > ?', tomorrow)
    store.run('UPDATE budget_reservations SET day = ? WHERE day > ?', tomorrow, tomorrow)
  }

  function latestOf(scope: string): string | null | undefined {
    return sql<{ day: string | null }, [string]>('SELECT max(day) AS day FROM budget_charges WHERE scope = ?').get(scope)?.day
  }

  /** A late call can be settled for one more day. Charges of runs are kept for seven days. */
  function sweep(at: number): void {
    for (const late of sql<Reservation, [number]>('DELETE FROM budget_reservations WHERE expires < ? RETURNING *').all(at - dayMs))
      addUnsettled(store, late)
    store.run("DELETE FROM budget_charges WHERE scope > 'run:' AND scope < 'run;' AND day < ?", utcDay(at - 7 * dayMs))
  }

  return {
    reserve,
    settle,
    /** Returns the current state of one budget. */
    state(limit: Pick<BudgetLimit, 'scope' | 'window'>): ScopeState {
      return { scope: limit.scope, ...split(limit, chargedTo(limit, now()), now()) }
    },
    /** Returns the scopes that were charged in the last seven days. */
    scopes(prefix: string): string[] {
      const found = sql<{ scope: string }, [string, string, string]>(
        'SELECT DISTINCT scope FROM budget_charges WHERE scope >= ? AND scope < ? AND day > ?',
      )
      return found.all(prefix, `${prefix}\u{10ffff}`, utcDay(now() - 7 * dayMs)).map(({ scope }) => scope)
    },
    /** Returns the latest charged day, if this clock has not reached it yet. */
    dayAhead(): string | undefined {
      const latest = sql<{ day: string | null }, []>('SELECT max(day) AS day FROM budget_charges').get()?.day ?? ''
      return latest > utcDay(now()) ? latest : undefined
    },
  }
}

/** Returns the unit in which even the least amount does not fit. */
function lacking(limit: BudgetLimit, charged: Amount, least: Amount): keyof Amount | undefined {
  if (limit.tokens !== undefined && charged.tokens + least.tokens > limit.tokens) return 'tokens'
  return limit.micros !== undefined && charged.micros + least.micros > limit.micros ? 'micros' : undefined
}

function room(limit: number | undefined, charged: number, amount: number): number {
  return limit === undefined ? amount : Math.min(amount, limit - charged)
}

function scopesOf({ scopes }: Reservation): readonly string[] {
  const parsed: unknown = JSON.parse(scopes)
  return Array.isArray(parsed) ? parsed.map(String) : []
}

function isCount(value: number): boolean {
  return value >= 0
}

function bounded(value: number): number {
  return Math.min(Math.ceil(value), highest)
}
