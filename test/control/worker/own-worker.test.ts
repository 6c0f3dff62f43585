/** Opens workers as the command does, in this process: who they are, and what they keep apart for two control planes with an agent of one name. */

import { afterEach, expect, test } from 'bun:test'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { channelRows } from '../../../src/channels/list.ts'
import { markOf } from '../../../src/control/worker/child/child-processes.ts'
import { type OwnWorkerOptions, openOwnWorker } from '../../../src/control/worker/open-own-worker.ts'
import { silentContext } from '../../../src/host/open/library.ts'
import { openHost } from '../../../src/host/open/open-host.ts'
import { loadSetup } from '../../../src/host/setup/setup.ts'
import { needs } from '../../support/needs.ts'
import { type ControlUnderTest, controlServer } from '../support/control-server.ts'

const open: (() => unknown)[] = []
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close()
})

async function plane(): Promise<ControlUnderTest> {
  const control = await controlServer()
  open.push(() => control[Symbol.asyncDispose]())
  return control
}

const makesFile = `cat > /dev/null; echo made > made.txt; echo '{"type":"result","ok":true,"output":"done"}'`

/** One machine with one home; each worker is of the agent "a1". */
function machine() {
  const dir = mkdtempSync(join(tmpdir(), 'braidclaw-machine-'))
  open.push(() => rmSync(dir, { recursive: true, force: true }))
  const [home, workspace] = [join(dir, '.braidclaw'), join(dir, 'work')]
  for (const folder of [home, workspace]) mkdirSync(folder)
  const context = { ...silentContext({ channels: channelRows, home, env: { HOME: dir, PATH: process.env.PATH } }), cwd: workspace }
  const setup = loadSetup(context, { workspace })
  const said: string[] = []
  return {
    ...{ dir, home, said, folders: (path: string) => (existsSync(join(dir, path)) ? readdirSync(join(dir, path)) : []) },
    async work(apiUrl: string, apiKey: string, more: Partial<OwnWorkerOptions> = {}) {
      const opened = await openOwnWorker({
        ...{ setup, apiUrl, apiKey, fetch, version: '1.2.3', once: true, say: (line) => void said.push(line) },
        ...{ runner: 'command', command: ['/bin/sh', '-c', makesFile], ...more },
      })
      if (!opened.ok) throw new Error(opened.message)
      try {
        return { end: await opened.worker.run(), agentId: opened.agentId, role: opened.role }
      } finally {
        await opened.close()
      }
    },
    /** The oldest of this name. */
    async drop(runId: string) {
      const host = await openHost(setup, { ahead: false })
      const { store } = await host.changes()
      const sets = store.list().filter(({ about }) => about.run === runId)
      await store.drop(sets.toSorted((a, b) => a.about.at - b.about.at)[0]?.id ?? '')
      await host.close()
      return sets.length
    },
  }
}

test('a key that is refused, is no agent’s, or is that of another agent or role, is said before anything is claimed', async () => {
  const control = await plane()
  const key = await control.addAgent('a1', 'sysadmin')
  const { work, folders } = machine()
  const trouble = (apiKey: string, more: Partial<OwnWorkerOptions> = {}) => work(control.url, apiKey, more).then(String, String)
  expect(await trouble('cpa_nobody')).toMatch(/refuses the key: .*check --key-file and CONTROLPLANE_API_KEY/)
  expect(await trouble(control.operator)).toMatch(/a token of an operator .*needs the key of its agent; braidclaw control key new NAME/)
  expect(await trouble(key, { agentId: 'a2' })).toMatch(/the key belongs to the agent "a1" .* names "a2"/)
  expect(await trouble(key, { role: 'git-admin' })).toMatch(
    /"a1" has the role "sysadmin" .* --role names "git-admin"; leave out --role, or change the agent: braidclaw control agent edit a1 --role git-admin/,
  )
  const older = () => Response.json({ error: { code: 'not_found', message: 'unknown path' } }, { status: 404 })
  const other = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: older })
  expect(await work(other.url.origin, key).then(String, String)).toMatch(/the server at .* is not a control plane of this version/)
  other.stop(true)
  expect(folders('.cache/braidclaw/worker')).toEqual([])
})

test('a control plane keeps its id at another address, and no other one has it', async () => {
  const { dir } = machine()
  const idAt = async (home: string) => {
    await using control = await controlServer({ home })
    return (await control.client(await control.addAgent(crypto.randomUUID())).fleet.whoAmI()).control_plane
  }
  const first = await idAt(join(dir, 'a'))
  expect(first).toMatch(/^[0-9a-f]{16}$/)
  expect([await idAt(join(dir, 'a')), await idAt(join(dir, 'b'))]).toEqual([first, expect.not.stringMatching(first)])
})

