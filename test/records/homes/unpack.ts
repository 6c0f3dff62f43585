/** Homes that an older BraidClaw made, laid out for a test, and the turns that make such a home large. */

import { Database } from 'bun:sqlite'
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import type { Nest } from '../../support/cli.ts'

/** Made by version 0.1.0: six ended runs (allowed, denied, failed, filter), an open question, a standing approval, a pin, a run killed with its tool. */
export const oldHome = join(import.meta.dir, 'version-0.1.0.tar.gz')

export function unpack(archive: string, at: Nest): void {
  const { exitCode, stderr } = Bun.spawnSync(['tar', '-xzf', archive, '-C', at.home])
  if (exitCode !== 0) throw new Error(`cannot unpack ${archive}: ${stderr}`)
}

export function database(at: Nest): Database {
  return new Database(join(at.home, '.braidclaw/memory.sqlite'), { readwrite: true, create: false })
}

/** Appends `turns` answered questions, ten a conversation, row for row as version 0.1.0 wrote them. */
export function addTurns(at: Nest, turns: number): void {
  using db = database(at)
  const { last } = db.query<{ last: number }, []>('SELECT max(seq) AS last FROM journal').get() ?? { last: 0 }
  const run = db.query(`INSERT INTO runs VALUES (?, ?, ?, 'local', 'mock', 'cli', '1@1-gone', ?, ?, 'answered', '', ?)`)
  const entry = db.query('INSERT INTO journal(seq, run_id, kind, type, at, body, digest) VALUES (?, ?, ?, ?, ?, ?, ?)')
  const said = db.query(`INSERT INTO turns(journal_seq, run_id, conversation_id, turn_id, at, role, content, provider, model, metadata)
    VALUES (?, ?, ?, ?, ?, ?, ?, 'local', 'mock', ?)`)
  const talk = db.query('INSERT INTO conversations VALUES (?, ?, ?, ?, ?, ?)')
  db.transaction(() => {
    for (let n = 0; n < turns; n++) {
      const [runId, turnId, conversation] = [nameOf('run', n), nameOf('turn', n), nameOf('conversation', Math.floor(n / 10))]
      const at = 1_790_000_000_000 + n * 1000
      const [prompt, answer] = [`question number ${n}`, `answer w${n % 997} to number ${n}`]
      const usage = { inputTokens: 5, outputTokens: 7 }
      const ending = { stop: 'end_turn', code: 'answered', message: '' }
      const shown = [
        { type: 'init', runId, model: 'mock' },
        { type: 'text', content: answer, isPartial: false },
        { type: 'done', stopReason: 'end_turn', result: answer },
      ]
      const digest = sha256(shown.map((event) => `${JSON.stringify(event)}\n`).join(''))
      const rows = [
        ['external', { type: 'run.start', prompt, at, mode: 'structured', model: 'mock', limits: { maxToolRounds: 5, maxParallel: 4 } }],
        [
          'external',
          { type: 'model.done', parts: [{ type: 'text', text: answer }], proposals: [], usage, model: 'mock', provider: 'local' },
        ],
        ['note', { type: 'finish', ending, digest }],
      ] as const
      const seq = last + n * 3
      run.run(runId, conversation, turnId, at, at + 2, digest)
      let previous: string | null = null
      for (const [index, [kind, event]] of rows.entries()) {
        const body = JSON.stringify(event)
        previous = sha256(JSON.stringify([previous, runId, kind, event.type, at + index]) + body)
        entry.run(seq + index + 1, runId, kind, event.type, at + index, body, previous)
      }
      const about = { run_id: runId, channel: 'cli' }
      said.run(seq + 1, runId, conversation, turnId, at, 'user', prompt, JSON.stringify({ ...about, mode: 'structured' }))
      said.run(seq + 2, runId, conversation, turnId, at + 1, 'assistant', answer, JSON.stringify({ ...about, usage }))
      if (n % 10 === 9 || n === turns - 1)
        talk.run(conversation, at - (n % 10) * 1000, at + 1, (n % 10) + 1, `question number ${n - (n % 10)}`, seq + 2)
    }
    db.run(`INSERT INTO turns_fts(turns_fts) VALUES ('rebuild')`)
  })()
}

export const nameOf = (kind: string, n: number): string => `${kind}_${n.toString().padStart(20, '0')}`
const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')
