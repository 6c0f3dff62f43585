/** Deletes what is older than the operator wants to keep: events, reports, session lines, hostd calls, and the logs and artifacts of ended runs. */

import type { Command, Row } from '../../contract/store-port.ts'
import type { PlaneContext } from '../context.ts'
import { amount, first, int, intOrNull, text } from '../row.ts'
import { type OldRecords, oldRecords } from './old-records.ts'

const dayMs = 86_400_000
/** Between two looks, of all daemons together. */
const pauseMs = 60_000
/** Steps of one look for each kind: a backlog of years is deleted in a few hours, and nobody waits for it. */
const mostSteps = 20
/** After this a look takes one step of each kind only: the tick has other things to do. */
const mostMs = 250

/** `retentionDays` of the options: 0 keeps everything. What belongs to a task that has not ended is kept. */
export async function pruneOld(context: PlaneContext): Promise<void> {
  const { store, options, now } = context
  const days = options.retentionDays ?? 0
  if (days === 0 || !(await store.write(() => takeTurn(context)))) return
  const [before, until] = [now() - days * dayMs, now() + mostMs]
  for (const records of oldRecords)
    for (let steps = 1; (await store.write(() => pruneSome(records, before))) && steps < mostSteps && now() < until; steps += 1);
}

function* takeTurn(context: PlaneContext): Command<boolean> {
  const now = context.now()
  yield ["INSERT INTO settings (name, value) VALUES ('pruned_at', '0') ON CONFLICT (name) DO NOTHING"]
  const row = yield* first(`SELECT value FROM settings WHERE name = 'pruned_at'${context.dialect.forUpdate}`)
  const last = Number(row ? text(row, 'value') : 0)
  // A clock that was set back must not stop this for years.
  if (now - last < pauseMs && last <= now) return false
  yield ["UPDATE settings SET value = ? WHERE name = 'pruned_at'", [String(now)]]
  return true
}

/** Goes on behind the last step; from the beginning again when nothing older is left, for what was kept then. @returns whether there is more */
function* pruneSome({ name, atOnce, next, remove }: OldRecords, before: number): Command<boolean> {
  const position = `pruned_${name}`
  const after = yield* amount('SELECT CAST(value AS BIGINT) AS value FROM settings WHERE name = ?', [position])
  const rows = yield next(after, atOnce)
  const until = rows.findIndex((row) => int(row, 'since') >= before)
  const some = until < 0 ? rows : rows.slice(0, until)
  const ids = some.filter((row) => mayGo(row, before)).map((row) => int(row, 'id'))
  if (ids.length > 0) yield* remove(ids)
  const last = some.length === atOnce ? some.at(-1) : undefined
  yield [
    'INSERT INTO settings (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value',
    [position, String(last ? int(last, 'id') : 0)],
  ]
  return last !== undefined
}

function mayGo(row: Row, before: number): boolean {
  const at = intOrNull(row, 'at')
  return at !== null && at < before && int(row, 'is_open') === 0
}
