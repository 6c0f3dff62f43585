/** Adds up the usage of model calls from the rows of runs, and records usage without a run: summaries and reservations never settled. */

import type { Usage } from '../../runtime/event.ts'
import type { RunIdentity } from '../../runtime/port.ts'
import { isAlive } from '../journal/process-owner.ts'
import { spentOfRun } from '../journal/spent-of-run.ts'
import type { Store } from '../store.ts'

/** The payer of a call. `priced`: whether the price of the call was known. */
export type Payer = Omit<RunIdentity, 'agent' | 'runId' | 'turnId' | 'folder' | 'sandbox'> & {
  readonly agent: string
  readonly runId?: string
  readonly priced: boolean
}

export const noPayer: Payer = { agent: '', conversationId: '', channel: '', provider: '', model: '', priced: true }

/** The keys by which the spend can be added up. */
export const spendKeys = ['day', 'model', 'conversation', 'channel', 'token', 'agent', 'run'] as const
export type SpendKey = (typeof spendKeys)[number]

const counts = [
  ...(['calls', 'inputTokens', 'outputTokens', 'cachedTokens', 'unsettledTokens', 'micros'] as const),
  ...(['unpricedCalls', 'estimatedCalls', 'unsettledCalls', 'lostCalls'] as const),
]

/**
 * `micros` is in millionths of a US dollar and leaves out the calls of which the price is not known. `unsettledTokens` were reserved for
 * `unsettledCalls` whose usage nobody told; they count as spent, and so does what was reserved of money. Of `lostCalls` nothing is known.
 */
export type Spend = { readonly [Name in (typeof counts)[number]]: number }

/**
 * `key` is empty for what is no longer known, such as the run of a deleted conversation. `title`: what its conversation is about, or the
 * name of a token.
 */
export type SpendRow = Spend & { readonly key: string; readonly title?: string }

/** With `token` it counts only the calls that this access token asked for. */
export type SpendQuery = { readonly by: SpendKey; readonly limit: number; readonly fromDay: string; readonly token?: string }

export type SpendTable = ReturnType<typeof createSpendTable>

type Cells = { readonly [Name in (typeof cells)[number]]: number }

const cells = ['calls', 'input', 'output', 'cached', 'micros', 'unpriced', 'estimated', 'lost', 'unsettled'] as const

/** Adds a row to the table, or its counts to the row of the same payer and day. */
function put(store: Store, kind: 'summary' | 'unsettled', at: { payer: Payer; day: string; used: Partial<Cells> }): void {
  const { agent, conversationId, channel, token = '', runId = '', provider, model } = at.payer
  const sums = cells.map((name) => `${name} = ${name} + excluded.${name}`).join(', ')
  const insert = `INSERT INTO spend(kind, run_id, conversation_id, day, channel, token, agent, provider, model, ${cells.join(', ')})
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET ${sums}`
  store.run(insert, kind, runId, conversationId, at.day, channel, token, agent, provider, model, ...cells.map((name) => at.used[name] ?? 0))
}

type Unsettled = { readonly day: string; readonly tokens: number; readonly micros: number; readonly payer: string | null }

/** Records a reservation that nobody will settle. Call it within a transaction. */
export function addUnsettled(store: Store, { day, tokens, micros, payer: text }: Unsettled): void {
  const payer: Payer = text === null ? noPayer : { ...noPayer, ...JSON.parse(text) }
  put(store, 'unsettled', { payer, day, used: { calls: 1, unsettled: tokens, micros, unpriced: payer.priced ? 0 : 1 } })
}

/**
 * The sources of spend with the same columns. `?1` is the first day, `?2` that day in milliseconds, `?3` the ids of dead reservations, `?5`
 * the runs under way.
 */
function sources(): string {
  const agent = `CASE WHEN json_valid(runs.agent) THEN coalesce(runs.agent ->> '$.id', '') ELSE '' END`
  const ofRun = (spent: string, which: string) => `
    SELECT 'run' AS kind, run_id, conversation_id, value ->> 0 AS day, channel, coalesce(token, '') AS token, ${agent} AS agent,
      value ->> 1 AS provider, value ->> 2 AS model, value ->> 3 AS calls, value ->> 4 AS input, value ->> 5 AS output, value ->> 6 AS cached,
      value ->> 7 AS micros, value ->> 8 AS unpriced, value ->> 9 AS estimated, value ->> 10 AS lost, 0 AS unsettled
    FROM runs, json_each(${spent}) WHERE ${which} AND value ->> 0 >= ?1`
  return `${ofRun(`CASE WHEN json_valid(spent) THEN spent ELSE '[]' END`, 'ended IS NOT NULL AND (ended >= ?2 OR started >= ?2)')}
    UNION ALL ${ofRun(`coalesce(?5 -> run_id, '[]')`, 'ended IS NULL')}
    UNION ALL SELECT kind, run_id, conversation_id, day, channel, token, agent, provider, model, ${cells.join(', ')} FROM spend WHERE day >= ?1
    UNION ALL SELECT 'unsettled', coalesce(payer ->> '$.runId', ''), coalesce(payer ->> '$.conversationId', ''), day,
      coalesce(payer ->> '$.channel', ''), coalesce(payer ->> '$.token', ''), coalesce(payer ->> '$.agent', ''),
      coalesce(payer ->> '$.provider', ''), coalesce(payer ->> '$.model', ''), 1, 0, 0, 0, micros, coalesce(NOT payer ->> '$.priced', 0), 0, 0,
      tokens
    FROM budget_reservations WHERE id IN (SELECT value FROM json_each(?3)) AND day >= ?1`
}

