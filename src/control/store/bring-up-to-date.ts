/** Creates the tables and brings those of an older version up to date; the same command on both engines. */

import { PlaneRefusal } from '../contract/plane-refusal.ts'
import type { Command, Engine } from '../contract/store-port.ts'
import { migrations } from './schema.ts'

/** @returns the version of the tables afterwards. @throws PlaneRefusal when a newer version wrote them. */
export function* bringUpToDate(engine: Engine): Command<number> {
  // Two daemons may start at once, and CREATE TABLE IF NOT EXISTS alone is not safe against that in PostgreSQL.
  if (engine === 'postgres') yield ['SELECT pg_advisory_xact_lock(3100)']
  yield ['CREATE TABLE IF NOT EXISTS schema_version (version BIGINT NOT NULL)']
  const found = yield* schemaVersion()
  if (found > migrations.length) throw newer(found)
  for (const statement of migrations.slice(found).flat()) yield [own(engine, statement)]
  if (found === 0) yield ['INSERT INTO schema_version (version) VALUES (?)', [migrations.length]]
  else if (found < migrations.length) yield ['UPDATE schema_version SET version = ?', [migrations.length]]
  return migrations.length
}

/** In SQLite only INTEGER makes the key the number of the row itself; BIGINT would keep a second tree for it. */
function own(engine: Engine, statement: string): string {
  return engine === 'sqlite' ? statement.replace('id BIGINT PRIMARY KEY', 'id INTEGER PRIMARY KEY') : statement
}

function* schemaVersion(): Command<number> {
  const [row] = yield ['SELECT version FROM schema_version']
  return Number(row?.version ?? 0)
}

function newer(found: number): PlaneRefusal {
  const why = `its tables have version ${found}, this program knows up to ${migrations.length}`
  return new PlaneRefusal('unavailable', `the database was written by a newer BraidClaw (${why}); update BraidClaw`, {
    storage: 'newer_schema',
  })
}
