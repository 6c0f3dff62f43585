/** What a PostgreSQL that refuses becomes: 503 with its own words and what to do, a /health that says it, and never "a bug". */

import { describe, expect, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { PlaneRefusal } from '../../../src/control/contract/plane-refusal.ts'
import { openPostgres } from '../../../src/control/store/open-postgres.ts'
import { asRefusal } from '../../../src/control/store/postgres-session.ts'
import { nest } from '../../support/cli.ts'
import { until } from '../../support/until.ts'
import { type ControlUnderTest, controlServer } from '../support/control-server.ts'
import { hasPostgres } from '../support/postgres.ts'
import { startedPostgres } from '../support/postgres-of-file.ts'

const target = { name: 'postgres://db/x', hide: (text: string) => text.replaceAll('hunter2', '[password]') }
const failure = (state: string) => Object.assign(new Error('in hunter2 words'), { code: 'ERR_POSTGRES_SERVER_ERROR', errno: state })

test('every SQLSTATE that is not about our own SQL is a refusal with the words of the server, without the password', () => {
  const states = '08000 08006 25006 25P02 25P03 28000 28P01 3D000 3F000 40001 40003 40P01 42501 42P01 42704 53100 53200 53300 53400 54001'
  for (const state of `${states} 55000 55P03 57014 57P01 57P02 57P03 57P05 58000 58030 72000 F0000 HV000 P0001 XX000 XX001 XX002 ZZ999`.split(
    ' ',
  )) {
    const refusal = asRefusal(failure(state), target)
    expect([state, refusal]).toEqual([state, expect.objectContaining({ code: 'unavailable' })])
    expect(String(refusal)).toContain('in [password] words')
  }
  for (const state of ['22001', '22P02', '23502', '23505', '42601', '42703', '42883', '0A000', '21000', '26000']) {
    const bug = failure(state)
    expect([state, asRefusal(bug, target) === bug]).toEqual([state, true])
  }
})

describe.if(hasPostgres())('a PostgreSQL that refuses', () => {
  const server = startedPostgres()
  const create = (control: ControlUnderTest) => control.ask('tasks', { body: { title: 'x', role: 'a' } })
  const isHealthy = async ({ url }: ControlUnderTest) => (await fetch(`${url}/health`)).status === 200

  async function administer(url: string, ...statements: string[]): Promise<void> {
    await using sql = new Bun.SQL({ url, max: 1 })
    for (const statement of statements) await sql.unsafe(statement)
  }

  test('that turned read-only answers 503, says it in /health also when nobody writes, and recovers by itself', async () => {
    const url = await server().createDatabase()
    const name = new URL(url).pathname.slice(1)
    await using control = await controlServer({ tickMs: 3_600_000, env: { CONTROLPLANE_DATABASE_URL: url } })
    expect((await create(control)).status).toBe(201)
    await administer(url, 'ALTER SYSTEM SET default_transaction_read_only = on', 'SELECT pg_reload_conf()')
    await until(async () => !(await isHealthy(control)))
    expect(await create(control)).toMatchObject({
      status: 503,
      text: expect.stringMatching(/is read-only \(.*read-only transaction.*make it writable/),
    })
    expect((await control.ask('tasks')).status).toBe(200)
    await administer(
      url,
      'SET default_transaction_read_only = off',
      'ALTER SYSTEM RESET default_transaction_read_only',
      'SELECT pg_reload_conf()',
    )
    await until(() => isHealthy(control))
    expect((await create(control)).status).toBe(201)
    // A default of the database reaches only new sessions, and a session that began with it keeps it.
    await administer(url, `ALTER DATABASE ${name} SET default_transaction_read_only = on`)
    await server().cutConnections(url)
    await until(async () => !(await isHealthy(control)))
    await administer(url, 'SET default_transaction_read_only = off', `ALTER DATABASE ${name} RESET default_transaction_read_only`)
    await until(() => isHealthy(control))
    expect((await create(control)).status).toBe(201)
  }, 60_000)

  test('a right, a statement: 503 with what to do, and /health until a write succeeds', async () => {
    const url = await server().createDatabase()
    await using control = await controlServer({ env: { CONTROLPLANE_DATABASE_URL: url } })
    const fail = (state: string) =>
      `CREATE OR REPLACE FUNCTION fail() RETURNS trigger AS $$ BEGIN RAISE EXCEPTION 'by a test' USING ERRCODE = '${state}'; END $$ LANGUAGE plpgsql`
    await administer(url, fail('XX000'), 'CREATE TRIGGER fail BEFORE INSERT ON tasks FOR EACH ROW EXECUTE FUNCTION fail()')
    for (const [state, todo] of [
      ['42501', 'grant it'],
      ['57014', 'try again'],
      ['XX000', "the server's log"],
      ['53100', 'disk space'],
    ] as const) {
      await administer(url, fail(state))
      expect(await create(control)).toMatchObject({
        status: 503,
        text: expect.stringMatching(new RegExp(`by a test \\(SQLSTATE ${state}\\)\\); .*${todo}`)),
      })
      expect(await isHealthy(control)).toBe(false)
    }
    await administer(url, 'DROP TRIGGER fail ON tasks')
    expect((await create(control)).status).toBe(201)
    expect(await isHealthy(control)).toBe(true)
    expect(control.errors.filter((line) => line.includes('request failed'))).toEqual([])
  }, 60_000)

  test('at the start each wrong part of the URL is told, without the password and without a trace', async () => {
    const url = await server().createDatabase()
    await administer(url, "CREATE ROLE locked LOGIN PASSWORD 'right-word'")
    const [row] = await new Bun.SQL({ url, max: 1 }).unsafe('SHOW hba_file')
    writeFileSync(row.hba_file, `host all locked 127.0.0.1/32 scram-sha-256\n${readFileSync(row.hba_file, 'utf8')}`)
    await administer(url, 'SELECT pg_reload_conf()')
    const as = (user: string) => url.replace('braidclaw@', `${user}@`)
    const cases: readonly (readonly [string, RegExp])[] = [
      [as('locked:wrong-word'), /refuses the log-in \(password authentication failed.*check the user and the password/],
      [as('unknown:wrong-word'), /refuses the log-in \(role "unknown" does not exist/],
      [url.replace(/\/control_.*/, '/missing'), /missing does not exist .*createdb/],
      [`${url}?channel_binding=require`, /does not offer the encryption.*channel_binding in CONTROLPLANE_DATABASE_URL/],
      [`${url}?sslmode=require`, /does not offer the encryption.*write another sslmode/],
      [`${url}?sslmode=bogus`, /CONTROLPLANE_DATABASE_URL .*'sslmode' must be one of.*'bogus'/],
      [`${url}?sslmode=verify-ca&sslrootcert=/nope.pem`, /does not accept a parameter/],
      [`${url}?foo=bar`, /does not accept a parameter \(unrecognized configuration parameter "foo"/],
    ]
    for (const [wrong, words] of cases) {
      const refusal: unknown = await openPostgres({ url: wrong, log: () => {} }).then(
        (store) => store.close(),
        (error: unknown) => error,
      )
      if (!(refusal instanceof PlaneRefusal)) throw new Error(`${wrong}: ${String(refusal)}`)
      expect(refusal.message).toMatch(words)
      expect(refusal.message).not.toContain('wrong-word')
    }
    using at = nest()
    const started = await at.run(['control', '--port', '0'], { env: { CONTROLPLANE_DATABASE_URL: as('locked:wrong-word') } })
    expect(started.code).toBe(1)
    expect(started.stderr).toMatch(/refuses the log-in/)
    expect(started.stderr).not.toMatch(/wrong-word|bug|\.ts:\d/)
  }, 60_000)
})
