/** Sends the statements of the control plane for creating, claiming and completing a task, with values that nothing has checked. */

import { sha256 } from '../../src/kit/sha256.ts'

export type Value = string | number | null
export type Values = Record<string, Value>
/** Runs one statement. */
export type Send = (sql: string, params?: readonly Value[]) => readonly Values[]

const operatorOfDigest = 'SELECT id, name FROM operators WHERE digest = ? AND revoked_at IS NULL'
const agentOfDigest = `SELECT agent_keys.id AS key_id, agent_keys.last_used_at AS last_used_at, agents.id AS id, agents.role AS role FROM agent_keys
  JOIN agents ON agents.id = agent_keys.agent_id WHERE agent_keys.digest = ? AND agent_keys.revoked_at IS NULL`
const runOfDigest = `SELECT runs.id AS id, runs.task_id AS task_id, runs.agent_id AS agent_id, runs.role AS role, runs.attempt AS attempt, runs.state AS state,
  runs.ended_at AS ended_at, tasks.run_id AS run_id, tasks.status AS status, tasks.available_at AS available_at
  FROM runs JOIN tasks ON tasks.id = runs.task_id WHERE runs.token_digest = ?`

const takeNumber =
  'INSERT INTO sequences (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = sequences.value + excluded.value'
const nextNumber =
  'INSERT INTO sequences (name, value) VALUES (?, 1) ON CONFLICT (name) DO UPDATE SET value = sequences.value + 1 RETURNING value'
const taken = (name: string) => `(SELECT value FROM sequences WHERE name = '${name}')`
const insertEvent = `INSERT INTO events (id, at, type, actor, task_id, run_id, agent_id, role, data)
  VALUES (${taken('events')} - ?, ?, ?, ?, ?, ?, ?, ?, ?)`

const insertTask = `INSERT INTO tasks (id, title, description, role, agent_id, priority, status, blocked_reason, labels, context, created_at, updated_at,
  created_by, version, attempt, max_attempts, failures, available_at, queue_at, parent_id, budget_tokens, tokens_used, tokens_reserved,
  cancel_requested, open_dependencies, error, check_command)
  VALUES (${taken('tasks')}, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING *`

const inQueue = (whose: string) =>
  `SELECT id FROM tasks WHERE status = 'pending' AND role = ? AND ${whose} AND queue_at < 1000000000000000 ORDER BY queue_at, id LIMIT 1`
const candidate = `SELECT id FROM tasks WHERE id IN ((${inQueue('agent_id IS NULL')}), (${inQueue('agent_id = ?')})) ORDER BY queue_at, id LIMIT 1`
const lookAtAgent = `SELECT role, paused, wakes, last_seen_at, daily_tokens, (SELECT value FROM settings WHERE name = 'budget') AS budget,
  (SELECT COUNT(*) FROM agent_keys WHERE id = ? AND revoked_at IS NULL) AS keys, (${candidate}) AS candidate FROM agents WHERE id = ?`
const takeTask = `UPDATE tasks SET status = 'running', attempt = attempt + 1, run_id = ${taken('runs')}, available_at = ?, lease_digest = ?, lease_ms = ?,
  cancel_requested = 0, error = NULL, version = version + 1, updated_at = ?
  WHERE id = (${candidate}) AND (budget_tokens IS NULL OR tokens_used + tokens_reserved < budget_tokens)
  RETURNING *, (SELECT COUNT(*) FROM dependencies WHERE task_id = tasks.id) AS needs`
const insertRun = `INSERT INTO runs (id, task_id, agent_id, role, attempt, state, token_digest, began_at, last_beat_at, tokens_used, tokens_settled, log_bytes, log_truncated)
  VALUES (?, ?, ?, ?, ?, 'running', ?, ?, ?, 0, 0, 0, 0)`

const endRun = `UPDATE runs SET state = ?, ended_at = ?, error = ?, skill = COALESCE(?, skill) WHERE id = ? AND state = 'running'
  RETURNING id, task_id, agent_id, role, tokens_used,
  (SELECT COUNT(*) FROM reservations WHERE run_id = runs.id AND state = 'open') AS open_reservations`
const endTask = `UPDATE tasks SET status = ?, blocked_reason = ?, result = ?, error = ?, ended_at = ?, cancel_requested = ?, lease_digest = ?, lease_ms = ?,
  version = version + 1, updated_at = ? WHERE id = ?
  RETURNING *, (SELECT COUNT(*) FROM approvals WHERE task_id = tasks.id AND state = 'pending') AS questions,
  (SELECT COUNT(*) FROM dependencies WHERE needs = tasks.id) AS dependents`
const insertActivity = 'INSERT INTO activity (id, at, event_type, agent_id, task_id, run_id, body) VALUES (?, ?, ?, ?, ?, ?, ?)'

/** Each looks a secret up; undefined: nobody has it. */
export function createLookUps(send: Send) {
  return {
    operatorOf: (secret: string) => send(operatorOfDigest, [sha256(secret)])[0],
    agentOf: (secret: string) => send(agentOfDigest, [sha256(secret)])[0],
    runOf: (secret: string) => send(runOfDigest, [sha256(secret)])[0],
  }
}

/** Each sends all statements of one request. */
export function createCommands(send: Send) {
  function event(type: string, task: Value, run: Value): void {
    send(takeNumber, ['events', 1])
    send(insertEvent, [0, Date.now(), type, 'floor', task, run, 'w0', 'bench', '{"title":"bench","status":"pending"}'])
  }

  function create({ title = '', role = '', context = null }: Values): Values | undefined {
    const now = Date.now()
    send(takeNumber, ['tasks', 1])
    const [task] = send(insertTask, [
      ...[title, '', role, null, 1, 'pending', null, '[]', JSON.stringify(context), now, now, 'floor', 1, 0, 3, 0, now, now],
      ...[null, null, 0, 0, 0, 0, null, null],
    ])
    event('task.created', task?.id ?? null, null)
    return task
  }

  function claim({ role = '', agent_id: agent = '' }: Values) {
    const [looked] = send(lookAtAgent, ['key', role, role, agent, agent])
    if (looked?.candidate === null) return undefined
    const token = `cpr_${Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString('base64url')}`
    const [now, digest] = [Date.now(), sha256(token)]
    send(takeNumber, ['runs', 1])
    const [task] = send(takeTask, [now + 60_000, digest, 60_000, now, role, role, agent])
    if (!task) return undefined
    const [id = 0, run = 0] = [task.id, task.run_id]
    send(insertRun, [run, id, agent, role, task.attempt ?? 1, digest, now, now])
    event('task.claimed', id, run)
    return { task, run_id: run, run_token: token }
  }

  /** `run`: what `runOf` answered. `text`: the body of the request. */
  function complete({ id: run = 0, task_id: id = 0 }: Values, text: string) {
    const now = Date.now()
    const [task] = send('SELECT * FROM tasks WHERE id = ?', [id])
    if (task?.run_id !== run || task.status !== 'running') return { ok: false }
    send(endRun, ['completed', now, null, 'bench', run])
    send(endTask, ['completed', null, text, null, now, 0, null, null, now, id])
    const [number] = send(nextNumber, ['activity'])
    const body = JSON.stringify({ digest: sha256(text), reply: { ok: true } })
    send(insertActivity, [number?.value ?? 0, now, 'task_completed', 'w0', id, run, body])
    event('task.completed', id, run)
    return { ok: true }
  }

  return { create, claim, complete }
}
