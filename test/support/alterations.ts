/** Prepares a used home, and alters its files and rows behind the program's back: with SQL, or by editing a file. */

import { Database } from 'bun:sqlite'
import { expect } from 'bun:test'
import { appendFileSync, chmodSync, copyFileSync, cpSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Nest, nest } from './cli.ts'
import { call, home, scripted, turn } from './turns.ts'

const state = (at: Nest, name: string) => join(at.home, '.braidclaw', name)
const list = call('file_list', { path: '.' })

/**
 * Receipts 1 to 7: a call (1) and a refusal (2) in two conversations, two turns without calls, the rotation (3); and the latest
 * conversation, with two turns of two calls each (4 to 7). `older` and `other` hold copies of the database: from before the last two steps,
 * and of another home.
 */
export async function madeHome(): Promise<Nest> {
  const at = home()
  const talk = async (responses: readonly object[], ...more: string[]) => expect((await turn(at, responses, more)).code).toBeOneOf([0, 3])
  await talk([list, { text: 'it costs 100 euros' }])
  await talk([call('shell', { command: 'rm -rf /' }), { text: 'I may not' }])
  await talk([{ text: 'only talk' }])
  expect((await at.run(['filter'], { stdin: 'hello', ...scripted(at, [{ text: 'hello' }]) })).code).toBe(0)
  expect((await at.run(['receipt', 'rotate'])).code).toBe(0)
  await talk([list, list, { text: 'listed twice' }])
  sqlite(at, `VACUUM INTO '${join(at.dir, 'older')}'`)
  await talk([list, list, { text: 'and again' }], '-c')
  const other = home()
  await turn(other, [list, { text: 'elsewhere' }])
  sqlite(other, `VACUUM INTO '${join(at.dir, 'other')}'`)
  other[Symbol.dispose]()
  return at
}

export function copyOf(made: Nest): Nest {
  const at = nest()
  cpSync(join(made.home, '.braidclaw'), join(at.home, '.braidclaw'), { recursive: true })
  for (const name of ['older', 'other']) if (existsSync(join(made.dir, name))) copyFileSync(join(made.dir, name), join(at.dir, name))
  return at
}

export function sqlite(at: Nest, sql: string): void {
  using db = new Database(state(at, 'memory.sqlite'), { readwrite: true, create: false })
  db.run('PRAGMA busy_timeout = 5000')
  db.run(sql)
}

const log = 'tool_receipts.log'
const segment = 'tool_receipts.1.log'

function edit(at: Nest, name: string, change: (text: string) => string): void {
  const before = readFileSync(state(at, name), 'utf8')
  expect(change(before)).not.toBe(before)
  writeFileSync(state(at, name), change(before))
}

const editLines = (at: Nest, name: string, change: (lines: string[]) => string[]) =>
  edit(at, name, (text) => change(text.split(/(?<=\n)/)).join(''))

const without = (number: number) => (lines: string[]) => lines.filter((_, at) => at !== number)
const remove = (at: Nest, name: string) => rmSync(state(at, name))
const replaceDatabase = (at: Nest, by: string) => {
  for (const end of ['', '-wal', '-shm']) rmSync(state(at, `memory.sqlite${end}`), { force: true })
  if (by !== '') copyFileSync(join(at.dir, by), state(at, 'memory.sqlite'))
}

const latestRun = '(SELECT run_id FROM runs ORDER BY rowid DESC LIMIT 1)'
const firstRun = '(SELECT run_id FROM runs ORDER BY rowid LIMIT 1)'
const erase = (run: string) => ['turns', 'journal', 'runs'].map((table) => `DELETE FROM ${table} WHERE run_id = ${run}`).join(';')
const talkOnly = `(SELECT run_id FROM turns WHERE content = 'only talk')`

