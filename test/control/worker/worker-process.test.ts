/** `braidclaw control worker` as a process of its own against a control plane over HTTP: a seed's child, kill -9, SIGSTOP, Ctrl-C. */

import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { chmodSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { NewTask } from '../../../src/control/client/control-client.ts'
import type { Task } from '../../../src/control/contract/task-shapes.ts'
import { type Nest, nest, type Started } from '../../support/cli.ts'
import { needs } from '../../support/needs.ts'
import { sleeperOf, uniqueSeconds } from '../../support/sleeper.ts'
import { until } from '../../support/until.ts'
import { type ControlUnderTest, controlServer } from '../support/control-server.ts'

const seconds = uniqueSeconds()

const state: { plane?: ControlUnderTest; at?: Nest; readonly workers: Started[] } = { workers: [] }
beforeEach(async () => {
  state.plane = await controlServer({ env: { CONTROLPLANE_LEASE_SECONDS: '600' } })
  state.at = nest()
})
afterEach(async () => {
  for (const { pid, result } of state.workers.splice(0)) {
    signal(pid, 'SIGKILL')
    await result
  }
  await state.plane?.[Symbol.asyncDispose]()
  state.at?.[Symbol.dispose]()
})

function signal(pid: number, name: 'SIGKILL' | 'SIGSTOP' | 'SIGCONT' | 'SIGTERM'): void {
  try {
    process.kill(pid, name)
  } catch {}
}

type Work = {
  readonly agent?: string
  readonly flags?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  readonly runner?: readonly string[]
  readonly timeoutMs?: number
}

function given() {
  const { plane, at } = state
  if (!plane || !at) throw new Error('not open')
  const client = plane.client()
  return {
    plane,
    at,
    client,
    add: (fields: Partial<NewTask> = {}): Promise<Task> => client.tasks.create({ title: 'look', role: 'sysadmin', ...fields }),
    /** A worker whose runner is this shell script. */
    async work(
      script: string,
      { agent = 'a1', flags = [], env = {}, runner = ['--runner', 'command'], timeoutMs = 90_000 }: Work = {},
    ): Promise<Started> {
      const key = await plane.addAgent(agent, 'sysadmin')
      const command = runner.includes('command') ? ['--', '/bin/sh', '-c', script] : []
      const words = ['control', 'worker', '--agent', agent, '--role', 'sysadmin', ...runner, ...flags, ...command]
      const started = at.start(words, { env: { CONTROLPLANE_API_URL: plane.url, CONTROLPLANE_API_KEY: key, ...env }, timeoutMs })
      state.workers.push(started)
      return started
    },
  }
}

/** Returns the log of the child, which only the control plane has. */
const logHas = (text: string, id = 'RUN-001') => {
  const { client } = given()
  return until(async () => {
    const { bytes } = await client.runs.log(id).catch(() => ({ bytes: new Uint8Array() }))
    const log = Buffer.from(bytes).toString()
    return log.includes(text) && log
  })
}

/** Passes requests on until it is told to hang: from then on nothing is answered. */
function hangingProxy(target: string): Disposable & { readonly url: string; hang(): void } {
  const line = { hangs: false }
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    idleTimeout: 0,
    async fetch({ url, method, headers, body }): Promise<Response> {
      if (line.hangs) return new Promise(() => {})
      const { pathname, search } = new URL(url)
      headers.delete('host')
      return fetch(`${target}${pathname}${search}`, { method, headers, body })
    },
  })
  return {
    url: `http://127.0.0.1:${server.port}`,
    hang() {
      line.hangs = true
    },
    [Symbol.dispose]: () => void server.stop(true),
  }
}

