/** `braidclaw stdio` through the real executable: prompts in, AgentEvents out; and the lines after a hello. */

import { describe, expect, test } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { version } from '../../package.json'
import { nest } from '../support/cli.ts'
import { runs } from '../support/daemon.ts'
import { stdioClient } from './client.ts'

const scripted = (at: ReturnType<typeof nest>, responses: readonly object[]) => ({ env: { BRAIDCLAW_MOCK_FIXTURE: at.fixture(responses) } })
const call = (name: string, input: object) => ({ tool_calls: [{ name, arguments: input }] })
const parsed = (stdout: string) =>
  stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))

describe('without a hello', () => {
  test('prints AgentEvents only, one a line, and ends with exit code 0 after stdin', async () => {
    using at = nest()
    at.file('src/a.ts', 'x')
    const script = scripted(at, [call('file_list', { path: 'src' }), { text: 'one file: a.ts' }])
    const { code, stdout } = await at.run(['stdio'], { ...script, stdin: '{"prompt":"List files in src/"}\n' })
    const events = parsed(stdout)
    expect(events.map(({ type }) => type)).toEqual(['init', 'tool_use', 'tool_result', 'text', 'text', 'done'])
    expect(events.at(-1)).toEqual({ type: 'done', stopReason: 'end_turn', result: 'one file: a.ts' })
    expect(code).toBe(0)
  })

  test('several lines are several turns of one conversation; the last line needs no newline', async () => {
    using at = nest()
    const { code, stdout } = await at.run(['stdio'], {
      ...scripted(at, [{ text: 'one' }, { text: 'two' }]),
      stdin: '{"prompt":"a"}\n\n{"prompt":"b"}',
    })
    expect(parsed(stdout).flatMap(({ result }) => result ?? [])).toEqual(['one', 'two'])
    expect(code).toBe(0)
    const list = await at.run(['run', 'list', '--json'])
    const conversations = new Set([...list.stdout.matchAll(/"conversation(?:Id|_id)?":\s*"([^"]+)"/g)].map(([, id]) => id))
    expect(conversations.size).toBe(1)
  })

  test('a question that nobody can answer is refused: exit code 4, and the file is not there', async () => {
    using at = nest()
    const script = scripted(at, [call('file_write', { path: 'new.txt', content: 'x' }), { text: 'refused' }])
    const { code, stdout } = await at.run(['stdio'], { ...script, stdin: '{"prompt":"write"}\n' })
    expect(parsed(stdout).map(({ type }) => type)).toContain('approval_gate')
    expect(code).toBe(4)
    expect(existsSync(join(at.workspace, 'new.txt'))).toBe(false)
  })

  test('a model that fails: its exit code is the one of the house', async () => {
    using at = nest()
    const { code } = await at.run(['stdio'], { ...scripted(at, [{ error: 'auth' }]), stdin: '{"prompt":"x"}\n' })
    expect(code).toBe(8)
  })

  test('nothing on stdin is nothing to do', async () => {
    using at = nest()
    expect(await at.run(['stdio'], { stdin: '' })).toMatchObject({ code: 0, stdout: '' })
  })
})

describe('after a hello', () => {
  test('the peer says its protocol, its version and what it can do', async () => {
    using at = nest()
    await using client = stdioClient(at)
    client.send({ hello: { protocol: 1 } })
    expect(await client.next()).toMatchObject({
      hello: { protocol: 1, version, capabilities: expect.arrayContaining(['approve', 'credits']) },
    })
    client.send({ close: true })
    expect(await client.exit()).toBe(0)
  })

  test.each([
    ['an older', 0, 'this client'],
    ['a newer', 2, 'braidclaw'],
  ])('%s protocol is refused in one line that names both', async (_, protocol, newer) => {
    using at = nest()
    await using client = stdioClient(at)
    client.send({ hello: { protocol, unheard: ['of'] } })
    const { error } = await client.next()
    expect(error.message).toContain(`speaks protocol ${protocol}`)
    expect(error.message).toContain('speaks protocol 1')
    expect(error.message).toContain(`a newer version of ${newer}`)
    expect(await client.exit()).toBe(2)
  })

  test('a denial keeps the file away; a yes writes it, and `changes` shows it before', async () => {
    using at = nest()
    const write = call('file_write', { path: 'new.txt', content: 'hello\n' })
    await using client = stdioClient(at, scripted(at, [write, { text: 'no' }, write, { text: 'yes' }]).env)
    client.send({ hello: { protocol: 1 } })
    client.send({ id: 'p1', prompt: 'write' })
    const gate = await client.event('approval_gate')
    expect(gate).toMatchObject({ id: 'p1', proposal: { call: { name: 'file_write' }, judgement: { verdict: 'ask' } } })
    client.send({ id: 'a1', approve: { gateId: gate.event.gateId, allow: false } })
    expect(await client.event('done')).toMatchObject({ ending: { code: 'denied' } })
    expect(existsSync(join(at.workspace, 'new.txt'))).toBe(false)
    client.send({ id: 'late', approve: { gateId: gate.event.gateId, allow: true } })
    expect(await client.answer('late')).toMatchObject({ rejected: 'approval' })

    client.send({ id: 'p2', prompt: 'write again' })
    const second = await client.event('approval_gate')
    client.send({ id: 'c', changes: second.event.gateId })
    expect((await client.answer('c')).changes.patch).toContain('+hello')
    client.send({ id: 'a2', approve: { gateId: second.event.gateId, allow: true } })
    expect(await client.answer('a2')).toEqual({ id: 'a2', rejected: null })
    expect(await client.event('done')).toMatchObject({ id: 'p2', ending: { code: 'answered' } })
    expect(readFileSync(join(at.workspace, 'new.txt'), 'utf8')).toBe('hello\n')
  })

  test('a second prompt while one runs is busy; cancel ends only the turn that it names', async () => {
    using at = nest()
    await using client = stdioClient(at, scripted(at, [call('file_write', { path: 'a', content: 'x' }), { text: 'never' }]).env)
    client.send({ hello: { protocol: 1 } })
    client.send({ id: 'p1', prompt: 'write' })
    await client.event('approval_gate')
    client.send({ id: 'p2', prompt: 'now' })
    expect(await client.event('error')).toMatchObject({ id: 'p2', event: { code: 'busy' } })
    expect(await client.event('done')).toMatchObject({ id: 'p2' })
    client.send({ id: 'p2', cancel: true })
    client.send({ id: 'p1', cancel: true })
    expect(await client.event('done')).toMatchObject({ id: 'p1', event: { stopReason: 'cancelled' } })
  })

  test('an own tool passes the gate: medium asks, and leaves a receipt; its result reaches the model', async () => {
    using at = nest()
    await using client = stdioClient(at)
    const weather = {
      name: 'weather',
      description: 'Tells the weather',
      parameters: { type: 'object', properties: { city: { type: 'string' } } },
    }
    client.send({ hello: { protocol: 1, modelCall: true, tools: [weather] } })
    client.send({ id: 'p', prompt: 'weather?' })
    const first = await client.member('model')
    expect(first.model.tools.map(({ name }: { name: string }) => name)).toContain('weather')
    client.send({ piece: { id: first.model.id, type: 'tool_use', name: 'weather', input: { city: 'Oslo' } } })
    client.send({ piece: { id: first.model.id, type: 'done' } })
    const gate = await client.event('approval_gate')
    client.send({ id: 'a', approve: { gateId: gate.event.gateId, allow: true } })
    const { call: asked } = await client.member('call')
    expect(asked).toMatchObject({ name: 'weather', input: { city: 'Oslo' } })
    client.send({ result: { id: asked.id, output: { sky: 'grey' } } })
    expect(await client.event('tool_result')).toMatchObject({ event: { status: 'completed', output: '{"sky":"grey"}' } })
    const second = await client.member('model')
    expect(JSON.stringify(second.model.messages)).toContain('grey')
    client.send({ piece: { id: second.model.id, type: 'text', content: 'it is grey' } })
    client.send({ piece: { id: second.model.id, type: 'done' } })
    expect(await client.event('done')).toMatchObject({ event: { result: 'it is grey' } })
    client.send({ close: true })
    await client.exit()
    const receipts = await at.run(['receipt', 'list', '--json'])
    expect(receipts.stdout).toContain('"weather"')
  })

  test('a rule in JSON refuses the call of an own tool', async () => {
    using at = nest()
    await using client = stdioClient(at)
    const tool = { name: 'launch', description: 'Launches', parameters: { type: 'object' }, risk: 'low' }
    const rule = { name: 'no-launch', on: { type: 'propose', tool: 'launch' }, reason: 'never launch' }
    client.send({ hello: { protocol: 1, modelCall: true, tools: [tool], threads: [rule] } })
    client.send({ id: 'p', prompt: 'go' })
    const { model } = await client.member('model')
    client.send({ piece: { id: model.id, type: 'tool_use', name: 'launch', input: {} } })
    client.send({ piece: { id: model.id, type: 'done' } })
    expect(await client.event('tool_result')).toMatchObject({
      event: { status: 'failed', output: expect.stringContaining('never launch') },
    })
  })

  test('credits: no more events than granted, and cancel ends a turn that waits for them', async () => {
    using at = nest()
    await using client = stdioClient(at, scripted(at, [{ text: 'a b c d e f g h', chunks: 8 }]).env)
    client.send({ hello: { protocol: 1, credits: 2 } })
    client.send({ id: 'p', prompt: 'x' })
    await client.event('init')
    await client.event('text')
    client.send({ id: 'c', changes: 'none' })
    expect(await client.answer('c')).toEqual({ id: 'c', changes: null })
    expect(client.waiting().filter((line) => line.event)).toEqual([])
    client.send({ credit: 100 })
    expect(await client.event('done')).toMatchObject({ event: { result: 'a b c d e f g h' } })
  })

  test('pieces that are on their way when a turn is cancelled count as nothing', async () => {
    using at = nest()
    await using client = stdioClient(at)
    client.send({ hello: { protocol: 1, modelCall: true } })
    await client.member('hello')
    client.send({ id: 'p', prompt: 'x' })
    const { model } = await client.member('model')
    client.send({ id: 'p', cancel: true })
    for (let sent = 0; sent < 200; sent++) client.send({ piece: { id: model.id, type: 'text', content: 'late' } })
    expect(await client.member('abort')).toEqual({ abort: model.id })
    client.send({ id: 'c', changes: 'none' })
    expect(await client.answer('c')).toEqual({ id: 'c', changes: null })
    expect(client.waiting().filter(({ error }) => error)).toEqual([])
  })

  test('a client that dies: the turn is cancelled and the record is closed', async () => {
    using at = nest()
    const client = stdioClient(at, scripted(at, [call('file_write', { path: 'a', content: 'x' })]).env)
    client.send({ hello: { protocol: 1 } })
    client.send({ id: 'p', prompt: 'write' })
    await client.event('approval_gate')
    client.hangUp()
    expect(await client.exit()).toBe(130)
    expect(runs(client.pid)).toBe(false)
    expect((await at.run(['run', 'list', '--json'])).stdout).toContain('cancelled')
  })
})
