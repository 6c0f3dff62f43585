/** Defines the database schema as numbered steps, counted by `PRAGMA user_version`; a released step never changes. */

export const migrations: readonly string[] = [
  `
CREATE TABLE runs(
  run_id TEXT PRIMARY KEY, conversation_id TEXT NOT NULL, turn_id TEXT NOT NULL, provider TEXT NOT NULL, model TEXT NOT NULL,
  channel TEXT NOT NULL, owner TEXT NOT NULL, started INTEGER NOT NULL, ended INTEGER, code TEXT, message TEXT, digest TEXT
) STRICT;
CREATE INDEX runs_by_conversation ON runs(conversation_id);
CREATE INDEX runs_open ON runs(owner) WHERE ended IS NULL;

CREATE TABLE journal(
  seq INTEGER PRIMARY KEY AUTOINCREMENT, run_id TEXT NOT NULL, kind TEXT NOT NULL CHECK (kind IN ('external', 'intent', 'note')),
  type TEXT NOT NULL, at INTEGER NOT NULL, body TEXT NOT NULL
) STRICT;
CREATE INDEX journal_by_run ON journal(run_id, seq);

CREATE TABLE intents(
  run_id TEXT NOT NULL, call_id TEXT NOT NULL, tool TEXT NOT NULL, risk TEXT NOT NULL, args_hash TEXT NOT NULL, approval TEXT,
  PRIMARY KEY (run_id, call_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE conversations(
  conversation_id TEXT PRIMARY KEY, started INTEGER NOT NULL, updated INTEGER NOT NULL, turns INTEGER NOT NULL, title TEXT NOT NULL,
  last_seq INTEGER NOT NULL
) STRICT;
CREATE INDEX conversations_by_last ON conversations(last_seq);

CREATE TABLE turns(
  id INTEGER PRIMARY KEY, journal_seq INTEGER NOT NULL, run_id TEXT NOT NULL, conversation_id TEXT NOT NULL, turn_id TEXT NOT NULL,
  at INTEGER NOT NULL, role TEXT NOT NULL, content TEXT NOT NULL, tool_calls TEXT, tool_results TEXT,
  provider TEXT NOT NULL, model TEXT NOT NULL, metadata TEXT NOT NULL
) STRICT;
CREATE INDEX turns_by_conversation ON turns(conversation_id);
CREATE INDEX turns_by_run ON turns(run_id);
CREATE VIRTUAL TABLE turns_fts USING fts5(content, content='turns', content_rowid='id', tokenize='porter unicode61 remove_diacritics 2');

CREATE TABLE checkpoint(
  one INTEGER PRIMARY KEY CHECK (one = 1), log_id TEXT NOT NULL, count INTEGER NOT NULL, head TEXT NOT NULL, mac TEXT NOT NULL,
  size INTEGER NOT NULL
) STRICT;

CREATE TABLE approvals(
  id TEXT PRIMARY KEY, run_id TEXT NOT NULL, conversation_id TEXT NOT NULL, call_id TEXT NOT NULL, tool TEXT NOT NULL, risk TEXT NOT NULL,
  reason TEXT NOT NULL, summary TEXT NOT NULL, plan TEXT NOT NULL, created INTEGER NOT NULL, expires INTEGER NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('open', 'allowed', 'denied', 'used')), decided_by TEXT, decided_at INTEGER, note TEXT
) STRICT;
CREATE INDEX approvals_by_state ON approvals(state, created);

CREATE TABLE always_rules(
  id INTEGER PRIMARY KEY AUTOINCREMENT, tool TEXT NOT NULL, scope TEXT NOT NULL, added_by TEXT NOT NULL, added_at INTEGER NOT NULL,
  UNIQUE (tool, scope)
) STRICT;
`,
  `
ALTER TABLE journal ADD COLUMN digest TEXT;
ALTER TABLE intents ADD COLUMN sandbox TEXT;
`,
  `
CREATE TABLE summaries(
  id INTEGER PRIMARY KEY, conversation_id TEXT NOT NULL, through_position INTEGER NOT NULL, turns INTEGER NOT NULL, text TEXT NOT NULL,
  source_digest TEXT NOT NULL, previous_digest TEXT NOT NULL, model TEXT NOT NULL, at INTEGER NOT NULL, digest TEXT NOT NULL
) STRICT;
CREATE INDEX summaries_by_conversation ON summaries(conversation_id, id);
CREATE TABLE summary_failures(
  conversation_id TEXT PRIMARY KEY, count INTEGER NOT NULL, at INTEGER NOT NULL, message TEXT NOT NULL
) STRICT, WITHOUT ROWID;
`,
  // Each index adds a page to every transaction of a turn. A conversation's turns are the turns of its runs; the list of conversations is
  // short enough to sort; a journal number is reused only after the newest entries were cleared with everything that refers to them.
  `
DROP INDEX conversations_by_last;
DROP INDEX turns_by_conversation;
CREATE TABLE journal_without_sequence(
  seq INTEGER PRIMARY KEY, run_id TEXT NOT NULL, kind TEXT NOT NULL CHECK (kind IN ('external', 'intent', 'note')),
  type TEXT NOT NULL, at INTEGER NOT NULL, body TEXT NOT NULL, digest TEXT
) STRICT;
INSERT INTO journal_without_sequence SELECT seq, run_id, kind, type, at, body, digest FROM journal;
DROP TABLE journal;
ALTER TABLE journal_without_sequence RENAME TO journal;
CREATE INDEX journal_by_run ON journal(run_id, seq);
`,
  // How many receipts existed when the call began: its own receipt comes after them.
  `
ALTER TABLE intents ADD COLUMN receipts_before INTEGER NOT NULL DEFAULT 0;
`,
  // The folder where the conversation of a run began; null in older runs.
  `
ALTER TABLE runs ADD COLUMN folder TEXT;
`,
  // The seal of a run's end, and how many journal entries it covers; null in older runs.
  `
ALTER TABLE runs ADD COLUMN seal TEXT;
ALTER TABLE runs ADD COLUMN entries INTEGER;
`,
  // The agent whose files show a run. `agent_files`: how far each file is accounted for, and after which journal entry the journal produces
  // its lines; the first `base` bytes are older. `unprojected`: runs whose lines were not all confirmed in the files yet, with the number
  // confirmed per file. The index on folders lets a turn in one folder skip the runs of others. Files of a home older than this step stay
  // unchanged: the row inserted last marks such a home.
  `
ALTER TABLE runs ADD COLUMN agent TEXT;
CREATE TABLE agent_files(
  folder TEXT NOT NULL, file TEXT NOT NULL, bytes INTEGER NOT NULL, lines INTEGER NOT NULL, tail TEXT NOT NULL, since INTEGER NOT NULL,
  base INTEGER NOT NULL, base_sha256 TEXT NOT NULL, open TEXT NOT NULL, PRIMARY KEY (folder, file)
) STRICT, WITHOUT ROWID;
CREATE TABLE unprojected(
  run_id TEXT PRIMARY KEY, folder TEXT NOT NULL, trace INTEGER NOT NULL, session INTEGER NOT NULL, history INTEGER NOT NULL
) STRICT;
CREATE INDEX runs_by_folder ON runs(folder) WHERE folder IS NOT NULL;
INSERT INTO agent_files SELECT '', '', 0, 0, '', max(seq), 0, '', '{}' FROM journal HAVING max(seq) IS NOT NULL;
`,
  // `budget_charges`: spent and reserved amounts together, by scope and UTC day. `budget_reservations`: the part that is only reserved;
  // when a process dies, its reserved amounts remain charged, so they count as spent.
  `
CREATE TABLE budget_charges(
  scope TEXT NOT NULL, day TEXT NOT NULL, tokens INTEGER NOT NULL, micros INTEGER NOT NULL, PRIMARY KEY (scope, day)
) STRICT, WITHOUT ROWID;
CREATE TABLE budget_reservations(
  id TEXT PRIMARY KEY, scopes TEXT NOT NULL, day TEXT NOT NULL, tokens INTEGER NOT NULL, micros INTEGER NOT NULL, owner TEXT NOT NULL,
  expires INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
`,
  // Which log of receipts this database began or will begin, and how many receipts it had before clears began to leave one. Also the plain
  // text of operator actions outside of any run: their receipts contain its hash.
  `
CREATE TABLE own_log(one INTEGER PRIMARY KEY CHECK (one = 1), log_id TEXT NOT NULL, older INTEGER NOT NULL) STRICT;
INSERT INTO own_log SELECT 1, coalesce((SELECT log_id FROM checkpoint), lower(hex(randomblob(16)))), coalesce((SELECT count FROM checkpoint), 0);
CREATE TABLE operator_actions(receipt_id TEXT PRIMARY KEY, input TEXT NOT NULL) STRICT, WITHOUT ROWID;
`,
  // `applying`: approvals of changes whose run has ended, while a process applies those changes. `read_labels`: whether the calls of a
  // conversation have read private data or content of others.
  `
CREATE TABLE applying(id TEXT PRIMARY KEY, by TEXT NOT NULL, owner TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE read_labels(
  conversation_id TEXT NOT NULL, label TEXT NOT NULL CHECK (label IN ('reads_private', 'reads_untrusted')), PRIMARY KEY (conversation_id, label)
) STRICT, WITHOUT ROWID;
`,
  // Tokens of programs that talk to this home over HTTP: of each secret only its SHA-256. The name of a revoked token is free again.
  // `token_conversations`: which token began a conversation.
  `
CREATE TABLE access_tokens(
  id TEXT PRIMARY KEY, name TEXT NOT NULL, digest TEXT NOT NULL, scopes TEXT NOT NULL, limits TEXT NOT NULL, created INTEGER NOT NULL,
  revoked INTEGER
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX access_tokens_by_name ON access_tokens(name) WHERE revoked IS NULL;
CREATE TABLE token_conversations(conversation_id TEXT PRIMARY KEY, token_id TEXT NOT NULL) STRICT, WITHOUT ROWID;
`,
  // `schedule_runs`: a row exists before its run is started, and a due time has one row per attempt. `unsent`: the text that the channel has
  // not sent yet, and `sender` the process that is sending it. `schedule_lease`: the process that starts what is due.
  // `channel_addresses`: where each conversation of a channel was heard last.
  `
CREATE TABLE schedules(
  id TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, kind TEXT NOT NULL CHECK (kind IN ('at', 'every', 'cron')), spec TEXT NOT NULL,
  zone TEXT NOT NULL, anchor INTEGER NOT NULL, message TEXT NOT NULL, workspace TEXT NOT NULL, agent TEXT, autonomy TEXT,
  conversation TEXT NOT NULL, channel TEXT, recipient TEXT, check_command TEXT, missed TEXT NOT NULL, overlap TEXT NOT NULL,
  pause_after INTEGER NOT NULL, state TEXT NOT NULL CHECK (state IN ('active', 'paused', 'done')), why TEXT NOT NULL,
  checked INTEGER NOT NULL, failures INTEGER NOT NULL, created INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE schedule_runs(
  schedule_id TEXT NOT NULL, due INTEGER NOT NULL, attempt INTEGER NOT NULL, state TEXT NOT NULL, fired INTEGER NOT NULL,
  owner TEXT NOT NULL, started_by TEXT NOT NULL, passed_over INTEGER NOT NULL, conversation_id TEXT, run_id TEXT, ended INTEGER,
  ending TEXT, message TEXT, checked TEXT, tokens INTEGER, micros INTEGER, unsent TEXT, sender TEXT, tries INTEGER NOT NULL DEFAULT 0,
  sent TEXT, PRIMARY KEY (schedule_id, due, attempt)
) STRICT, WITHOUT ROWID;
CREATE INDEX schedule_runs_open ON schedule_runs(state) WHERE state = 'running';
CREATE TABLE schedule_lease(one INTEGER PRIMARY KEY CHECK (one = 1), owner TEXT NOT NULL, until INTEGER NOT NULL) STRICT;
CREATE TABLE channel_addresses(
  channel TEXT NOT NULL, conversation_id TEXT NOT NULL, address TEXT NOT NULL, PRIMARY KEY (channel, conversation_id)
) STRICT, WITHOUT ROWID;
`,
  // `spent`: what the model calls of an ended run used, by day and model (journal/spent-of-run.ts). `token`: the access token that asked.
  // `spend`: the usage that no row of a run has: runs that were deleted, summaries, reservations that were never settled. A deleted run leaves its
  // spend whoever deletes it. `payer`: whom a reservation is charged to.
  `
ALTER TABLE runs ADD COLUMN token TEXT;
ALTER TABLE runs ADD COLUMN spent TEXT;
ALTER TABLE budget_reservations ADD COLUMN payer TEXT;
CREATE TABLE spend(
  kind TEXT NOT NULL CHECK (kind IN ('cleared', 'summary', 'unsettled')), run_id TEXT NOT NULL, conversation_id TEXT NOT NULL,
  day TEXT NOT NULL, channel TEXT NOT NULL, token TEXT NOT NULL, agent TEXT NOT NULL, provider TEXT NOT NULL, model TEXT NOT NULL,
  calls INTEGER NOT NULL, input INTEGER NOT NULL, output INTEGER NOT NULL, cached INTEGER NOT NULL, micros INTEGER NOT NULL,
  unpriced INTEGER NOT NULL, estimated INTEGER NOT NULL, lost INTEGER NOT NULL, unsettled INTEGER NOT NULL,
  PRIMARY KEY (kind, run_id, conversation_id, day, channel, token, agent, provider, model)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER runs_leave_spend BEFORE DELETE ON runs WHEN json_valid(OLD.spent) BEGIN
  INSERT INTO spend SELECT 'cleared', '', '', coalesce(value ->> 0, ''), OLD.channel, coalesce(OLD.token, ''),
    CASE WHEN json_valid(OLD.agent) THEN coalesce(OLD.agent ->> '$.id', '') ELSE '' END, coalesce(value ->> 1, ''), coalesce(value ->> 2, ''),
    CAST(value ->> 3 AS INTEGER), CAST(value ->> 4 AS INTEGER), CAST(value ->> 5 AS INTEGER), CAST(value ->> 6 AS INTEGER),
    CAST(value ->> 7 AS INTEGER), CAST(value ->> 8 AS INTEGER), CAST(value ->> 9 AS INTEGER), CAST(value ->> 10 AS INTEGER), 0
  FROM json_each(OLD.spent) WHERE json_array_length(value) = 11
  ON CONFLICT DO UPDATE SET calls = calls + excluded.calls, input = input + excluded.input, output = output + excluded.output,
    cached = cached + excluded.cached, micros = micros + excluded.micros, unpriced = unpriced + excluded.unpriced,
    estimated = estimated + excluded.estimated, lost = lost + excluded.lost;
END;
UPDATE runs SET spent = (SELECT json_group_array(json_array(day, provider, model, calls, input, output, cached, micros, unpriced, 0, 0)) FROM (
  SELECT coalesce(strftime('%Y-%m-%d', at / 1000, 'unixepoch'), '') AS day, coalesce(body ->> '$.provider', runs.provider) AS provider,
    coalesce(body ->> '$.model', runs.model) AS model, count(*) AS calls,
    CAST(coalesce(sum(body ->> '$.usage.inputTokens'), 0) AS INTEGER) AS input,
    CAST(coalesce(sum(body ->> '$.usage.outputTokens'), 0) AS INTEGER) AS output,
    CAST(coalesce(sum(body ->> '$.usage.cachedInputTokens'), 0) AS INTEGER) AS cached,
    CAST(coalesce(sum(body ->> '$.usage.costMicros'), 0) AS INTEGER) AS micros,
    CAST(coalesce(sum(body ->> '$.usage.costMicros' IS NULL AND body ->> '$.usage.inputTokens' + body ->> '$.usage.outputTokens' > 0), 0) AS INTEGER)
      AS unpriced
  FROM journal WHERE journal.run_id = runs.run_id AND type = 'model.done' AND json_valid(body) GROUP BY 1, 2, 3)) WHERE ended IS NOT NULL;
`,
  // The titles that people gave to conversations; the other ones follow from the journal.
  `
CREATE TABLE conversation_titles(conversation_id TEXT PRIMARY KEY, title TEXT NOT NULL) STRICT, WITHOUT ROWID;
`,
  // Answers to requests that carried an Idempotency-Key; without a status the request is still being answered by that process.
  `
CREATE TABLE replies(
  owner TEXT NOT NULL, key TEXT NOT NULL, digest TEXT NOT NULL, process TEXT NOT NULL, at INTEGER NOT NULL, status INTEGER, type TEXT,
  body TEXT, PRIMARY KEY (owner, key)
) STRICT;
CREATE INDEX replies_by_age ON replies(at);
`,
  // Each row is sealed with the receipt key. `revision`: how often it was changed; the journal of the home knows too.
  `
ALTER TABLE approvals ADD COLUMN revision INTEGER NOT NULL DEFAULT 0;
ALTER TABLE approvals ADD COLUMN seal TEXT;
ALTER TABLE always_rules ADD COLUMN seal TEXT;
`,
  // Whole results that were too long for a request; `packed` is the text with zstd, `bytes` its length before.
  `
CREATE TABLE results(
  run_id TEXT NOT NULL, call_id TEXT NOT NULL, conversation_id TEXT NOT NULL, at INTEGER NOT NULL, bytes INTEGER NOT NULL,
  packed BLOB NOT NULL, PRIMARY KEY (run_id, call_id)
) STRICT;
CREATE INDEX results_by_age ON results(at);
`,
  // The window of a model as this home learnt it, and since when; `factor`: by how much its tokens exceed our estimate.
  `
CREATE TABLE model_windows(
  provider TEXT NOT NULL, address TEXT NOT NULL, model TEXT NOT NULL, factor REAL NOT NULL DEFAULT 1, tokens INTEGER,
  source TEXT CHECK (source IN ('server', 'named', 'inferred', 'unknown')), basis INTEGER, at INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (provider, address, model)
) STRICT, WITHOUT ROWID;
`,
  // `made_in_chat` 1: the agent made the schedule for a chat. `ended_sessions`: sessions of browsers that were logged out, until their cookies
  // expire. `channel_troubles`: channels of running processes that are out of reach or have failed. `outbox`: answers that are not delivered
  // yet; `sent`: how many pieces of it are; `owner`: the process that sends it; `failed`: it never will be.
  `
ALTER TABLE schedules ADD COLUMN made_in_chat INTEGER NOT NULL DEFAULT 0;
CREATE TABLE ended_sessions(id TEXT PRIMARY KEY, expires INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE channel_troubles(
  channel TEXT NOT NULL, owner TEXT NOT NULL, state TEXT NOT NULL, why TEXT NOT NULL, since INTEGER NOT NULL, PRIMARY KEY (channel, owner)
) STRICT, WITHOUT ROWID;
CREATE TABLE outbox(
  seq INTEGER PRIMARY KEY, channel TEXT NOT NULL, address TEXT NOT NULL, conversation_id TEXT NOT NULL, text TEXT NOT NULL, reply_to TEXT,
  is_question INTEGER NOT NULL, owner TEXT NOT NULL, at INTEGER NOT NULL, sent INTEGER NOT NULL DEFAULT 0, why TEXT NOT NULL DEFAULT '',
  failed INTEGER NOT NULL DEFAULT 0
) STRICT;
`,
  // Runs of procedures: the text and how each step ended.
  `
CREATE TABLE sop_versions(digest TEXT PRIMARY KEY, text TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE sop_runs(
  id TEXT PRIMARY KEY, name TEXT NOT NULL, digest TEXT NOT NULL, workspace TEXT NOT NULL, inputs TEXT NOT NULL, started_by TEXT NOT NULL,
  state TEXT NOT NULL, why TEXT NOT NULL, owner TEXT NOT NULL, started INTEGER NOT NULL, ended INTEGER
) STRICT;
CREATE INDEX sop_runs_open ON sop_runs(state) WHERE ended IS NULL;
CREATE TABLE sop_steps(
  run_id TEXT, step TEXT, attempt INTEGER NOT NULL, state TEXT NOT NULL, place INTEGER, output TEXT NOT NULL, why TEXT NOT NULL,
  conversation_id TEXT, question TEXT, PRIMARY KEY (run_id, step)
) STRICT, WITHOUT ROWID;
`,
  // `code`: how the turn of a failed step ended. `channel`, `recipient`: the chat that gets questions and the answer; `notified`: the ids of those
  // questions that it got, or "end".
  `
ALTER TABLE sop_steps ADD COLUMN code TEXT NOT NULL DEFAULT '';
ALTER TABLE sop_runs ADD COLUMN code TEXT NOT NULL DEFAULT '';
ALTER TABLE sop_runs ADD COLUMN outputs TEXT NOT NULL DEFAULT '{}';
ALTER TABLE sop_runs ADD COLUMN channel TEXT;
ALTER TABLE sop_runs ADD COLUMN recipient TEXT;
ALTER TABLE sop_runs ADD COLUMN notified TEXT NOT NULL DEFAULT '';
CREATE INDEX sop_runs_unnotified ON sop_runs(channel) WHERE channel IS NOT NULL AND notified <> 'end';
`,
  // No older program reads steered messages, pictures and copied turns.
  'SELECT 1',
]

/** Approvals and rules of an older schema are sealed when it is brought up to this one. */
export const sealedSince = 17
