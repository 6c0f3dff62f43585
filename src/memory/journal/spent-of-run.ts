/** Adds up what the model calls of a run used, from its journal; the run's row keeps the sums from its end on. */

import { isObject, parseJson } from '../../kit/json.ts'
import type { Store } from '../store.ts'

/**
 * `calls`, `input`, `output`, `cached`, `micros`, `unpriced`, `estimated`, `lost`, in this order. `unpriced` counts calls whose price is
 * not known, `estimated` those whose tokens the provider did not count, `lost` those of which nothing is known.
 */
type Counts = readonly number[]

/** Indexed by `[day, provider, model]` as JSON. */
type Sums = Map<string, Counts>

type ModelCallRow = { readonly type: string; readonly at: number; readonly body: string }
type EventFields = { readonly [name: string]: unknown }
type RunModel = { readonly provider: string; readonly model: string }

/** Returns a JSON array of `[day, provider, model, ...counts]`. Each call has the day on which it ended. */
export function spentOfRun(store: Store, runId: string): string {
  const rows = store
    .sql<ModelCallRow, [string]>(
      `SELECT type, at, body FROM journal WHERE run_id = ? AND type IN ('model.done', 'model.fail', 'interrupted')`,
    )
    .all(runId)
  const sums: Sums = new Map()
  const lost: number[] = []
  for (const { type, at, body } of rows) {
    const event = read(body)
    if (event && type === 'model.done') add(sums, keyOf(at, { ...runOf(store, runId, event), ...event }), countsOf(event))
    else if (event && isLost(type, event)) lost.push(at)
  }
  const last = lost.at(-1)
  // The reservation of a call that was never settled counts in its place.
  const left = last === undefined ? 0 : lost.length - reservedOf(store, runId)
  if (last !== undefined && left > 0) add(sums, keyOf(last, runOf(store, runId)), [0, 0, 0, 0, 0, 0, 0, left])
  return JSON.stringify([...sums].map(([key, counts]) => [...JSON.parse(key), ...counts]))
}

function read(body: string): EventFields | undefined {
  const value = parseJson(body)
  return isObject(value) ? value : undefined
}

function add(sums: Sums, key: string, counts: Counts): void {
  const before = sums.get(key)
  sums.set(key, before ? counts.map((value, index) => value + (before[index] ?? 0)) : counts)
}

function keyOf(at: number, { provider, model }: { readonly provider?: unknown; readonly model?: unknown }): string {
  return JSON.stringify([dayOf(at), String(provider), String(model)])
}

function dayOf(at: number): string {
  const date = new Date(at)
  return Number.isNaN(date.getTime()) ? '' : date.toISOString().slice(0, 10)
}

function countsOf(event: EventFields): Counts {
  const usage = isObject(event.usage) ? event.usage : {}
  const [input, output] = [whole(usage.inputTokens), whole(usage.outputTokens)]
  const unpriced = usage.costMicros === undefined && input + output > 0 ? 1 : 0
  return [1, input, output, whole(usage.cachedInputTokens), whole(usage.costMicros), unpriced, usage.estimated === true ? 1 : 0, 0]
}

function whole(value: unknown): number {
  return typeof value === 'number' && Number.isSafeInteger(value) ? value : 0
}

/** Reads provider and model from the run's row, when the event leaves one out. */
function runOf(store: Store, runId: string, { provider, model }: EventFields = {}): Partial<RunModel> {
  if (provider !== undefined && model !== undefined) return {}
  return store.sql<RunModel, [string]>('SELECT provider, model FROM runs WHERE run_id = ?').get(runId) ?? {}
}

function reservedOf(store: Store, runId: string): number {
  const found = store.sql<{ n: number }, [string]>(
    `SELECT (SELECT count(*) FROM spend WHERE kind = 'unsettled' AND run_id = ?1)
       + (SELECT count(*) FROM budget_reservations WHERE payer ->> '$.runId' = ?1) AS n`,
  )
  return found.get(runId)?.n ?? 0
}

const free: ReadonlySet<unknown> = new Set(['auth', 'rate_limit', 'bad_request', 'context_length', 'budget'])

/** Recognises a failed call that may have been billed, or a call that was under way when its process ended. */
function isLost(type: string, { unbilled, code, thinking }: EventFields): boolean {
  return type === 'interrupted' ? thinking === true : unbilled !== true && !free.has(code)
}
