/** Lists the tables of the control plane in the SQL that SQLite and PostgreSQL share, and brings those of an older version up to date. */

import { PlaneRefusal } from '../contract/plane-refusal.ts'
import type { Command, Engine } from '../contract/store-port.ts'

/** Holds one entry for each version and is only ever appended to; each statement runs once, in one transaction for each version. */
export const migrations: readonly (readonly string[])[] = [
  [
    `CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL)`,
    // `value` is the last number of each kind of record. The row of events is locked until the commit, so ids are in commit order.
    `CREATE TABLE sequences (name TEXT PRIMARY KEY, value BIGINT NOT NULL)`,
    `CREATE TABLE tasks (
      id BIGINT PRIMARY KEY, title TEXT NOT NULL, description TEXT NOT NULL, role TEXT NOT NULL, agent_id TEXT, priority SMALLINT NOT NULL,
      status TEXT NOT NULL, blocked_reason TEXT, labels TEXT NOT NULL, context TEXT NOT NULL, created_at BIGINT NOT NULL, updated_at BIGINT NOT NULL,
      created_by TEXT NOT NULL, version BIGINT NOT NULL, attempt INTEGER NOT NULL, max_attempts INTEGER NOT NULL, failures INTEGER NOT NULL,
      available_at BIGINT NOT NULL, queue_at BIGINT NOT NULL, lease_digest TEXT, lease_ms BIGINT, run_id BIGINT, parent_id BIGINT, budget_tokens BIGINT,
      tokens_used BIGINT NOT NULL, tokens_reserved BIGINT NOT NULL, cancel_requested SMALLINT NOT NULL, open_dependencies INTEGER NOT NULL, result TEXT, error TEXT, ended_at BIGINT)`,
    // queue_at is created_at less a bonus for its priority, so one index gives the order and old tasks of low priority come first in the end.
    `CREATE INDEX tasks_queue ON tasks (role, queue_at, id) WHERE status = 'pending' AND agent_id IS NULL`,
    `CREATE INDEX tasks_of_agents ON tasks (agent_id, role, queue_at, id) WHERE status = 'pending' AND agent_id IS NOT NULL`,
    // A pending task that may not run yet has this queue_at, so that a claim does not look at it. The columns of the condition come first: without
    // statistics SQLite takes tasks_by_status otherwise.
    `CREATE INDEX tasks_delayed ON tasks (status, queue_at, available_at) WHERE status = 'pending' AND queue_at = 1000000000000000`,
    `CREATE INDEX tasks_leases ON tasks (status, available_at) WHERE status = 'running'`,
    `CREATE INDEX tasks_by_status ON tasks (status, id)`,
    `CREATE INDEX tasks_by_role ON tasks (role, status, id)`,
    `CREATE INDEX tasks_by_agent ON tasks (agent_id, id)`,
    `CREATE INDEX tasks_by_parent ON tasks (parent_id, id)`,
    `CREATE TABLE dependencies (task_id BIGINT NOT NULL, needs BIGINT NOT NULL, PRIMARY KEY (task_id, needs))`,
    `CREATE INDEX dependencies_by_need ON dependencies (needs)`,
    `CREATE TABLE labels (task_id BIGINT NOT NULL, label TEXT NOT NULL, PRIMARY KEY (label, task_id))`,
    `CREATE TABLE runs (
      id BIGINT PRIMARY KEY, task_id BIGINT NOT NULL, agent_id TEXT NOT NULL, role TEXT NOT NULL, attempt INTEGER NOT NULL, state TEXT NOT NULL,
      token_digest TEXT NOT NULL, began_at BIGINT NOT NULL, ended_at BIGINT, last_beat_at BIGINT NOT NULL, tokens_used BIGINT NOT NULL, tokens_settled BIGINT NOT NULL,
      skill TEXT, error TEXT, log_bytes BIGINT NOT NULL, log_truncated SMALLINT NOT NULL, manifest TEXT, changes TEXT)`,
    `CREATE UNIQUE INDEX runs_by_token ON runs (token_digest)`,
    `CREATE INDEX runs_by_task ON runs (task_id, id)`,
    `CREATE INDEX runs_by_agent ON runs (agent_id, id)`,
    `CREATE INDEX runs_by_state ON runs (state, id)`,
    `CREATE TABLE run_logs (run_id BIGINT NOT NULL, at_byte BIGINT NOT NULL, piece TEXT NOT NULL, PRIMARY KEY (run_id, at_byte))`,
    `CREATE TABLE artifacts (run_id BIGINT NOT NULL, name TEXT NOT NULL, digest TEXT NOT NULL, bytes BIGINT NOT NULL, body TEXT NOT NULL, PRIMARY KEY (run_id, name))`,
    `CREATE TABLE sessions (id BIGINT PRIMARY KEY, agent_id TEXT NOT NULL, run_id BIGINT, line TEXT NOT NULL)`,
    `CREATE INDEX sessions_by_agent ON sessions (agent_id, id)`,
    `CREATE TABLE effects (
      task_id BIGINT NOT NULL, key TEXT NOT NULL, run_id BIGINT NOT NULL, idempotent SMALLINT NOT NULL, description TEXT NOT NULL, state TEXT NOT NULL,
      result TEXT, begun_at BIGINT NOT NULL, done_at BIGINT, PRIMARY KEY (task_id, key))`,
    `CREATE TABLE approvals (
      id BIGINT PRIMARY KEY, task_id BIGINT, run_id BIGINT, agent_id TEXT NOT NULL, role TEXT, operation TEXT NOT NULL, reasoning TEXT NOT NULL,
      estimated_tokens BIGINT NOT NULL, details TEXT NOT NULL, digest TEXT NOT NULL, state TEXT NOT NULL, note TEXT, decided_by TEXT, decided_at BIGINT,
      used_at BIGINT, used_by TEXT, created_at BIGINT NOT NULL, expires_at BIGINT NOT NULL)`,
    `CREATE INDEX approvals_by_state ON approvals (state, id)`,
    `CREATE INDEX approvals_by_agent ON approvals (agent_id, id)`,
    `CREATE INDEX approvals_by_task ON approvals (task_id, id)`,
    `CREATE TABLE agents (
      id TEXT PRIMARY KEY, role TEXT NOT NULL, heartbeat_enabled SMALLINT NOT NULL, description TEXT NOT NULL, daily_tokens BIGINT, paused SMALLINT NOT NULL,
      paused_reason TEXT, wakes BIGINT NOT NULL, last_seen_at BIGINT, worker TEXT, receipts TEXT, created_at BIGINT NOT NULL, place BIGINT NOT NULL)`,
    `CREATE TABLE agent_keys (id TEXT PRIMARY KEY, agent_id TEXT NOT NULL, digest TEXT NOT NULL UNIQUE, created_at BIGINT NOT NULL, last_used_at BIGINT, revoked_at BIGINT)`,
    `CREATE TABLE operators (id TEXT PRIMARY KEY, name TEXT NOT NULL, digest TEXT NOT NULL UNIQUE, created_at BIGINT NOT NULL, revoked_at BIGINT)`,
    // scope: '*', 'role:NAME', 'agent:NAME'; rows are made with the first reservation of a day.
    `CREATE TABLE budget_days (day TEXT NOT NULL, scope TEXT NOT NULL, spent BIGINT NOT NULL, reserved BIGINT NOT NULL, PRIMARY KEY (day, scope))`,
    `CREATE TABLE reservations (
      id BIGINT PRIMARY KEY, run_id BIGINT NOT NULL, task_id BIGINT NOT NULL, day TEXT NOT NULL, role TEXT NOT NULL, agent_id TEXT NOT NULL, tokens BIGINT NOT NULL,
      state TEXT NOT NULL, spent BIGINT, purpose TEXT NOT NULL, model TEXT NOT NULL, created_at BIGINT NOT NULL, settled_at BIGINT)`,
    `CREATE INDEX reservations_open ON reservations (run_id) WHERE state = 'open'`,
    // Every counted token has a row with its reason: the sum of a day's rows is the day's spend.
    `CREATE TABLE ledger (id BIGINT PRIMARY KEY, at BIGINT NOT NULL, day TEXT NOT NULL, role TEXT, agent_id TEXT NOT NULL, task_id BIGINT, run_id BIGINT, tokens BIGINT NOT NULL, reason TEXT NOT NULL, model TEXT NOT NULL)`,
    `CREATE INDEX ledger_by_day ON ledger (day, role)`,
    `CREATE TABLE activity (id BIGINT PRIMARY KEY, at BIGINT NOT NULL, event_type TEXT NOT NULL, agent_id TEXT NOT NULL, task_id BIGINT, run_id BIGINT, body TEXT NOT NULL)`,
    `CREATE INDEX activity_by_agent ON activity (agent_id, id)`,
    `CREATE INDEX activity_by_task ON activity (task_id, id)`,
    `CREATE TABLE events (id BIGINT PRIMARY KEY, at BIGINT NOT NULL, type TEXT NOT NULL, actor TEXT NOT NULL, task_id BIGINT, run_id BIGINT, agent_id TEXT, role TEXT, data TEXT NOT NULL)`,
    `CREATE INDEX events_by_task ON events (task_id, id)`,
    `CREATE INDEX events_by_agent ON events (agent_id, id)`,
    `CREATE TABLE replies (owner TEXT NOT NULL, key TEXT NOT NULL, digest TEXT NOT NULL, status INTEGER NOT NULL, body TEXT NOT NULL, at BIGINT NOT NULL, PRIMARY KEY (owner, key))`,
    `CREATE INDEX replies_by_time ON replies (at)`,
    `CREATE TABLE schedules (
      id BIGINT PRIMARY KEY, name TEXT NOT NULL UNIQUE, draft TEXT NOT NULL, enabled SMALLINT NOT NULL, next_at BIGINT, last_fired_at BIGINT, last_task_id BIGINT, created_at BIGINT NOT NULL)`,
    // A row is written before its task is created, so that a due time never fires twice.
    `CREATE TABLE fired (schedule_id BIGINT NOT NULL, due_at BIGINT NOT NULL, task_id BIGINT, at BIGINT NOT NULL, PRIMARY KEY (schedule_id, due_at))`,
    `CREATE TABLE hostd_calls (id BIGINT PRIMARY KEY, at BIGINT NOT NULL, op TEXT NOT NULL, params TEXT NOT NULL, caller TEXT NOT NULL, ok SMALLINT NOT NULL, exit_code INTEGER, output TEXT NOT NULL)`,
  ],
  [
    // These indexes count what one agent may leave open.
    `CREATE INDEX tasks_open_of_creators ON tasks (created_by) WHERE ended_at IS NULL AND substr(created_by, 1, 6) IN ('agent ', 'shared')`,
    `CREATE INDEX approvals_open_of_agents ON approvals (agent_id) WHERE state = 'pending'`,
    `CREATE INDEX events_by_type ON events (type, id)`,
    // Lists in the order of the queue use this index; claims have their own, smaller indexes.
    `CREATE INDEX tasks_by_place ON tasks (queue_at, id)`,
    // Where a task with labels stands in the queue, so that a claim with labels reads only what has the label: the queue is the role, or
    // "ROLE AGENT" for a task of one agent alone, and NULL unless the task is pending.
    `ALTER TABLE labels ADD COLUMN queue TEXT`,
    `ALTER TABLE labels ADD COLUMN queue_at BIGINT`,
    `CREATE INDEX labels_by_task ON labels (task_id)`,
    `CREATE INDEX labels_queue ON labels (label, queue, queue_at, task_id) WHERE queue IS NOT NULL`,
    `UPDATE labels SET queue_at = (SELECT queue_at FROM tasks WHERE tasks.id = labels.task_id),
      queue = (SELECT CASE WHEN status <> 'pending' THEN NULL WHEN agent_id IS NULL THEN role ELSE role || ' ' || agent_id END
        FROM tasks WHERE tasks.id = labels.task_id)`,
    // The deletion of old records needs these columns.
    `ALTER TABLE sessions ADD COLUMN at BIGINT NOT NULL DEFAULT 0`,
    `UPDATE sessions SET at = COALESCE((SELECT began_at FROM runs WHERE runs.id = sessions.run_id), (SELECT MAX(at) FROM events), 0)`,
    `ALTER TABLE hostd_calls ADD COLUMN task_id BIGINT`,
  ],
  // Sessions of browsers that were logged out, until their cookies expire.
  [`CREATE TABLE ended_sessions (id TEXT PRIMARY KEY, expires_at BIGINT NOT NULL)`],
  [`ALTER TABLE tasks ADD COLUMN check_command TEXT`],
]