test('with its key alone a worker knows its agent and its role; it waits for a control plane that is not there yet', async () => {
  const control = await plane()
  const key = await control.addAgent('a1', 'sysadmin')
  const { work, said } = machine()
  await control.client().fleet.pause('a1')
  const lost = () => Promise.reject(new TypeError('ECONNREFUSED'))
  const trouble = [lost, async () => new Response('sign in')]
  const broken = Object.assign((...asked: Parameters<typeof fetch>) => trouble.shift()?.() ?? fetch(...asked), { preconnect: () => {} })
  expect(await work(control.url, key, { fetch: broken })).toMatchObject({ end: 'none', agentId: 'a1', role: 'sysadmin' })
  expect(said[0]).toMatch(/cannot be reached: .*; waiting$/)
  expect(said[1]).toMatch(/something else answered with status 200 \(.*\), not in the form of a control plane; .*; waiting$/)
})

test.if(needs('bwrap'))(
  'what a person did with the changes of a run is told to its own control plane, and each has a signing key of its own',
  async () => {
    const [here, there] = [await plane(), await plane()]
    const { work, drop } = machine()
    const keys = new Map<ControlUnderTest, string>()
    for (const control of [here, there]) {
      keys.set(control, await control.addAgent('a1', 'sysadmin'))
      await control.client().tasks.create({ title: 'make it', role: 'sysadmin' })
      expect((await work(control.url, keys.get(control) ?? '')).end).toBe('completed')
    }
    expect(await drop('RUN-001')).toBe(2)
    const changes = async (control: ControlUnderTest) => (await control.client().runs.get('RUN-001')).changes
    for (const control of [here, there]) await control.client().fleet.pause('a1')
    await work(there.url, keys.get(there) ?? '')
    expect([await changes(here), await changes(there)]).toEqual(['waiting', 'waiting'])
    await work(here.url, keys.get(here) ?? '')
    expect([await changes(here), await changes(there)]).toEqual(['dropped', 'waiting'])
    const signing = async (control: ControlUnderTest) => (await control.client().fleet.get('a1')).worker?.signing_key
    expect(await signing(here)).not.toBe(await signing(there))
  },
)

test.if(needs('bwrap'))(
  'the check of a task decides on what the run left: a failed one is a failed attempt with its reason, and keeps nothing',
  async () => {
    const control = await plane()
    const key = await control.addAgent('a1', 'sysadmin')
    const { work } = machine()
    const { tasks } = control.client()
    const add = (check: string) => tasks.create({ title: 'make it', role: 'sysadmin', max_attempts: 1, check })
    const failing = await add('cat made.txt; test -e other.txt')
    expect(failing.check).toBe('cat made.txt; test -e other.txt')
    expect((await work(control.url, key)).end).not.toBe('completed')
    const failed = await tasks.get(failing.task_id)
    expect(failed).toMatchObject({
      status: 'dead',
      error: expect.stringContaining('the check "cat made.txt; test -e other.txt" did not pass: made'),
    })
    expect((await control.client().runs.get('RUN-001')).changes).not.toBe('waiting')
    const passing = await add('grep made made.txt')
    expect((await work(control.url, key)).end).toBe('completed')
    expect(await tasks.get(passing.task_id)).toMatchObject({ status: 'completed', check: 'grep made made.txt' })
  },
)

test('what an older version kept for the agent goes to the first control plane, but what a living worker or a change set needs stays', async () => {
  const control = await plane()
  const key = await control.addAgent('a1', 'sysadmin')
  const { dir, home, work, folders } = machine()
  const older = join(dir, '.cache/braidclaw/worker/a1')
  const [keys, sets] = [join(home, 'control/agents/a1'), join(older, 'copies/RUN-001-TASK-001-12345678')]
  for (const folder of [keys, sets, join(older, 'copies/a1-999999999'), join(older, 'children')]) mkdirSync(folder, { recursive: true })
  await control.client().fleet.pause('a1')
  await work(control.url, key)
  const [own = ''] = folders('.braidclaw/control/agents').filter((name) => name.startsWith('a1@'))
  const ownKey = join(home, 'control/agents', own, 'manifest-key.pem')
  const signing = async () => (await control.client().fleet.get('a1')).worker?.signing_key
  const before = await signing()
  renameSync(ownKey, join(keys, 'manifest-key.pem'))
  symlinkSync(sets, join(home, 'kept'))
  const record = (run_id: string, worker: object) =>
    writeFileSync(join(older, 'children', `${run_id}.json`), JSON.stringify({ run_id, worker, token_digest: 'x', processes: [] }))
  record('RUN-001', { pid: 999_999_999, started: '1' })
  record('RUN-002', markOf(process.pid) ?? {})
  writeFileSync(join(older, 'waiting-changes.json'), JSON.stringify([{ run_id: 'RUN-009', id: 'gone' }]))
  await work(control.url, key)
  expect(await signing()).toBe(before)
  expect(folders('.cache/braidclaw/worker/a1/children')).toEqual(['RUN-002.json'])
  expect(folders('.cache/braidclaw/worker/a1/copies')).toEqual(['RUN-001-TASK-001-12345678'])
  expect(existsSync(join(older, 'waiting-changes.json'))).toBe(false)
  expect(existsSync(join(dir, '.cache/braidclaw/worker', own, 'waiting-changes.json'))).toBe(true)
  expect(existsSync(ownKey) && existsSync(join(home, 'kept'))).toBe(true)
})
