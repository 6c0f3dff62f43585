/** Deletes old events, logs and artifacts in small steps, where the operator says after how long. */

import type { Command, Row } from '../../contract/store-port.ts'
import type { PlaneContext } from '../context.ts'
import { first, int, intOrNull, marks, text } from '../row.ts'

const dayMs = 86_400_000
/** Between two looks, of all daemons together. */
const pauseMs = 60_000
const eventsAtOnce = 1_000
const runsAtOnce = 50
/** Steps of one look: a backlog of years is deleted in a few hours, and nobody waits for it. */
const mostSteps = 20

/** `retentionDays` of the options: 0 keeps everything. */
export async function pruneOld(context: PlaneContext): Promise<void> {
  const { store, options } = context
  const days = options.retentionDays ?? 0
  if (days === 0 || !(await store.write(() => takeTurn(context)))) return
  const before = context.now() - days * dayMs
  await repeat(() => store.write(() => pruneEvents(before)))
  await repeat(() => store.write(() => pruneRuns(before)))
}

/** @param step answers whether there is more to do */
async function repeat(step: () => Promise<boolean>): Promise<void> {
  for (let done = 0; done < mostSteps && (await step()); done += 1);
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

/** From the oldest on: events have no index by time, and need none. */
function* pruneEvents(before: number): Command<boolean> {
  const rows = yield [`SELECT id, at FROM events ORDER BY id LIMIT ${eventsAtOnce}`]
  const old = rows.filter((row) => int(row, 'at') < before)
  const last = old.at(-1)
  if (last) yield ['DELETE FROM events WHERE id <= ? AND at < ?', [int(last, 'id'), before]]
  return old.length === eventsAtOnce
}

/** Goes on where the last step ended. A run that has not ended holds it up, at most as long as a lease. */
function* pruneRuns(before: number): Command<boolean> {
  const position = yield* first("SELECT value FROM settings WHERE name = 'pruned_runs'")
  const rows = yield [
    `SELECT id, ended_at FROM runs WHERE id > ? ORDER BY id LIMIT ${runsAtOnce}`,
    [Number(position ? text(position, 'value') : 0)],
  ]
  const until = rows.findIndex((row) => !isOld(row, before))
  const ids = rows.slice(0, until < 0 ? rows.length : until).map((row) => int(row, 'id'))
  const last = ids.at(-1)
  if (last === undefined) return false
  yield [`DELETE FROM run_logs WHERE run_id IN (${marks(ids)})`, ids]
  yield [`DELETE FROM artifacts WHERE run_id IN (${marks(ids)})`, ids]
  yield [`UPDATE runs SET log_bytes = 0, log_truncated = 1 WHERE log_bytes > 0 AND id IN (${marks(ids)})`, ids]
  yield [
    "INSERT INTO settings (name, value) VALUES ('pruned_runs', ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
    [String(last)],
  ]
  return ids.length === runsAtOnce
}

function isOld(row: Row, before: number): boolean {
  const ended = intOrNull(row, 'ended_at')
  return ended !== null && ended < before
}
