/** What an operator does from day to day, by commands against a real control plane; an agent is played over HTTP with its key. */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type OwnControl, ownControl } from '../support/own-control.ts'

const state = {} as { control: OwnControl }
beforeAll(async () => {
  state.control = await ownControl()
}, 120_000)
afterAll(() => state.control[Symbol.asyncDispose]())

const out: OwnControl['out'] = (...given) => state.control.out(...given)
const json: OwnControl['json'] = (...given) => state.control.json(...given)
const run: OwnControl['run'] = (...given) => state.control.run(...given)

async function ask(path: string, token: string, body: object): Promise<ReturnType<typeof JSON.parse>> {
  const answer = await fetch(`${state.control.url}/api/controlplane/${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  const told: ReturnType<typeof JSON.parse> = answer.status === 204 ? {} : await answer.json()
  return { status: answer.status, ...told }
}
const claim = (role: string, key: string) => ask('tasks/claim', key, { role, agent_id: role })

describe('tasks', () => {
  test.each([
    [['task', 'add', 'x'], 2, '--role is missing'],
    [['task', 'add', '--role', 'a'], 2, 'braidclaw control task add TITLE --role ROLE'],
    [['task', 'add', 'x', '--role', 'a b'], 2, '--role "a b"'],
    [['task', 'add', 'x', '--role', 'a', '--context', '[1]'], 2, '--context: "[1]" is not a JSON object'],
    [['task', 'add', 'x', '--role', 'a', '--after', 'TASK-999'], 2, 'TASK-999'],
    [['task', 'add', 'x', '--role', 'a', '--priority', 'hihg'], 2, 'did you mean "high"?'],
    [['task', 'edit', '1'], 2, 'nothing to change'],
    [['task', 'edit', '1', '--hold', '--release'], 2, '--hold and --release exclude each other'],
    [['task', 'show', '999'], 1, 'TASK-999'],
    [['task', 'resolve', '1', 'maybe'], 2, '<outcome> is one of done, redo, give_up'],
    [['approve', 'TASK-999'], 1, 'TASK-999 waits for no approval'],
    [['budget', 'set'], 2, 'nothing to set'],
    [['budget', 'set', '--zone', 'Europe/Lubljana'], 2, 'did you mean "Europe/Ljubljana"'],
    [['agent', 'pause', 'nobody'], 1, 'nobody'],
    [['schedule', 'add', 's', 'x', '--role', 'a'], 2, 'exactly one of --every and --cron'],
    [['stats'], 2, 'did you mean "status"?'],
  ] as const)('%j is refused with %i', async (words, code, told) => {
    const result = await run(words)
    expect({ code: result.code, stdout: result.stdout, told: result.stderr.includes(told), stderr: result.stderr }).toEqual({
      code,
      stdout: '',
      told: true,
      stderr: result.stderr,
    })
  })

  test('are written down with everything, changed by version, held, cancelled and retried', async () => {
    const words = [
      'task',
      'add',
      'Look',
      'at',
      'it',
      '-r',
      'edit',
      '-d',
      'closely',
      '--label',
      'a',
      '--label',
      'b',
      '--budget',
      '5k',
      '--attempts',
      '7',
      '--at',
      'in 2h',
    ]
    const id = await out([...words, '--context', '{"jail_name":"db"}', '--priority', 'low'])
    const task = await json(['task', 'show', id.toLowerCase()])
    expect(task).toMatchObject({
      title: 'Look at it',
      description: 'closely',
      labels: ['a', 'b'],
      budget_tokens: 5000,
      max_attempts: 7,
      priority: 'low',
      context: { jail_name: 'db' },
    })
    expect(Date.parse(task.available_at) - Date.now()).toBeGreaterThan(7_000_000)
    const late = await run(['task', 'edit', id, '--priority', 'urgent', '--if-version', '99'])
    expect([late.code, late.stderr.includes('Read it again')]).toEqual([1, true])
    expect(await json(['task', 'edit', id, '--priority', 'urgent', '--label', 'none', '--budget', 'none', '--hold'])).toMatchObject({
      priority: 'urgent',
      labels: [],
      budget_tokens: null,
      blocked_reason: 'operator',
    })
    expect(await out(['task', 'edit', id, '--release'])).toStartWith(`${id}  pending  `)
    const other = await out(['task', 'add', 'Second', '--role', 'edit'])
    expect((await out(['task', 'cancel', id, other, '--note', 'no longer'])).split('\n').map((line) => line.split('  ')[1])).toEqual([
      'cancelled',
      'cancelled',
    ])
    expect(await json(['task', 'list', '--role', 'edit', '--open'])).toEqual([])
    expect(await json(['task', 'retry', id])).toMatchObject({ status: 'pending' })
    expect((await json(['task', 'list', '--role', 'edit', '--status', 'pending', '--search', 'look'])).length).toBe(1)
  })

  test('the first line of stdin is the title, the rest the description', async () => {
    const task = await json(['task', 'add', '--role', 'stdin'], { stdin: 'Title of it\n\nline one\nline two\n' })
    expect(task).toMatchObject({ title: 'Title of it', description: 'line one\nline two' })
  })

  test('an effect in doubt is named by the status with its command, and resolved by hand', async () => {
    const key = await out(['agent', 'add', 'doubt', '--key'])
    const id = await out(['task', 'add', 'Send the invoice', '--role', 'doubt'])
    const first = await claim('doubt', key)
    await ask(`tasks/${id}/effects`, first.run_token, { key: 'mail', description: 'send' })
    await ask(`tasks/${id}/release`, first.run_token, { outcome: 'now' })
    const second = await claim('doubt', key)
    if (second.run_token) await ask(`tasks/${id}/effects`, second.run_token, { key: 'mail', description: 'send' })
    expect(await out(['status'])).toContain(`control task resolve ${id}`)
    expect(await out(['task', 'show', id])).toContain('in_doubt')
    expect(await json(['task', 'resolve', id, 'done', '--key', 'mail', '--result', '{"sent":true}'])).toMatchObject({ status: 'pending' })
    expect((await json(['task', 'show', id])).effects).toMatchObject([{ key: 'mail', state: 'done', result: { sent: true } }])
  })
})

describe('agents', () => {
  test('a key is written to a file of its own, replaced, and revoked: then the agent is refused', async () => {
    const file = join(state.control.at.dir, 'k.key')
    await out(['agent', 'add', 'keys', '--role', 'r', '--daily', '10k', '--key', '--to', file])
    expect((statSync(file).mode & 0o777).toString(8)).toBe('600')
    const read = () => readFileSync(file, 'utf8').trim()
    const first = read()
    expect((await run(['agent', 'list', '--json'])).stdout).not.toContain(first)
    await out(['key', 'rotate', 'keys', '--to', file])
    expect(read()).not.toBe(first)
    const claimed = (key: string) => ask('tasks/claim', key, { role: 'r', agent_id: 'keys' })
    expect([(await claimed(first)).status, (await claimed(read())).status]).toEqual([401, 204])
    await out(['key', 'new', 'keys', '--to', join(state.control.at.dir, 'second.key')])
    const vague = await run(['key', 'revoke', 'keys'])
    expect([vague.code, vague.stderr.includes('has 2 keys in force; name one')]).toEqual([2, true])
    for (const { key_id: id, revoked_at: revoked } of await json(['key', 'list', 'keys']))
      if (revoked === null) await out(['key', 'revoke', 'keys', id])
    expect((await claimed(read())).status).toBe(401)
  })

  test('pause, resume, edit, remove', async () => {
    await out(['agent', 'add', 'p'])
    expect(await out(['agent', 'pause', 'p', '--reason', 'until 14:00'])).toStartWith('p (p)  paused: until 14:00')
    expect(await out(['agent'])).toContain('until 14:00')
    expect(await json(['agent', 'resume', 'p'])).toMatchObject({ paused: false })
    expect(await json(['agent', 'wake', 'p'])).toMatchObject({ wakes: 1 })
    expect(await json(['agent', 'edit', 'p', '--daily', '2k', '--heartbeat', 'off'])).toMatchObject({
      daily_tokens: 2000,
      heartbeat_enabled: false,
    })
    await out(['agent', 'remove', 'p'])
    expect((await json(['agent'])).map(({ id }: { id: string }) => id)).not.toContain('p')
  })

  test('an operator token that is revoked is refused with 3; an agent key is no operator token', async () => {
    const made = await json(['operator', 'new', 'anna'])
    const as = (token: string) => run(['operator', 'list'], { env: { CONTROLPLANE_OPERATOR_TOKEN: token } })
    expect((await as(made.token)).code).toBe(0)
    await out(['operator', 'revoke', made.id])
    const { code, stderr } = await as(made.token)
    expect([code, stderr.includes('CONTROLPLANE_OPERATOR_TOKEN'), stderr.includes(made.token)]).toEqual([3, true, false])
    const key = await out(['key', 'new', 'doubt'])
    expect((await as(key)).code).toBe(3)
  })
})

describe('budget and schedules', () => {
  test('other roles keep their limits when one is set', async () => {
    await out(['budget', 'set', '--daily', '100k', '--role', 'one=1k', '--role', 'two=2k'])
    expect((await json(['budget', 'set', '--role', 'one=none', '--role', 'three=3M'])).allocation).toEqual({ two: 2000, three: 3_000_000 })
    expect((await json(['budget', 'set', '--daily', 'none'])).daily_tokens).toBe(null)
  })

  test('a schedule is added, disabled by its name, enabled and removed', async () => {
    expect(await json(['schedule', 'add', 'beat', 'Check', 'it', '--every', '30m', '--role', 'r'])).toMatchObject({
      every: '30m',
      task: { title: 'Check it' },
    })
    expect(await json(['schedule', 'disable', 'beat'])).toMatchObject({ enabled: false, next_at: null })
    expect(await out(['schedule', 'enable', 'beat'])).toContain('next ')
    expect(await out(['schedule'])).toContain('every 30m')
    await out(['schedule', 'remove', 'beat'])
    expect(await json(['schedule'])).toEqual([])
  })
})

describe('runs', () => {
  test('the log is followed to the end of the run, byte for byte; artifacts are saved with their digests checked', async () => {
    const key = await out(['agent', 'add', 'logs', '--key'])
    const id = await out(['task', 'add', 'Talk', '--role', 'logs'])
    const { run_id: runId, run_token: token } = await claim('logs', key)
    const write = (at: number, piece: string) => ask(`runs/${runId}/log`, token, { at, piece })
    await write(0, 'one ä\n')
    const following = state.control.start(['run', 'log', runId, '-f'])
    await following.prints('one')
    await write(7, 'two\u001b[2J\n')
    const bytes = Buffer.from('result')
    await fetch(`${state.control.url}/api/controlplane/runs/${runId}/artifacts/out.txt`, {
      method: 'PUT',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ digest: new Bun.CryptoHasher('sha256').update(bytes).digest('hex'), body: bytes.toString('base64') }),
    })
    await ask(`tasks/${id}/release`, token, { outcome: 'failed', error: 'enough' })
    expect(await following.result).toEqual({ code: 0, stdout: 'one ä\ntwo\u001b[2J\n', stderr: '' })
    const folder = join(state.control.at.dir, 'saved')
    await out(['run', 'artifacts', runId, '--to', folder])
    expect(readFileSync(join(folder, 'out.txt'), 'utf8')).toBe('result')
    writeFileSync(join(folder, 'out.txt'), 'mine')
    const again = await run(['run', 'artifacts', runId, '--to', folder])
    expect([again.code, readFileSync(join(folder, 'out.txt'), 'utf8')]).toEqual([1, 'mine'])
    const unsigned = await run(['verify', runId])
    expect([unsigned.code, unsigned.stdout]).toEqual([9, `invalid: ${runId} has no manifest: its worker delivered none\n`])
  })
})

describe('what goes on', () => {
  test('events are followed from an id without a gap, and Ctrl-C ends it with 130', async () => {
    const from = JSON.parse((await out(['events', '--json', '-n', '1'])).split('\n').at(-1) ?? '{}').id
    const following = state.control.start(['events', '-f', '--json', '--after', String(from)])
    const ids = [await out(['task', 'add', 'a', '--role', 'e']), await out(['task', 'add', 'b', '--role', 'e'])]
    for (const id of ids) await following.prints(id)
    process.kill(following.pid, 'SIGINT')
    const { code, stdout } = await following.result
    const seen = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect([code, seen.map(({ task_id }) => task_id)]).toEqual([130, ids])
    expect(seen.every(({ id }) => id > from)).toBe(true)
  })

  test('the status watches: it is printed again after something happened', async () => {
    const watching = state.control.start(['status', '--watch', '--json'])
    await watching.prints('\n')
    const id = await out(['task', 'add', 'Seen', '--role', 'watched'])
    await watching.prints(/"watched":\{[^}]*"(pending)":1/)
    process.kill(watching.pid, 'SIGINT')
    const { code, stdout } = await watching.result
    const lines = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect([code, lines.length >= 2, lines[0].queue.watched, lines.at(-1).queue.watched?.pending]).toEqual([130, true, undefined, 1])
    await out(['task', 'cancel', id])
  })

  test('the export has every kind, one JSON object a line, and no secret', async () => {
    const text = await out(['export'])
    const kinds = new Set(text.split('\n').map((line) => JSON.parse(line).kind))
    expect([...kinds].sort()).toEqual(['agent', 'budget', 'event', 'run', 'task'])
    expect(text).not.toContain(state.control.token)
    expect(text).not.toMatch(/cp[aor]_[\w-]{43}/)
    expect(existsSync(join(state.control.at.home, '.braidclaw/config.toml'))).toBe(false)
  })
})
