/** A control plane that is set up, moved and brought back: init, the lock of its database, backup, restore. */

import { describe, expect, test } from 'bun:test'
import { chmodSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Nest, nest } from '../../support/cli.ts'
import { until } from '../../support/until.ts'
import { fillWithCommands, ownControl } from '../support/own-control.ts'

const folder = (at: Nest) => join(at.home, '.braidclaw/control')
const tokenFile = (at: Nest) => join(folder(at), 'operator.token')

describe('init', () => {
  test('makes folder, database and token for nobody else to read; the second time it shows no token and changes nothing', async () => {
    using at = nest()
    const first = await at.run(['control', 'init'])
    expect([first.code, first.stdout]).toEqual([0, readFileSync(tokenFile(at), 'utf8')])
    expect(first.stdout).toMatch(/^cpo_[\w-]{43}\n$/)
    const modes = [folder(at), tokenFile(at), join(folder(at), 'control.sqlite')].map((path) => (statSync(path).mode & 0o777).toString(8))
    expect(modes).toEqual(['700', '600', '600'])
    const second = await at.run(['control', 'init', '--json'])
    expect(JSON.parse(second.stdout)).toEqual({ database: join(folder(at), 'control.sqlite'), token_file: tokenFile(at) })
    expect(readFileSync(tokenFile(at), 'utf8')).toBe(first.stdout)
    expect(first.stderr).toContain('serve it, and its dashboard, on http://127.0.0.1:3100\n')
    using other = nest()
    const { stderr } = await other.run(['control', 'init'], { env: { CONTROLPLANE_API_PORT: '4100' } })
    expect(stderr).toContain('on http://127.0.0.1:4100\n')
  })

  test('a token file that others can read is refused, and an operator whose token is not here is named with the way out', async () => {
    using at = nest()
    await at.run(['control', 'init'])
    const kept = readFileSync(tokenFile(at), 'utf8')
    chmodSync(tokenFile(at), 0o644)
    expect((await at.run(['control', 'init'])).stderr).toContain(`chmod 600 ${tokenFile(at)}`)
    expect((await at.run(['control', 'status'])).stderr).toContain(`chmod 600 ${tokenFile(at)}`)
    Bun.spawnSync(['rm', tokenFile(at)])
    const lost = await at.run(['control', 'init'])
    expect([lost.code, lost.stdout]).toEqual([1, ''])
    expect(lost.stderr).toContain('braidclaw control init --new-token')
    const again = await at.run(['control', 'init', '--new-token'])
    expect([again.code, again.stdout === kept, readFileSync(tokenFile(at), 'utf8')]).toEqual([0, false, again.stdout])
  })
})

describe('the daemon', () => {
  test.each([
    [{ CONTROLPLANE_API_PORT: '70000' }, [], 'CONTROLPLANE_API_PORT: "70000"'],
    [{ CONTROLPLANE_LEASE_SECONDS: 'soon' }, [], 'CONTROLPLANE_LEASE_SECONDS: "soon"'],
    [{}, ['--compat-from', 'everywhere'], 'everywhere'],
    [{}, ['--tls-cert', 'x.pem'], '--tls-cert and --tls-key'],
    [{}, ['--database', 'mysql://x'], 'postgres://'],
    [{}, ['--host', '0.0.0.0', '--port', '0'], 'no operator exists yet; make one first: braidclaw control init'],
  ])('%j %j: it does not start', async (env, flags, told) => {
    using at = nest()
    const { code, stdout, stderr } = await at.run(['control', ...flags], { env })
    expect({ ok: code === 1 || code === 2, stdout, told: stderr.includes(told), stderr }).toEqual({
      ok: true,
      stdout: '',
      told: true,
      stderr,
    })
  })

  test('serves a database alone; a second one says so; SIGTERM ends it with 0, also while somebody waits for a task', async () => {
    await using control = await ownControl()
    const second = await control.at.run(['control', '--port', '0'])
    expect([second.code, second.stdout]).toEqual([1, ''])
    expect(second.stderr).toContain(`a daemon serves ${join(folder(control.at), 'control.sqlite')}; stop that one first`)
    const taken = await control.at.run(['control', '--port', new URL(control.url).port], {
      env: { BRAIDCLAW_HOME: join(control.at.dir, 'other') },
    })
    expect([taken.code, taken.stderr.includes('something listens there already; name another --port')]).toEqual([1, true])
    const key = await control.out(['agent', 'add', 'a', '--key'])
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
    const body = JSON.stringify({ role: 'a', agent_id: 'a', wait_ms: 20_000 })
    const waiting = fetch(`${control.url}/api/controlplane/tasks/claim`, { method: 'POST', headers, body })
    const metrics = () => fetch(`${control.url}/metrics`, { headers: { authorization: `Bearer ${control.token}` } })
    await until(async () => (await (await metrics()).text()).includes('braidclaw_control_waiting_claims 1\n'))
    process.kill(control.daemon.pid, 'SIGTERM')
    expect([(await control.daemon.result).code, (await waiting).status]).toEqual([0, 204])
  })

  test('after kill -9 the next one serves at once', async () => {
    await using control = await ownControl()
    await control.out(['task', 'add', 'Stay', '--role', 'a'])
    process.kill(control.daemon.pid, 'SIGKILL')
    await control.daemon.result
    const next = control.at.start(['control', '--port', '0'], { timeoutMs: 90_000 })
    const url = await next.says(/ready: (\S+) /)
    expect(JSON.parse((await control.at.run(['control', 'task', '--json', '--url', url])).stdout)).toMatchObject([{ title: 'Stay' }])
    process.kill(next.pid, 'SIGTERM')
    expect((await next.result).code).toBe(0)
  })
})

