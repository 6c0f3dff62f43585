/** A control plane that moves from SQLite to PostgreSQL. */

import { describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fillWithCommands, ownControl } from '../support/own-control.ts'
import { hasPostgres } from '../support/postgres.ts'
import { sharedDatabases } from '../support/postgres-of-file.ts'

describe.if(hasPostgres())('to PostgreSQL', () => {
  const server = sharedDatabases()

  test('migrate copies everything, a daemon there goes on with it, and the password is nowhere in the output', async () => {
    await using control = await ownControl()
    await fillWithCommands(control)
    const url = (await server().createDatabase()).replace('://braidclaw@', '://braidclaw:hunter2hunter2@')
    const early = await control.run(['migrate', '--to', url])
    expect([early.code, early.stderr.includes('a daemon serves')]).toEqual([1, true])
    process.kill(control.daemon.pid, 'SIGTERM')
    await control.daemon.result
    const moved = await control.run(['migrate', '--json'], { env: { CONTROLPLANE_DATABASE_URL: url } })
    expect([moved.code, `${moved.stdout}${moved.stderr}`.includes('hunter2')]).toEqual([0, false])
    expect(moved.stderr).toContain('to switch: set CONTROLPLANE_DATABASE_URL in config.env')
    // What the daemon reads from config.env, the commands beside it read too: else a backup would be of the old file.
    writeFileSync(join(control.at.home, '.braidclaw/config.env'), `CONTROLPLANE_DATABASE_URL=${url}\n`, { mode: 0o600 })
    const kept = await control.run(['backup', join(control.at.dir, 'there.sqlite')])
    expect([kept.code, kept.stdout.startsWith('backed up postgres://braidclaw@'), kept.stdout.includes('hunter2')]).toEqual([
      0,
      true,
      false,
    ])
    const daemon = control.at.start(['control', '--port', '0'], { timeoutMs: 600_000 })
    const there = await daemon.says(/ready: (\S+) /)
    expect((await control.json(['task', '--url', there])).map(({ title }: { title: string }) => title)).toEqual([
      `Do two \u{1f600} '"\\`,
      `Do one \u{1f600} '"\\`,
    ])
    expect((await control.json(['budget', '--url', there])).daily_tokens).toBe(1000)
    expect(await control.out(['task', 'add', 'Next', '--role', 'a', '--url', there])).toBe('TASK-003')
    process.kill(daemon.pid, 'SIGTERM')
    expect((await daemon.result).code).toBe(0)
    const again = await control.run(['migrate', '--to', url])
    expect([again.code, again.stderr.includes('not empty')]).toEqual([1, true])
  }, 120_000)
})
