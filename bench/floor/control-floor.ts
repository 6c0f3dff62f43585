/**
 * The floor of the control plane: a bare Bun.serve that sends the same statements as we do for creating, claiming and completing a task, on
 * the same tables, planned once each, and commits once a turn. It checks nothing of what it reads, and builds no task to answer with.
 */

import { Database, type Statement } from 'bun:sqlite'
import { join } from 'node:path'
import { migrations } from '../../src/control/store/schema.ts'
import { sha256 } from '../../src/kit/sha256.ts'

const db = new Database(join(Bun.env.BENCH_STORE ?? '.', 'control-floor.sqlite'), { create: true, strict: true })
db.run('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA temp_store = MEMORY; PRAGMA cache_size = -32768')
for (const statement of migrations.flat()) db.run(statement.replace('id BIGINT PRIMARY KEY', 'id INTEGER PRIMARY KEY'))
db.run("INSERT INTO agent_keys (id, agent_id, digest, created_at) VALUES ('key', 'w0', ?, 0)", [sha256('bench-key')])
db.run(
  "INSERT INTO agents (id, role, heartbeat_enabled, description, paused, wakes, created_at, place) VALUES ('w0', 'bench', 1, '', 0, 0, 0, 0)",
)

type Value = string | number | null
type Prepared = Statement<Record<string, Value>, Value[]>
const known = new Map<string, Prepared>()
function prepared(sql: string): Prepared {
  const found = known.get(sql) ?? db.prepare<Record<string, Value>, Value[]>(sql.replaceAll('= ?', '= +?'))
  known.set(sql, found)
  return found
}
const all = (sql: string, params: readonly Value[] = []) => prepared(sql).all(...params)
const next = (name: string) =>
  Number(
    all('INSERT INTO sequences (name, value) VALUES (?, 1) ON CONFLICT (name) DO UPDATE SET value = sequences.value + 1 RETURNING value', [
      name,
    ])[0]?.value,
  )

const waiting: (() => () => void)[] = []
function write<T>(command: () => T): Promise<T> {
  const { promise, resolve } = Promise.withResolvers<T>()
  const step = () => {
    const value = command()
    return () => resolve(value)
  }
  if (waiting.push(step) === 1) setImmediate(commit)
  return promise
}

function commit(): void {
  db.run('BEGIN IMMEDIATE')
  const answers = waiting.splice(0).map((step) => step())
  db.run('COMMIT')
  for (const answer of answers) answer()
}

function event(type: string, task: Value, run: Value): void {
  const insert = 'INSERT INTO events (id, at, type, actor, task_id, run_id, agent_id, role, data) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)'
  all(insert, [next('events'), Date.now(), type, 'floor', task, run, 'w0', 'bench', '{"title":"bench","status":"pending"}'])
}

function create(draft: Record<string, Value>) {
  const [id, now] = [next('tasks'), Date.now()]
  const columns = {
    ...{ id, title: draft.title ?? '', description: '', role: draft.role ?? '', agent_id: null, priority: 1, status: 'pending' },
    ...{
      blocked_reason: null,
      labels: '[]',
      context: JSON.stringify(draft.context),
      created_at: now,
      updated_at: now,
      created_by: 'floor',
    },
    ...{ version: 1, attempt: 0, max_attempts: 3, failures: 0, available_at: now, queue_at: now, parent_id: null, budget_tokens: null },
    ...{ tokens_used: 0, tokens_reserved: 0, cancel_requested: 0, open_dependencies: 0, error: null },
  }
  const [row] = all(insertTask, Object.values(columns))
  event('task.created', id, null)
  return row
}

const insertTask = `INSERT INTO tasks (id, title, description, role, agent_id, priority, status, blocked_reason, labels, context, created_at, updated_at,
  created_by, version, attempt, max_attempts, failures, available_at, queue_at, parent_id, budget_tokens, tokens_used, tokens_reserved,
  cancel_requested, open_dependencies, error) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING *`
const inQueue = (whose: string) =>
  `SELECT id FROM tasks WHERE status = 'pending' AND role = ? AND ${whose} AND queue_at < 1000000000000000 ORDER BY queue_at, id LIMIT 1`
const findCandidate = `SELECT id, attempt, budget_tokens, tokens_used, tokens_reserved FROM tasks
  WHERE id IN ((${inQueue('agent_id IS NULL')}), (${inQueue('agent_id = ?')})) ORDER BY queue_at, id LIMIT 1`
const leaseTask = `UPDATE tasks SET status = ?, attempt = ?, available_at = ?, lease_digest = ?, lease_ms = ?, run_id = ?, cancel_requested = ?, error = ?,
  version = version + 1, updated_at = ? WHERE id = ? RETURNING *`
const endTask = `UPDATE tasks SET status = ?, blocked_reason = ?, result = ?, error = ?, ended_at = ?, cancel_requested = ?, lease_digest = ?, lease_ms = ?,
  version = version + 1, updated_at = ? WHERE id = ? RETURNING *`