describe.if(needs('bwrap', 'socat', 'curl'))('braidclaw control worker', () => {
  test('a child that knows only the seed completes its task itself, through the one way out that it has', async () => {
    const { plane, add, work, client, at } = given()
    const other = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response('reached') })
    const { task_id } = await add()
    const script = `
      api() { curl -s -m 30 -H "Authorization: Bearer $CONTROLPLANE_API_KEY" -H 'Content-Type: application/json' "$@"; }
      env | cut -d= -f1 | grep CONTROLPLANE | sort | tr '\\n' ' '
      api "$CONTROLPLANE_API_URL/api/controlplane/state"; echo
      curl -s -m 2 http://127.0.0.1:${other.port}/ || echo "no way to others"
      api "$CONTROLPLANE_API_URL/api/controlplane/agents" -o denied.json -w '%{http_code}\\n'
      echo text > made.txt
      api -d "{\\"event_type\\":\\"task_completed\\",\\"task_id\\":\\"$CONTROLPLANE_TASK_ID\\",\\"agent_id\\":\\"$CONTROLPLANE_AGENT_ID\\",\\"skill_executed\\":\\"jail-status\\",\\"result\\":{\\"status\\":\\"success\\",\\"output\\":\\"up\\",\\"tokens_used\\":420}}" "$CONTROLPLANE_API_URL/api/controlplane/activity"`
    const worker = await work(script, { flags: ['--once'] })
    expect(await worker.result).toMatchObject({ code: 0 })
    other.stop(true)
    expect(await client.tasks.get(task_id)).toMatchObject({ status: 'completed', tokens_used: 420, result: { output: 'up' } })
    const log = await logHas('"ok":true')
    expect(log).toContain(
      'CONTROLPLANE_AGENT_ID CONTROLPLANE_API_KEY CONTROLPLANE_API_URL CONTROLPLANE_SESSION_CWD CONTROLPLANE_TASK_ID CONTROLPLANE_WORKSPACE_CWD',
    )
    expect(log).toContain('"budget"')
    expect(log).toContain('no way to others')
    expect(log).not.toContain('reached')
    expect(log).toContain('403')
    expect(await client.runs.get('RUN-001')).toMatchObject({
      state: 'completed',
      changes: 'waiting',
      manifest: { format: 'braidclaw.run-manifest' },
    })
    const list = await at.run(['changes', 'list'], {})
    expect(list.stdout).toContain('RUN-001/TASK-001')
    expect((await at.run(['changes', 'apply', 'RUN-001', '--yes'])).code).toBe(0)
    expect(readFileSync(join(at.workspace, 'made.txt'), 'utf8')).toBe('text\n')
    expect(plane.errors).toEqual([])
  }, 120_000)

  test('kill -9: the child is dead long before its lease ends, and another worker does the task', async () => {
    const { add, work, client } = given()
    const { task_id } = await add()
    const first = await work(`setsid sleep ${seconds} & sleep ${seconds}`, { flags: ['--lease', '6'] })
    await until(() => sleeperOf(seconds))
    signal(first.pid, 'SIGKILL')
    await until(() => sleeperOf(seconds) === undefined)
    expect(Date.now()).toBeLessThan(Date.parse((await client.tasks.get(task_id)).lease_until ?? ''))
    const second = await work(`echo '{"type":"result","ok":true,"output":"second"}'`, { agent: 'a2', flags: ['--lease', '3', '--once'] })
    expect(await second.result).toMatchObject({ code: 0 })
    expect(await client.tasks.get(task_id)).toMatchObject({ status: 'completed', attempt: 2, result: { output: 'second' } })
    expect(await client.runs.get('RUN-001')).toMatchObject({ state: 'lost' })
  }, 120_000)

  test('a worker that was stopped and wakes up late changes nothing, and its child ends', async () => {
    const { add, work, client, at } = given()
    const { task_id } = await add()
    const script = `echo late > late.txt; sleep ${seconds} & wait; echo '{"type":"result","ok":true,"output":"late"}'`
    const first = await work(script, { flags: ['--lease', '4'] })
    await until(() => sleeperOf(seconds))
    signal(first.pid, 'SIGSTOP')
    const second = await work(`echo '{"type":"result","ok":true,"output":"in time"}'`, { agent: 'a2', flags: ['--once'] })
    expect(await second.result).toMatchObject({ code: 0 })
    const [task, run] = [await client.tasks.get(task_id), await client.runs.get('RUN-001')]
    expect(task).toMatchObject({ status: 'completed', result: { output: 'in time' } })
    const sleeper = sleeperOf(seconds)
    if (sleeper) signal(sleeper, 'SIGTERM')
    signal(first.pid, 'SIGCONT')
    await first.says('the result of the run was dropped')
    await until(() => sleeperOf(seconds) === undefined)
    expect(await client.tasks.get(task_id)).toEqual(task)
    expect(await client.runs.get('RUN-001')).toEqual(run)
    expect(run).toMatchObject({ state: 'lost', changes: null, manifest: null })
    expect((await at.run(['changes', 'list'])).stdout).not.toContain('RUN-001')
  }, 120_000)

  test('SIGTERM: nothing more is claimed, the run gets its time, and then the task is given back', async () => {
    const { add, work, client } = given()
    const { task_id } = await add()
    const worker = await work(`sleep ${seconds}`)
    await until(() => sleeperOf(seconds))
    signal(worker.pid, 'SIGTERM')
    await worker.says('stopping')
    await Bun.sleep(300)
    expect(await client.tasks.get(task_id)).toMatchObject({ status: 'running' })
    signal(worker.pid, 'SIGTERM')
    expect((await worker.result).code).not.toBe(null)
    expect(await client.tasks.get(task_id)).toMatchObject({ status: 'pending' })
    expect(await client.runs.get('RUN-001')).toMatchObject({ state: 'released' })
    expect(sleeperOf(seconds)).toBeUndefined()
  }, 120_000)

  test('SIGTERM twice: the worker ends although the control plane does not answer any more, and the child with it', async () => {
    const { add, work, plane } = given()
    const { task_id } = await add()
    using between = hangingProxy(plane.url)
    const worker = await work('sleep 4714', { env: { CONTROLPLANE_API_URL: between.url }, timeoutMs: 120_000 })
    await until(() => sleeperOf(4714) !== undefined)
    between.hang()
    signal(worker.pid, 'SIGTERM')
    await worker.says('stopping')
    signal(worker.pid, 'SIGTERM')
    expect(await worker.result).toMatchObject({ code: 0, stderr: expect.stringContaining(`${task_id}: lost`) })
    expect(sleeperOf(4714)).toBeUndefined()
  }, 180_000)

  test('a failed task ends --once with a code that says so', async () => {
    const { add, work } = given()
    await add()
    const { code, stderr } = await (await work('echo nope >&2; exit 3', { flags: ['--once'] })).result
    expect(code).toBe(1)
    expect(stderr).toContain('TASK-001')
  })

  test('a task whose last attempt failed is escalated, and ends --once with the code of a failure', async () => {
    const { add, work, client } = given()
    await add({ max_attempts: 1 })
    expect((await (await work('exit 3', { flags: ['--once'] })).result).code).toBe(1)
    expect(await client.tasks.get('TASK-001')).toMatchObject({ status: 'dead' })
  })

  test('a task that waits for an approval ends --once with its own code', async () => {
    const { add, work, client } = given()
    const { task_id } = await add()
    const ask = `curl -s -m 30 -H "Authorization: Bearer $CONTROLPLANE_API_KEY" -H 'Content-Type: application/json' \
      -d '{"event_type":"approval_request","agent_id":"a1","operation":"merge"}' "$CONTROLPLANE_API_URL/api/controlplane/activity"`
    expect((await (await work(ask, { flags: ['--once'] })).result).code).toBe(4)
    expect(await client.tasks.get(task_id)).toMatchObject({ status: 'awaiting_approval' })
  })

  test('aider is started with the settings of the seed, and streams to the log that the seed names', async () => {
    const { add, work, at, client } = given()
    const { task_id } = await add({ title: '--yes; $(reboot)', description: 'line one\nline two' })
    const standIn = at.file(
      '../aider-stand-in',
      `#!/bin/sh\n[ "$1" = --version ] && exec echo 9.1\necho "args: $*"\nfor last; do :; done; cat "$last"\necho done > made.txt\necho 'Tokens: 1.2k sent, 300 received.'\n`,
    )
    chmodSync(standIn, 0o755)
    const logs = join(at.dir, 'aider-logs')
    const env = {
      CONTROLPLANE_RUNNER: 'aider',
      CONTROLPLANE_AIDER_BIN: standIn,
      CONTROLPLANE_AIDER_FLAGS: '--no-gitignore --map-tokens "1 024"',
      CONTROLPLANE_AIDER_LOG_DIR: logs,
    }
    expect(await (await work('', { env, runner: [], flags: ['--once'] })).result).toMatchObject({ code: 0 })
    expect(await client.tasks.get(task_id)).toMatchObject({ status: 'completed', tokens_used: 1_500 })
    const log = readFileSync(join(logs, 'a1.log'), 'utf8')
    expect(log).toMatch(/args: --no-gitignore --map-tokens 1 024 --yes-always --no-pretty --no-stream --message-file \S+message\.txt\n/)
    expect(log).toContain('"title": "--yes; $(reboot)"')
    expect(await client.runs.get('RUN-001')).toMatchObject({ changes: 'waiting', manifest: { with: { runner: 'aider' } } })
  }, 120_000)

  test('without CONTROLPLANE_RUNNER and without pi the own runner is chosen, which refuses the offline helper', async () => {
    const { work } = given()
    const { code, stderr } = await (await work('', { runner: [], env: { PATH: '/usr/bin:/bin' } })).result
    expect(code).toBe(1)
    expect(stderr.match(/CONTROLPLANE_RUNNER/g)).toHaveLength(1)
    expect(stderr).toMatch(/needs a model.*offline helper/)
  })

  test('a runner that is not installed is named, with the way to install it', async () => {
    const { work } = given()
    const { code, stderr } = await (await work('', { runner: ['--runner', 'codex'], env: { PATH: '/usr/bin:/bin' } })).result
    expect(code).toBe(1)
    expect(stderr).toContain('npm install -g @openai/codex')
  })
})