/** Creates missing tables and columns. @returns the version of the tables afterwards. @throws PlaneRefusal when a newer version wrote them */
export function* bringUpToDate(engine: Engine): Command<number> {
  // Two daemons may start at once, and CREATE TABLE IF NOT EXISTS alone is not safe against that in PostgreSQL.
  if (engine === 'postgres') yield ['SELECT pg_advisory_xact_lock(3100)']
  yield ['CREATE TABLE IF NOT EXISTS schema_version (version BIGINT NOT NULL)']
  const [row] = yield ['SELECT version FROM schema_version']
  const version = Number(row?.version ?? 0)
  if (version > migrations.length) throw newerSchema(version)
  for (const statement of migrations.slice(version).flat()) yield [adaptToEngine(engine, statement)]
  if (version === 0) yield ['INSERT INTO schema_version (version) VALUES (?)', [migrations.length]]
  else if (version < migrations.length) yield ['UPDATE schema_version SET version = ?', [migrations.length]]
  return migrations.length
}

/** Adapts the key: in SQLite only INTEGER makes it the number of the row itself; BIGINT would keep a second tree for it. */
function adaptToEngine(engine: Engine, statement: string): string {
  return engine === 'sqlite' ? statement.replace('id BIGINT PRIMARY KEY', 'id INTEGER PRIMARY KEY') : statement
}

function newerSchema(version: number): PlaneRefusal {
  const why = `its tables have version ${version}, this program knows up to ${migrations.length}`
  return new PlaneRefusal('unavailable', `the database was written by a newer BraidClaw (${why}); update BraidClaw`, {
    storage: 'newer_schema',
  })
}