describe('backup and restore', () => {
  test('a backup while the daemon serves, and what is made of it in an empty home, have the same digest', async () => {
    await using control = await ownControl()
    await fillWithCommands(control)
    const file = join(control.at.dir, 'backup.sqlite')
    const saved = await control.json(['backup', file])
    expect((statSync(file).mode & 0o777).toString(8)).toBe('600')
    const other = { env: { BRAIDCLAW_HOME: join(control.at.dir, 'second') } }
    const restored = await control.json(['restore', file], other)
    expect([restored.digest, restored.rows, restored.tables]).toEqual([saved.digest, saved.rows, saved.tables])
    expect(saved.tables.find(({ table }: { table: string }) => table === 'tasks').rows).toBe(2)
    // The token of before counts in the restored one too: its hash is in the database.
    const daemon = control.at.start(['control', '--port', '0'], { ...other, timeoutMs: 90_000 })
    const url = await daemon.says(/ready: (\S+) /)
    expect((await control.json(['task', '--url', url])).length).toBe(2)
    process.kill(daemon.pid, 'SIGTERM')
    await daemon.result
  })

  test('nothing is overwritten: neither a file, nor a control plane, nor one that is served', async () => {
    await using control = await ownControl()
    const file = join(control.at.dir, 'backup.sqlite')
    writeFileSync(file, 'mine')
    const refused = await control.run(['backup', file])
    expect([refused.code, refused.stderr.includes('exists; name a new file'), readFileSync(file, 'utf8')]).toEqual([1, true, 'mine'])
    const good = join(control.at.dir, 'good.sqlite')
    await control.out(['backup', good])
    expect((await control.run(['restore', good])).stderr).toContain('a daemon serves')
    process.kill(control.daemon.pid, 'SIGTERM')
    await control.daemon.result
    const full = await control.run(['restore', good])
    expect([full.code, full.stderr.includes('not empty')]).toEqual([1, true])
  })

  test('a file that is no backup is named, and a home without a control plane cannot be backed up', async () => {
    using at = nest()
    writeFileSync(join(at.dir, 'text'), 'this is text, and no database at all. '.repeat(200))
    for (const file of [join(at.dir, 'text'), join(at.dir, 'none')]) {
      const { code, stdout, stderr } = await at.run(['control', 'restore', file])
      expect({ code, stdout, named: stderr.includes(file), bug: stderr.includes('bug') }).toEqual({
        code: 1,
        stdout: '',
        named: true,
        bug: false,
      })
    }
    mkdirSync(join(at.dir, 'empty'))
    const none = await at.run(['control', 'backup', join(at.dir, 'b')], { env: { BRAIDCLAW_HOME: join(at.dir, 'empty') } })
    expect([none.code, none.stderr.includes('this home has no control plane')]).toEqual([1, true])
  })
})
