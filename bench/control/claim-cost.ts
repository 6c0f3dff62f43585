/** What one claim costs in a table of a thousand tasks and of a million: the commands alone, without HTTP. */

import { join } from 'node:path'
import type { Command, Store } from '../../src/control/contract/store-port.ts'
import { claimRequest } from '../../src/control/contract/task-shapes.ts'
import { createContext } from '../../src/control/plane/command.ts'
import { eventsLast } from '../../src/control/plane/events.ts'
import { claimBatchKey, claimTask } from '../../src/control/plane/tasks/claim-task.ts'
import { openPostgres } from '../../src/control/store/open-postgres.ts'
import { openSqlite } from '../../src/control/store/open-sqlite.ts'
import { startPostgres } from '../../test/control/support/postgres.ts'
import { median } from '../measure.ts'
import type { Bench, Figure } from './figures.ts'

const quiet = () => {}
const rounds = 9
const claims = 200

export async function claimCost({ scratch }: Bench): Promise<readonly Figure[]> {
  return await costsIn('', (tasks) => openSqlite({ path: join(scratch, `cost-${tasks}.sqlite`), log: quiet }))
}

export async function claimCostOnPostgres(): Promise<readonly Figure[]> {
  const postgres = await startPostgres({ settings: ['fsync=on', 'max_wal_size=4GB'] })
  try {
    return await costsIn('PostgreSQL: ', async () => openPostgres({ url: await postgres.createDatabase(), log: quiet }))
  } finally {
    await postgres.remove()
  }
}

async function costsIn(engine: string, open: (tasks: number) => Promise<Store>): Promise<readonly Figure[]> {
  const filled = async (tasks: number) => {
    const store = await open(tasks)
    for (let from = 1; from <= tasks; from += atOnce) await store.write(() => fill(from, Math.min(tasks, from + atOnce - 1)))
    await store.write(() => addAgent(tasks))
    return store
  }
  const [small, large] = [await filled(1_000 + (rounds + 1) * claims), await filled(1_000_000)]
  const [few, many]: [number[], number[]] = [[], []]
  // Once to warm up.
  for (const store of [small, large]) await cost(store)
  for (let round = 0; round < rounds; round++) {
    few.push(await cost(small))
    many.push(await cost(large))
  }
  await Promise.all([small.close(), large.close()])
  return [
    { what: `${engine}a claim among 1,000 tasks`, value: median(few), unit: 'µs' },
    { what: `${engine}a claim among 1,000,000 tasks`, value: median(many), unit: 'µs' },
    { what: '… against 1,000', value: median(many.map((value, at) => value / (few[at] ?? Number.NaN))), unit: '×', most: 1.5 },
  ]
}

/** PostgreSQL ends a statement that takes longer than half a minute. */
const atOnce = 50_000

function* addAgent(tasks: number): Command<void> {
  yield [
    "INSERT INTO agents (id, role, heartbeat_enabled, description, paused, wakes, created_at, place) VALUES ('w0', 'bench', 1, '', 0, 0, 0, 0)",
  ]
  yield ["INSERT INTO sequences (name, value) VALUES ('tasks', ?)", [tasks]]
}

function* fill(from: number, to: number): Command<void> {
  const columns = `id, title, description, role, priority, status, labels, context, created_at, updated_at, created_by, version, attempt, max_attempts, failures,
    available_at, queue_at, tokens_used, tokens_reserved, cancel_requested, open_dependencies`
  yield [
    `INSERT INTO tasks (${columns}) WITH RECURSIVE numbers (n) AS (SELECT ${from} UNION ALL SELECT n + 1 FROM numbers WHERE n < ${to})
      SELECT n, 'task ' || n, '', 'bench', 1, 'pending', '[]', '{}', n, n, 'bench', 1, 0, 3, 0, n, n, 0, 0, 0, 0 FROM numbers`,
  ]
}

/** Microseconds a claim, of a group that is committed together. */
async function cost(inner: Store): Promise<number> {
  const context = createContext({
    ...{ store: eventsLast(inner), now: Date.now, random: Math.random, leaseSeconds: 3_600, approvalHours: 24, log: quiet },
    randomBytes: (count) => crypto.getRandomValues(new Uint8Array(count)),
  })
  const caller = { kind: 'agent', id: 'w0', role: 'bench' } as const
  const claiming = { caller, request: claimRequest.parse({ role: 'bench', agent_id: 'w0' }), disconnected: new AbortController().signal }
  const begun = Bun.nanoseconds()
  await Promise.all(Array.from({ length: claims }, () => context.store.write(() => claimTask(context, claiming), claimBatchKey())))
  return (Bun.nanoseconds() - begun) / 1_000 / claims
}
