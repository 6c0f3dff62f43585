#!/usr/bin/env bun
/**
 * A home as large as years make it, quickly: runs of a question and an answer, twenty messages a conversation, row for row as turns write them.
 * `bun bench/large-home.ts FOLDER MESSAGES` makes FOLDER/.braidclaw.
 */

import { Database } from 'bun:sqlite'
import { join } from 'node:path'
import { sha256 } from '../src/kit/sha256.ts'
import { openMemory } from '../src/memory/memory.ts'

const common = ['the', 'what', 'file', 'with', 'this', 'have']

/** Zipf-like words from a fixed sequence: every run makes the same home. `midterm` stands in each 100th text, `aardvark` in two. */
export function* texts(count: number): Generator<string> {
  let state = 1
  const random = () => {
    state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff
    return state / 0x7fffffff
  }
  const word = () => (random() < 0.3 ? common[Math.floor(random() * 6)] : `w${Math.floor(20_000 ** random())}`)
  for (let number = 1; number <= count; number += 1) {
    const marks = [number % 100 === 0 ? 'midterm' : '', number === 777 || number === count >> 1 ? 'aardvark' : '']
    yield [...Array.from({ length: 30 }, word), ...marks].join(' ').trim()
  }
}

const noon = 1_778_587_200_000
const nameOf = (kind: string, n: number): string => `${kind}_${n.toString().padStart(20, '0')}`

/** @param path where the database will be; two messages a run */
export function makeLargeHome(path: string, messages: number): void {
  const opened = openMemory({ path, log: () => {}, now: Date.now })
  if (!opened.ok) throw new Error(opened.failure.message)
  opened.memory.close()
  using db = new Database(path)
  db.run('PRAGMA synchronous = OFF; PRAGMA cache_size = -200000')
  db.transaction(() => fill(db, messages))()
  db.run(`INSERT INTO turns_fts(turns_fts) VALUES ('rebuild')`)
  db.run('PRAGMA wal_checkpoint(TRUNCATE)')
}

function fill(db: Database, messages: number): void {
  const run =
    db.query(`INSERT INTO runs(run_id, conversation_id, turn_id, provider, model, channel, owner, started, ended, code, message, digest, folder)
    VALUES (?, ?, ?, 'local', 'mock', 'cli', '1@1-gone', ?, ?, 'answered', '', ?, '/work')`)
  const entry = db.query('INSERT INTO journal(seq, run_id, kind, type, at, body, digest) VALUES (?, ?, ?, ?, ?, ?, ?)')
  const said = db.query(`INSERT INTO turns(journal_seq, run_id, conversation_id, turn_id, at, role, content, provider, model, metadata)
    VALUES (?, ?, ?, ?, ?, ?, ?, 'local', 'mock', ?)`)
  const talk = db.query('INSERT INTO conversations VALUES (?, ?, ?, ?, ?, ?)')
  const words = texts(messages)
  const next = () => words.next().value ?? ''
  const usage = { inputTokens: 5, outputTokens: 7 }
  for (let n = 0; n < messages / 2; n++) {
    const [runId, turnId, conversation] = [nameOf('run', n), nameOf('turn', n), nameOf('conversation', Math.floor(n / 10))]
    const at = noon + (n - messages / 2) * 1000
    const [prompt, answer, seq] = [next(), next(), n * 3]
    const ending = { stop: 'end_turn', code: 'answered', message: '' }
    const shown = [
      { type: 'init', runId, model: 'mock' },
      { type: 'text', content: answer, isPartial: false },
      { type: 'done', stopReason: 'end_turn', result: answer },
    ]
    const digest = sha256(shown.map((event) => `${JSON.stringify(event)}\n`).join(''))
    const parts = [{ type: 'text', text: answer }]
    const events = [
      ['external', { type: 'run.start', prompt, at, mode: 'structured', model: 'mock', limits: { maxToolRounds: 5, maxParallel: 4 } }],
      ['external', { type: 'model.done', parts, proposals: [], usage, model: 'mock', provider: 'local' }],
      ['note', { type: 'finish', ending, digest }],
    ] as const
    run.run(runId, conversation, turnId, at, at + 2, digest)
    let previous: string | null = null
    for (const [index, [kind, event]] of events.entries()) {
      const body = JSON.stringify(event)
      previous = sha256(JSON.stringify([previous, runId, kind, event.type, at + index]) + body)
      entry.run(seq + index + 1, runId, kind, event.type, at + index, body, previous)
    }
    const about = { run_id: runId, channel: 'cli' }
    said.run(seq + 1, runId, conversation, turnId, at, 'user', prompt, JSON.stringify({ ...about, mode: 'structured' }))
    said.run(seq + 2, runId, conversation, turnId, at + 1, 'assistant', answer, JSON.stringify({ ...about, usage }))
    const first = n - (n % 10)
    if (n % 10 === 0) talk.run(conversation, at, at + 1, 1, titleOf(prompt), seq + 2)
    else
      db.query('UPDATE conversations SET updated = ?, turns = ?, last_seq = ? WHERE conversation_id = ?').run(
        at + 1,
        n - first + 1,
        seq + 2,
        conversation,
      )
  }
}

function titleOf(text: string): string {
  return text.length > 80 ? `${text.slice(0, 79)}…` : text
}

if (import.meta.main) {
  const [folder, count] = process.argv.slice(2)
  if (folder === undefined || !(Number(count) > 0)) throw new Error('usage: bun bench/large-home.ts FOLDER MESSAGES')
  makeLargeHome(join(folder, '.braidclaw', 'memory.sqlite'), Number(count))
}
