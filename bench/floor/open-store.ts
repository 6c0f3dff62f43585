/** Keeps every message in SQLite, committed, and every tool call in a fsynced, hash-chained receipt. */

import { Database } from 'bun:sqlite'
import { fsyncSync, openSync, writeSync } from 'node:fs'
import type { Hooks } from './loop.ts'

export function openStore(folder: string): Pick<Hooks, 'keep' | 'seal'> & { close(): void } {
  const database = new Database(`${folder}/floor.sqlite`)
  database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL')
  database.exec(
    'CREATE TABLE IF NOT EXISTS message (id INTEGER PRIMARY KEY, at INTEGER NOT NULL, role TEXT NOT NULL, content TEXT NOT NULL)',
  )
  const insert = database.prepare('INSERT INTO message (at, role, content) VALUES (?, ?, ?)')
  const receipts = openSync(`${folder}/floor.receipts`, 'a')
  const state = { head: '' }
  return {
    keep: (message) => void insert.run(Date.now(), message.role, JSON.stringify(message)),
    seal(call, output) {
      const body = JSON.stringify({ at: Date.now(), call, output: sha256(output), previous: state.head })
      state.head = sha256(body)
      writeSync(receipts, `${body.slice(0, -1)},"hash":"${state.head}"}\n`)
      fsyncSync(receipts)
    },
    close: () => database.close(),
  }
}

function sha256(text: string): string {
  return new Bun.CryptoHasher('sha256').update(text).digest('hex')
}