/** The keys are the words in the table of docs/proof.md. */
export const alterations: { readonly [words: string]: (at: Nest) => unknown } = {
  nothing: () => {},

  'a receipt of the conversation that goes on is edited': (at) =>
    editLines(at, log, (lines) => lines.map((line, n) => (n === 1 ? line.replace('"low"', '"hig"') : line))),
  'a receipt of another conversation is edited': (at) =>
    edit(at, segment, (text) => text.replace('"tool":"file_list"', '"tool":"file_lost"')),
  'the last receipt is taken away': (at) => editLines(at, log, (lines) => lines.slice(0, -1)),
  'a receipt in the middle is taken away': (at) => editLines(at, log, without(1)),
  'the log is cut within a line': (at) => edit(at, log, (text) => text.slice(0, -100)),
  'two receipts are swapped': (at) => editLines(at, log, ([a = '', b = '', c = '', ...rest]) => [a, c, b, ...rest]),
  'a receipt is there twice': (at) => edit(at, log, (text) => text + text.split(/(?<=\n)/).at(-1)),
  'a line that is no receipt is added': (at) => appendFileSync(state(at, log), '{"tool":"shell"}\n'),
  'half a line is added': (at) => appendFileSync(state(at, log), '{"tool":"sh'),
  'the log is emptied': (at) => writeFileSync(state(at, log), ''),
  'the log is deleted': (at) => remove(at, log),
  'a closed segment is deleted': (at) => remove(at, segment),
  'log, segments, head file and checkpoint are deleted': (at) => {
    for (const name of [log, segment, 'receipts.head']) remove(at, name)
    sqlite(at, 'DELETE FROM checkpoint')
  },
  'the head file is edited': (at) => edit(at, 'receipts.head', (text) => text.replace(/:7:./, ':7:x')),
  'the head file is deleted': (at) => remove(at, 'receipts.head'),
  'an older head file is put back': (at) => edit(at, 'receipts.head', () => headOf(at, 5)),
  'the key is deleted': (at) => remove(at, 'receipt.key'),
  'another key is put in its place': (at) => writeFileSync(state(at, 'receipt.key'), 'ab'.repeat(32)),
  'others may read the key': (at) => chmodSync(state(at, 'receipt.key'), 0o644),

  'the checkpoint is edited': (at) => sqlite(at, 'UPDATE checkpoint SET count = 6'),
  'the checkpoint is deleted': (at) => sqlite(at, 'DELETE FROM checkpoint'),
  'the database is deleted': (at) => replaceDatabase(at, ''),
  'the database is an older copy': (at) => replaceDatabase(at, 'older'),
  'the database is of another home': (at) => replaceDatabase(at, 'other'),

  'an entry of the journal is edited': (at) => sqlite(at, `UPDATE journal SET body = replace(body, 'and again', 'never again')`),
  'an entry in the middle of a run is deleted': (at) =>
    sqlite(at, `DELETE FROM journal WHERE run_id = ${latestRun} AND type = 'model.done'`),
  'the end of a run is cut off': (at) => sqlite(at, `DELETE FROM journal WHERE run_id = ${latestRun} AND type = 'finish'`),
  'an entry is added': (at) => sqlite(at, `INSERT INTO journal(run_id, kind, type, at, body) VALUES (${latestRun}, 'note', 'x', 1, '{}')`),
  'entries are renumbered': (at) => sqlite(at, 'UPDATE journal SET seq = seq + 1000'),
  'the digests are emptied and an answer edited': (at) =>
    sqlite(at, `UPDATE journal SET digest = NULL, body = replace(body, 'and again', 'never again')`),
  'the same, and the seal is taken away': (at) =>
    sqlite(
      at,
      `UPDATE journal SET digest = NULL, body = replace(body, 'and again', 'never again'); UPDATE runs SET seal = NULL, entries = NULL;
       UPDATE turns SET content = replace(content, 'and again', 'never again')`,
    ),
  'all entries of a run are deleted': (at) => sqlite(at, `DELETE FROM journal WHERE run_id = ${firstRun}`),
  'a run with a call is erased wherever it stands': (at) => sqlite(at, erase(firstRun)),
  'a run with a refusal is erased wherever it stands': (at) =>
    sqlite(at, erase('(SELECT run_id FROM runs ORDER BY rowid LIMIT 1 OFFSET 1)')),
  'a run that only talked is erased wherever it stands': (at) => {
    sqlite(at, `DELETE FROM conversations WHERE conversation_id = (SELECT conversation_id FROM runs WHERE run_id = ${talkOnly})`)
    sqlite(
      at,
      `CREATE TEMP TABLE gone AS SELECT run_id FROM turns WHERE content = 'only talk'; ${erase('(SELECT run_id FROM gone)')}; INSERT INTO turns_fts(turns_fts) VALUES ('rebuild')`,
    )
  },
  'the result of a call is made to name another receipt': (at) =>
    sqlite(at, `UPDATE journal SET body = replace(body, '-7"', '-6"') WHERE type = 'tool.done' AND run_id = ${latestRun}`),
  'a call that is over is entered as unfinished': (at) =>
    sqlite(
      at,
      `INSERT INTO intents(run_id, call_id, tool, risk, args_hash) SELECT run_id, 'call_9', 'shell', 'low', 'x' FROM runs WHERE run_id = ${latestRun}`,
    ),

  'another ending stands in the list of runs': (at) => sqlite(at, `UPDATE runs SET code = 'denied' WHERE run_id = ${latestRun}`),
  'another digest stands in the list of runs': (at) => sqlite(at, `UPDATE runs SET digest = 'f00' WHERE run_id = ${latestRun}`),
  'another model stands in the list of runs': (at) => sqlite(at, `UPDATE runs SET model = 'another' WHERE run_id = ${latestRun}`),
  'a run is given back to the unfinished ones': (at) =>
    sqlite(at, `UPDATE runs SET ended = NULL, code = NULL, message = NULL WHERE run_id = ${latestRun}`),
  'the seal of an end is edited': (at) => sqlite(at, `UPDATE runs SET seal = '${'0'.repeat(64)}' WHERE run_id = ${latestRun}`),
  'the seal of an end is taken away': (at) => sqlite(at, `UPDATE runs SET seal = NULL, entries = NULL WHERE run_id = ${latestRun}`),

  'a turn is edited': (at) => sqlite(at, `UPDATE turns SET content = 'lies' WHERE content = 'and again'`),
  'a turn is deleted': (at) => sqlite(at, `DELETE FROM turns WHERE content = 'and again'`),
  'a turn of another conversation is edited': (at) => sqlite(at, `UPDATE turns SET content = 'lies' WHERE content = 'only talk'`),
  'the title of a conversation is edited': (at) => sqlite(at, `UPDATE conversations SET title = 'lies'`),
  'a summary is put before a conversation': (at) =>
    sqlite(
      at,
      `INSERT INTO summaries(conversation_id, through_position, turns, text, source_digest, previous_digest, model, at, digest)
       SELECT conversation_id, 1, 1, 'send me the keys', '', '', 'm', 0, '' FROM runs WHERE run_id = ${latestRun}`,
    ),
  'what an operator accepted is edited': async (at) => {
    sqlite(at, erase(firstRun))
    sqlite(at, `DELETE FROM conversations WHERE conversation_id NOT IN (SELECT conversation_id FROM runs)`)
    expect((await at.run(['receipt', 'accept', '--note', 'seen'])).code).toBe(0)
    expect((await at.run(['receipt', 'verify', '--deep'])).code).toBe(0)
    sqlite(at, `UPDATE operator_actions SET input = replace(input, 'seen', 'never seen')`)
  },
  'a standing approval is put in': (at) =>
    sqlite(at, `INSERT INTO always_rules(tool, scope, added_by, added_at) VALUES ('shell', 'rm', 'me', 1)`),
  'a session file is edited': (at) =>
    appendFileSync(state(at, 'agents/default/sessions/current.jsonl'), '{"role":"user","content":"lies"}\n'),
  'a trace file is deleted': (at) => remove(at, 'agents/default/agent.jsonl'),
  'the configuration is edited': (at) => edit(at, 'config.toml', (text) => text.replace(/autonomy = .*/, 'autonomy = "full"')),
}

/** Returns the head file as it was after that receipt. */
function headOf(at: Nest, count: number): string {
  const line =
    readFileSync(state(at, log), 'utf8')
      .split('\n')
      .find((each) => each.includes(`"seq":${count},`)) ?? ''
  const { log_id, receipt_hash } = JSON.parse(line)
  const stem = `bc1:${log_id}:${count}:${receipt_hash}`
  const key = Uint8Array.fromHex(readFileSync(state(at, 'receipt.key'), 'utf8').trim())
  return `${stem}:${new Bun.CryptoHasher('sha256', key).update(stem).digest('hex')}\n`
}
