/** Opens our database with other programs' own SQLite beside us and closes it again: the sqlite3 shell and Python's module. */

import { join } from 'node:path'

/** One use of the database by another program. */
export type Visit = { readonly name: string; readonly argv: readonly string[] }

const python = `import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=30)
for statement in sys.argv[2:]: connection.execute(statement).fetchall()
connection.close()`

/** Usual operations of people and scripts on a database; empty: only open and close. */
const uses: readonly (readonly [name: string, sql: (copy: string) => readonly string[]])[] = [
  ['open and close', () => []],
  ['select', () => ['SELECT count(*) FROM turns']],
  ['VACUUM INTO', (copy) => [`VACUUM INTO '${copy}'`]],
  ['VACUUM', () => ['VACUUM']],
  ['wal_checkpoint', () => ['PRAGMA wal_checkpoint(TRUNCATE)']],
]

/** Returns every use by every program. Copies of the database go to `folder`. */
export function visits(database: string, folder: string): Visit[] {
  return uses.flatMap(([name, sql]) => {
    const [first, second] = [sql(join(folder, `${name} 1.sqlite`)), sql(join(folder, `${name} 2.sqlite`))]
    return [
      { name: `sqlite3, ${name}`, argv: ['sqlite3', '-cmd', '.timeout 30000', database, first.join(';') || '.databases'] },
      { name: `Python, ${name}`, argv: ['python3', '-c', python, database, ...second] },
    ]
  })
}

/** @throws Error when the program failed */
export async function pay({ name, argv }: Visit): Promise<void> {
  const child = Bun.spawn([...argv], { stdin: 'ignore', stdout: 'ignore', stderr: 'pipe' })
  const said = await child.stderr.text()
  if ((await child.exited) !== 0) throw new Error(`${name}: ${said} (scripts/setup-debian installs sqlite3 and python3)`)
}

/** Returns the questions in the database, oldest first, as another program reads them. */
export function questionsIn(database: string): string[] {
  const { stdout } = Bun.spawnSync(['sqlite3', '-json', database, "SELECT content FROM turns WHERE role = 'user' ORDER BY id"])
  const rows: { readonly content: string }[] = JSON.parse(stdout.toString() || '[]')
  return rows.map(({ content }) => content)
}

const greedy = `import sqlite3, sys, time
connection = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=60)
while True:
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("UPDATE runs SET started = started")
    time.sleep(0.15)
    connection.execute("COMMIT")
    time.sleep(0.015)`

/** Starts another program that writes continuously, and leaves the other writers a tenth of the time. */
export function greedyWriter(database: string): Disposable & { running(): boolean } {
  const child = Bun.spawn(['python3', '-c', greedy, database], { stdin: 'ignore', stdout: 'ignore', stderr: 'inherit' })
  return { running: () => child.exitCode === null, [Symbol.dispose]: () => child.kill('SIGKILL') }
}
