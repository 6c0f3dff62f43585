/** A database file that is removed, replaced or moved with its home under a running server: it is said at once, and nothing is acknowledged that is lost. */

import { expect, test } from 'bun:test'
import { renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ownControl } from '../control/support/own-control.ts'
import { gateway } from '../support/gateway.ts'
import { home, scripted } from '../support/turns.ts'
import { until } from '../support/until.ts'

const lost = /is not the file that was opened.*put it back/s

test.each(['removed', 'replaced', 'moved'])(
  'a gateway whose database is %s ends each turn with that error, and its /health is 503',
  async (how) => {
    using at = home()
    const { env } = scripted(at, [{ text: 'one' }, { text: 'two' }, { text: 'three' }])
    await using served = await gateway(at, [], { env })
    expect(await served.ask('/chat', { message: 'a' })).toMatchObject({ status: 200 })
    const [folder, file] = [join(at.home, '.braidclaw'), join(at.home, '.braidclaw/memory.sqlite')]
    if (how === 'moved') renameSync(folder, `${folder}.away`)
    else rmSync(file)
    if (how === 'replaced') writeFileSync(file, '')
    expect((await fetch(`${served.url}/health`)).status).toBe(503)
    const turn = await served.ask('/chat', { message: 'b' })
    expect(turn.body.ending).toEqual({ code: 'error', message: expect.stringMatching(lost) })
    const schedule = await served.ask('/schedules', { name: 'x', message: 'x', every: '1h' })
    expect([schedule.status, JSON.stringify(schedule.body)]).toEqual([503, expect.stringMatching(lost)])
    await served.says('the database takes no writes')
    if (how !== 'moved') return
    // A turn that ends makes the folder again.
    await until(() => {
      rmSync(folder, { recursive: true, force: true })
      try {
        renameSync(`${folder}.away`, folder)
        return true
      } catch {
        return false
      }
    })
    await until(async () => (await fetch(`${served.url}/health`)).status === 200)
    expect(await served.ask('/chat', { message: 'c' })).toMatchObject({ status: 200 })
  },
  60_000,
)

test.each(['removed', 'replaced', 'moved'])(
  'a control plane whose database is %s refuses writes, says it, and recovers when it is back',
  async (how) => {
    await using control = await ownControl()
    await control.out(['task', 'add', 'one', '--role', 'a'])
    const folder = join(control.at.home, '.braidclaw/control')
    const file = join(folder, 'control.sqlite')
    if (how === 'moved') renameSync(folder, `${folder}.away`)
    else renameSync(file, `${file}.away`)
    if (how === 'replaced') writeFileSync(file, '')
    const env = { CONTROLPLANE_OPERATOR_TOKEN: control.token }
    const refused = await control.run(['task', 'add', 'two', '--role', 'a'], { env })
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringMatching(lost)])
    expect((await fetch(`${control.url}/health`)).status).toBe(503)
    await control.daemon.says('the database refuses writes')
    if (how === 'moved') renameSync(`${folder}.away`, folder)
    else renameSync(`${file}.away`, file)
    await until(async () => (await fetch(`${control.url}/health`)).status === 200)
    await control.out(['task', 'add', 'three', '--role', 'a'], { env })
    expect((await control.json(['task', 'list'], { env })).map(({ title }: { title: string }) => title).toSorted()).toEqual([
      'one',
      'three',
    ])
  },
  60_000,
)
