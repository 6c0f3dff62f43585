/** The store floor: the same loop with every message committed to SQLite and a fsynced, hash-chained receipt for every tool call. */

import { Database } from 'bun:sqlite'
import { fsyncSync, openSync, writeSync } from 'node:fs'
import { loop } from './loop.ts'

const folder = Bun.env.BENCH_STORE ?? '.'
const database = new Database(`${folder}/floor.sqlite`)
database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL')
database.exec('CREATE TABLE IF NOT EXISTS message (id INTEGER PRIMARY KEY, at INTEGER NOT NULL, role TEXT NOT NULL, content TEXT NOT NULL)')
const insert = database.prepare('INSERT INTO message (at, role, content) VALUES (?, ?, ?)')
const receipts = openSync(`${folder}/floor.receipts`, 'a')
let head = ''

await loop(Bun.argv.slice(2), {
  keep: (message) => {
    insert.run(Date.now(), message.role, JSON.stringify(message))
  },
  seal: (call, output) => {
    const body = JSON.stringify({ at: Date.now(), call, output: sha256(output), previous: head })
    head = sha256(body)
    writeSync(receipts, `${body.slice(0, -1)},"hash":"${head}"}\n`)
    fsyncSync(receipts)
  },
})
database.close()

function sha256(text: string): string {
  return new Bun.CryptoHasher('sha256').update(text).digest('hex')
}