function claim({ role = '', agent_id: agent = '' }: Record<string, Value>) {
  all('SELECT id FROM agent_keys WHERE id = ? AND revoked_at IS NULL', ['key'])
  all('SELECT role, paused, wakes, last_seen_at FROM agents WHERE id = ?', [agent])
  all("SELECT value FROM settings WHERE name = 'budget'")
  all('SELECT daily_tokens FROM agents WHERE id = ?', [agent])
  const [task] = all(findCandidate, [role, role, agent])
  if (!task) return undefined
  const token = `cpr_${Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString('base64url')}`
  const [id, run, now, digest] = [task.id ?? 0, next('runs'), Date.now(), sha256(token)]
  const [running] = all(leaseTask, ['running', Number(task.attempt) + 1, now + 60_000, digest, 60_000, run, 0, null, now, id])
  all(
    `INSERT INTO runs (id, task_id, agent_id, role, attempt, state, token_digest, began_at, last_beat_at, tokens_used, tokens_settled, log_bytes, log_truncated)
      VALUES (?, ?, ?, ?, ?, 'running', ?, ?, ?, 0, 0, 0, 0)`,
    [run, id, agent, role, 1, digest, now, now],
  )
  all('SELECT needs FROM dependencies WHERE task_id = ? ORDER BY needs', [id])
  event('task.claimed', id, run)
  return { task: running, run_id: run, run_token: token }
}

function complete(run: Record<string, Value>, output: string) {
  const [now, runId, id] = [Date.now(), run.id ?? 0, run.task_id ?? 0]
  const [task] = all('SELECT * FROM tasks WHERE id = ?', [id])
  if (task?.run_id !== runId || task?.status !== 'running') return { ok: false }
  all("UPDATE reservations SET state = 'closed', settled_at = ? WHERE run_id = ? AND state = 'open' RETURNING *", [now, runId])
  all('SELECT agent_id, role, tokens_used FROM runs WHERE id = ?', [runId])
  all(
    "UPDATE runs SET state = ?, ended_at = ?, error = ?, skill = COALESCE(?, skill) WHERE id = ? AND state = 'running' RETURNING agent_id",
    ['completed', now, null, 'bench', runId],
  )
  all(endTask, ['completed', null, output, null, now, 0, null, null, now, id])
  all("UPDATE approvals SET state = 'cancelled', decided_at = ?, note = ? WHERE task_id = ? AND state = 'pending'", [now, 'ended', id])
  all('SELECT task_id FROM dependencies WHERE needs = ? ORDER BY task_id', [id])
  const activity = [
    next('activity'),
    now,
    'task_completed',
    'w0',
    id,
    runId,
    JSON.stringify({ digest: sha256(output), reply: { ok: true } }),
  ]
  all('INSERT INTO activity (id, at, event_type, agent_id, task_id, run_id, body) VALUES (?, ?, ?, ?, ?, ?, ?)', activity)
  event('task.completed', id, runId)
  return { ok: true }
}

const bearer = (request: Request) => sha256((request.headers.get('authorization') ?? '').slice(7))
const keyOfAgent = `SELECT agent_keys.id AS key_id, agent_keys.last_used_at AS last_used_at, agents.id AS id, agents.role AS role FROM agent_keys
  JOIN agents ON agents.id = agent_keys.agent_id WHERE agent_keys.digest = ? AND agent_keys.revoked_at IS NULL`
const runOfToken = `SELECT runs.id AS id, runs.task_id AS task_id, runs.agent_id AS agent_id, runs.role AS role, runs.attempt AS attempt, runs.state AS state,
  runs.ended_at AS ended_at, tasks.run_id AS run_id, tasks.status AS status, tasks.available_at AS available_at
  FROM runs JOIN tasks ON tasks.id = runs.task_id WHERE runs.token_digest = ?`
const isKnown = (request: Request) => all(keyOfAgent, [bearer(request)]).length === 1
const refused = () => Response.json({ error: { code: 'unauthorized', message: 'no' } }, { status: 401 })

const server = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  routes: {
    '/health': () => Response.json({ ok: true, version: '0.0.0' }),
    '/api/controlplane/tasks': {
      POST: async (request) => (isKnown(request) ? Response.json(await withBody(request, create), { status: 201 }) : refused()),
    },
    '/api/controlplane/tasks/claim': {
      POST: async (request) => {
        if (!isKnown(request)) return refused()
        const claimed = await withBody(request, claim)
        return claimed ? Response.json(claimed) : new Response(null, { status: 204 })
      },
    },
    '/api/controlplane/activity': {
      POST: async (request) => {
        const [run] = all(runOfToken, [bearer(request)])
        if (!run) return refused()
        const text = await request.text()
        JSON.parse(text)
        return Response.json(await write(() => complete(run, text)))
      },
    },
  },
})

async function withBody<T>(request: Request, work: (body: Record<string, Value>) => T): Promise<T> {
  const body: Record<string, Value> = JSON.parse(await request.text())
  return await write(() => work(body))
}

console.error(`ready: ${server.url.origin}`)
