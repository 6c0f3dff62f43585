/**
 * The floor of the control plane: a bare Bun.serve that sends the same statements as we do for creating, claiming and completing a task, on
 * the same tables, planned once each, and commits once a turn. It checks nothing of what it reads, and builds no task to answer with.
 */

import { Database, type Statement } from 'bun:sqlite'
import { join } from 'node:path'
import { migrations } from '../../src/control/store/schema.ts'
import { sha256 } from '../../src/kit/sha256.ts'
import { warmUp } from '../../src/service/own-program.ts'
import { floorKey, operatorToken } from '../control/figures.ts'
import { createCommands, createLookUps, type Send, type Value, type Values } from './control-commands.ts'

const db = new Database(join(Bun.env.BENCH_STORE ?? '.', 'control-floor.sqlite'), { create: true, strict: true })
db.run('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA temp_store = MEMORY; PRAGMA cache_size = -32768')
for (const statement of migrations.flat()) db.run(statement.replace('id BIGINT PRIMARY KEY', 'id INTEGER PRIMARY KEY'))
db.run("INSERT INTO agent_keys (id, agent_id, digest, created_at) VALUES ('key', 'w0', ?, 0)", [sha256(floorKey)])
db.run("INSERT INTO operators (id, name, digest, created_at) VALUES ('op', 'floor', ?, 0)", [sha256(operatorToken)])
db.run(
  "INSERT INTO agents (id, role, heartbeat_enabled, description, paused, wakes, created_at, place) VALUES ('w0', 'bench', 1, '', 0, 0, 0, 0)",
)
// The executable of the control plane does so with its first request.
warmUp()

type Prepared = Statement<Values, Value[]>
const known = new Map<string, Prepared>()
function prepared(sql: string): Prepared {
  const found = known.get(sql) ?? db.prepare<Values, Value[]>(sql.replaceAll('= ?', '= +?'))
  known.set(sql, found)
  return found
}
const send: Send = (sql, params = []) => prepared(sql).all(...params)
const { operatorOf, agentOf, runOf } = createLookUps(send)
const { create, claim, complete } = createCommands(send)

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
  send('BEGIN IMMEDIATE')
  const answers = waiting.splice(0).map((step) => step())
  send('COMMIT')
  for (const answer of answers) answer()
}

const secretOf = (request: Request) => (request.headers.get('authorization') ?? '').slice(7)
const refused = () => Response.json({ error: { code: 'unauthorized', message: 'no' } }, { status: 401 })

const server = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  routes: {
    '/health': () => Response.json({ ok: true, version: '0.0.0' }),
    '/api/controlplane/tasks': {
      POST: async (request) => {
        if (!operatorOf(secretOf(request))) return refused()
        return Response.json(await withBody(request, create), { status: 201 })
      },
    },
    '/api/controlplane/tasks/claim': {
      POST: async (request) => {
        if (!agentOf(secretOf(request))) return refused()
        const claimed = await withBody(request, claim)
        return claimed ? Response.json(claimed) : new Response(null, { status: 204 })
      },
    },
    '/api/controlplane/activity': {
      POST: async (request) => {
        const run = runOf(secretOf(request))
        if (!run) return refused()
        const text = await request.text()
        JSON.parse(text)
        return Response.json(await write(() => complete(run, text)))
      },
    },
  },
})

async function withBody<T>(request: Request, work: (body: Values) => T): Promise<T> {
  const body: Values = JSON.parse(await request.text())
  return await write(() => work(body))
}

console.error(`ready: ${server.url.origin}`)
