/** Checks the invariants from the outside: the rows of the database against what really happened. */

import type { Command, Row, Store } from '../../../src/control/contract/store-port.ts'
import { realLeaseMs } from './siege.ts'
import { only, readWorld } from './world.ts'

/** How late a process may still be seen on a busy machine; a child that nobody ends lives for twice as long. */
const graceMs = 3_000

export type Checked = { readonly problems: readonly string[]; readonly figures: Readonly<Record<string, number>> }

/**
 * I8: tasks that wait for an answer although the question of their last run has one. An older question may well have an answer that nobody
 * used: a run that asks anew leaves it behind.
 */
export const notWoken = `SELECT t.id FROM tasks t WHERE t.status = 'awaiting_approval'
  AND NOT EXISTS (SELECT 1 FROM approvals a WHERE a.task_id = t.id AND a.run_id = t.run_id AND a.state = 'pending')`

function* all(sql: string): Command<readonly Row[]> {
  return yield [sql]
}

export async function check(store: Store, worldFolder: string, tasks: number): Promise<Checked> {
  const rows = (sql: string) => store.read(() => all(sql))
  const world = readWorld(worldFolder)
  const problems: string[] = only(world, 'wrong').map(({ what }) => what)
  const expect = (holds: boolean, what: string) => void (holds || problems.push(what))
  const none = async (what: string, sql: string) => {
    const found = await rows(sql)
    expect(found.length === 0, `${what}: ${JSON.stringify(found.slice(0, 3))}`)
  }

  // I1: the runs of a task follow each other, and none is left over.
  await none(
    'I1 two runs of a task at once',
    'SELECT a.id, b.id AS other FROM runs a JOIN runs b ON b.task_id = a.task_id AND b.id > a.id AND b.began_at < COALESCE(a.ended_at, 9000000000000)',
  )
  await none('I1 a run without an end', "SELECT id FROM runs WHERE state = 'running'")
  // I2: an effect that is not idempotent happened once.
  const effects = Map.groupBy(only(world, 'effect'), (one) => `${one.task} ${one.key}`)
  for (const [key, times] of effects) expect(times.length === 1, `I2 ${key} happened ${times.length} times`)
  // I3: every task ended.
  await none('I3 a task that did not end', "SELECT id, status FROM tasks WHERE status NOT IN ('completed', 'failed', 'dead', 'cancelled')")
  // I4: one completion a task, and its effects happened.
  await none(
    'I4 not exactly one completed run',
    "SELECT t.id FROM tasks t WHERE t.status = 'completed' AND (SELECT count(*) FROM runs r WHERE r.task_id = t.id AND r.state = 'completed') <> 1",
  )
  await none('I4 a late effect was kept', "SELECT task_id FROM effects WHERE key = 'late'")
  for (const row of await rows("SELECT id FROM tasks WHERE status = 'completed' AND role = 'chaos'"))
    expect(effects.has(`TASK-${String(row.id).padStart(3, '0')} mail`), `I4 task ${row.id} completed without its effect`)
  // I5: at no commit more than the limit; the database keeps the last one.
  const [budget] = await rows("SELECT value FROM settings WHERE name = 'budget'")
  const limit = Number(JSON.parse(String(budget?.value ?? '{}')).daily_tokens)
  await none('I5 more than the limit', `SELECT * FROM budget_days WHERE scope = '*' AND spent + reserved > ${limit}`)
  // I6 and I7: the ledger knows at least what was spent, and the days are the sums of the ledger.
  const spent = Map.groupBy(only(world, 'spent'), ({ run }) => Number(run.slice(4)))
  const counted = new Map(
    (await rows('SELECT run_id, sum(tokens) AS value FROM ledger GROUP BY run_id')).map((row) => [Number(row.run_id), Number(row.value)]),
  )
  for (const [run, all] of spent) {
    const real = all.reduce((sum, { tokens }) => sum + tokens, 0)
    expect((counted.get(run) ?? 0) >= real, `I6 run ${run} spent ${real}, the ledger has ${counted.get(run) ?? 0}`)
  }
  await none(
    'I7 a day that is not the sum of its ledger',
    "SELECT d.day, d.spent FROM budget_days d WHERE d.scope = '*' AND d.spent <> (SELECT COALESCE(sum(tokens), 0) FROM ledger l WHERE l.day = d.day)",
  )
  await none('I7 something reserved for ever', 'SELECT day, scope, reserved FROM budget_days WHERE reserved <> 0')
  // I8: an approval is used once, by one run.
  for (const [approval, uses] of Map.groupBy(only(world, 'used'), ({ approval }) => approval))
    expect(uses.length === 1, `I8 ${approval} was used ${uses.length} times`)
  await none('I8 a decision that did not wake', notWoken)
  // I9: every event reached the follower, in order.
  const ids = (await rows('SELECT id FROM events ORDER BY id')).map((row) => Number(row.id))
  const followed = new Set(only(world, 'event').map(({ id }) => id))
  const missed = ids.filter((id) => !followed.has(id))
  expect(missed.length === 0, `I9 the follower missed ${missed.length} of ${ids.length} events: ${missed.slice(0, 5).join(', ')}`)
  // I10: as many tasks as keys.
  const [created] = await rows('SELECT count(*) AS value FROM tasks')
  expect(Number(created?.value) === tasks, `I10 ${created?.value} tasks for ${tasks} keys`)
  // I11: no process of a run was seen after its lease, which begins with its last beat.
  const beats = new Map(
    (await rows('SELECT token_digest, last_beat_at FROM runs')).map((row) => [row.token_digest, Number(row.last_beat_at)]),
  )
  const children = only(world, 'child').map(({ token, at }) => ({ token, lateMs: at - realLeaseMs - (beats.get(token) ?? Number.NaN) }))
  const ours = children.filter(({ lateMs }) => !Number.isNaN(lateMs))
  expect(ours.length > 0, 'I11 no child was ever seen')
  for (const { token, lateMs } of ours) expect(lateMs <= graceMs, `I11 a child of ${token} lived for ${lateMs} ms after its lease`)
  const latest = Math.max(...ours.map(({ lateMs }) => lateMs))
  return {
    problems,
    figures: { ...(await figuresOf(rows, world)), 'children seen': ours.length, 'ms after the lease, the latest': latest },
  }
}

async function figuresOf(
  rows: (sql: string) => Promise<readonly Row[]>,
  world: ReturnType<typeof readWorld>,
): Promise<Record<string, number>> {
  const counts = Map.groupBy(only(world, 'count'), ({ what }) => what)
  const byStatus = await rows('SELECT status, count(*) AS value FROM tasks GROUP BY status')
  const byState = await rows('SELECT state, count(*) AS value FROM runs GROUP BY state')
  return Object.fromEntries([
    ...byStatus.map((row) => [`tasks ${row.status}`, Number(row.value)] as const),
    ...byState.map((row) => [`runs ${row.state}`, Number(row.value)] as const),
    ...[...counts].map(([what, all]) => [what, all.length] as const),
  ])
}