const sums = `coalesce(sum(calls), 0) AS calls, coalesce(sum(input), 0) AS inputTokens, coalesce(sum(output), 0) AS outputTokens,
  coalesce(sum(cached), 0) AS cachedTokens, coalesce(sum(unsettled), 0) AS unsettledTokens, coalesce(sum(micros), 0) AS micros,
  coalesce(sum(unpriced), 0) AS unpricedCalls, coalesce(sum(estimated), 0) AS estimatedCalls,
  coalesce(sum(CASE WHEN kind = 'unsettled' THEN calls ELSE 0 END), 0) AS unsettledCalls, coalesce(sum(lost), 0) AS lostCalls`

const columns: { readonly [Key in SpendKey]: string } = {
  day: 'day',
  model: `CASE WHEN provider = '' THEN '' ELSE provider || '/' || model END`,
  conversation: 'conversation_id',
  channel: 'channel',
  token: 'token',
  agent: 'agent',
  run: 'run_id',
}

const titles: { readonly [Key in SpendKey]?: string } = {
  conversation: 'SELECT title FROM conversations WHERE conversation_id = ?',
  token: 'SELECT name AS title FROM access_tokens WHERE id = ?',
  run: 'SELECT title FROM runs JOIN conversations USING (conversation_id) WHERE run_id = ?',
}

/** First day, the same in milliseconds, the ids of dead reservations, the only token, what runs under way have used so far. */
type SpendParameters = [string, number, string, string | null, string]

type Reservation = {
  readonly id: string
  readonly owner: string
  readonly expires: number
  readonly tokens: number
  readonly micros: number
}

export function createSpendTable(store: Store, now: () => number) {
  const { sql } = store
  const reservations = () => sql<Reservation, []>('SELECT id, owner, expires, tokens, micros FROM budget_reservations').all()
  const isHeld = ({ owner, expires }: Reservation) => expires > now() && isAlive(owner)
  const values = ({ fromDay, token }: Pick<SpendQuery, 'fromDay' | 'token'>): SpendParameters => [
    fromDay,
    // A day early: a run that ended while the clock was behind may have calls of this day.
    Date.parse(`${fromDay}T00:00Z`) - 86_400_000,
    JSON.stringify(reservations().flatMap((each) => (isHeld(each) ? [] : [each.id]))),
    token ?? null,
    JSON.stringify(Object.fromEntries(underWay().map(({ runId }) => [runId, JSON.parse(spentOfRun(store, runId))]))),
  ]
  const underWay = () => sql<{ runId: string }, []>('SELECT run_id AS runId FROM runs WHERE ended IS NULL').all()

  /**
   * Adds up from one UTC day on: days in their order, all else by what it cost, highest first. `more`: rows beyond the limit; `total`: of
   * all rows.
   */
  function rows({ by, limit, ...range }: SpendQuery) {
    const order = by === 'day' ? 'key' : 'micros DESC, inputTokens + outputTokens + unsettledTokens DESC, key'
    const all = sql<SpendRow, SpendParameters>(
      `SELECT ${columns[by]} AS key, ${sums} FROM (${sources()}) WHERE ?4 IS NULL OR token = ?4 GROUP BY 1 ORDER BY ${order}`,
    )
    const found = all.all(...values(range))
    const rows = found.slice(0, limit).map((row) => ({ ...row, ...titleOf(by, row.key) }))
    return { rows, more: Math.max(0, found.length - limit), total: found.reduce(plus, nothing) }
  }

  function titleOf(by: SpendKey, key: string): { readonly title?: string } {
    const query = titles[by]
    const found = query === undefined || key === '' ? null : sql<{ title: string }, [string]>(query).get(key)
    return found === null ? {} : found
  }

  /** Records a call that belongs to no run. */
  function addSummary(payer: Payer, day: string, used: Usage | 'unknown'): void {
    store.write(() => put(store, 'summary', { payer, day, used: used === 'unknown' ? { lost: 1 } : cellsOf(used) }))
  }

  return {
    rows,
    /** Returns the amount that calls under way have reserved. */
    held(): { readonly tokens: number; readonly micros: number } {
      const open = reservations().filter(isHeld)
      return open.reduce((sum, { tokens, micros }) => ({ tokens: sum.tokens + tokens, micros: sum.micros + micros }), {
        tokens: 0,
        micros: 0,
      })
    },
    addSummary,
  }
}

function cellsOf({ inputTokens, outputTokens, cachedInputTokens = 0, costMicros, estimated }: Usage): Partial<Cells> {
  const unpriced = costMicros === undefined && inputTokens + outputTokens > 0 ? 1 : 0
  const counts = { calls: 1, input: inputTokens, output: outputTokens, cached: cachedInputTokens }
  return { ...counts, micros: costMicros ?? 0, unpriced, estimated: estimated ? 1 : 0 }
}

const nothing = addedUp(() => 0)

function plus(one: Spend, other: Spend): Spend {
  return addedUp((name) => one[name] + other[name])
}

function addedUp(count: (name: (typeof counts)[number]) => number): Spend {
  return Object.fromEntries(counts.map((name) => [name, count(name)])) as Spend
}
