/** What a client may do wrong on the lines of `braidclaw stdio`: each gets a clear line, and what follows still works. */

import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { executable, nest } from '../support/cli.ts'
import { until } from '../support/until.ts'
import { stdioClient } from './client.ts'

const answers = (at: ReturnType<typeof nest>, ...texts: string[]) => ({
  BRAIDCLAW_MOCK_FIXTURE: at.fixture(texts.map((text) => ({ text }))),
})
const parsed = (stdout: string) =>
  stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))

describe('without a hello', () => {
  test.each<[string, string | Uint8Array, string]>([
    ['half a line', '{"prompt":"hal', 'not a JSON object'],
    ['a text', '"hello"\n', 'not a JSON object'],
    ['an unknown member', '{"promt":"x"}\n', 'did you mean "prompt"?'],
    ['two members', '{"prompt":"x","prompts":"y"}\n', '"prompts" is not known'],
    ['a prompt that is no text', '{"prompt":1}\n', '"prompt": Invalid input: expected string, received number'],
    ['a line of the protocol', '{"id":"a","approve":{"gateId":"x","allow":true}}\n', 'begin with a line {"hello"'],
    ['invalid UTF-8', new Uint8Array([...Buffer.from('{"prompt":"'), 0xff, 0xfe, ...Buffer.from('"}\n')]), 'not UTF-8'],
  ])('%s is refused and exit code 2 says so', async (_, stdin, message) => {
    using at = nest()
    const { code, stdout } = await at.run(['stdio'], { env: answers(at, 'never'), stdin })
    const [error, done, ...others] = parsed(stdout)
    expect(error).toMatchObject({ type: 'error', code: 'bad_input', message: expect.stringContaining(message) })
    expect(done).toEqual({ type: 'done', stopReason: 'error' })
    expect(others).toEqual([])
    expect(code).toBe(2)
  })

  test('a line of 50 MB is refused at once, and the next line is answered', async () => {
    using at = nest()
    const stdin = `{"prompt":"${'x'.repeat(50 * 1024 * 1024)}"}\n{"prompt":"after"}\n`
    const { code, stdout } = await at.run(['stdio'], { env: answers(at, 'still here'), stdin })
    const events = parsed(stdout)
    expect(events[0]).toMatchObject({ code: 'bad_input', message: expect.stringContaining('longer than 16777216 bytes') })
    expect(events.at(-1)).toMatchObject({ type: 'done', result: 'still here' })
    expect(code).toBe(2)
  })

  test('U+FFFD itself is text, and arrives', async () => {
    using at = nest()
    const { code } = await at.run(['stdio'], { env: answers(at, 'ok'), stdin: '{"prompt":"\ufffd"}\n' })
    expect(code).toBe(0)
  })

  test('a disk that is full is an error, not a cancelled turn', async () => {
    using at = nest()
    const child = Bun.spawn(['/bin/sh', '-c', 'echo \'{"prompt":"x"}\' | "$0" stdio --quiet >/dev/full', executable], {
      cwd: at.workspace,
      env: { ...at.env, ...answers(at, 'x') },
      stderr: 'pipe',
    })
    expect(await child.stderr.text()).toEndWith('error: stdout cannot be written (ENOSPC); free some space, or send it elsewhere\n')
    expect(await child.exited).toBe(1)
  })

  test('a reader that goes away cancels the turn', async () => {
    using at = nest()
    const env = { BRAIDCLAW_MOCK_FIXTURE: at.fixture([{ text: 'word '.repeat(200_000), chunks: 20_000 }]) }
    const child = Bun.spawn(
      [
        '/bin/bash',
        '-c',
        'set -o pipefail; echo \'{"prompt":"x"}\' | "$0" stdio --quiet | head -n 3 >/dev/null; echo "${PIPESTATUS[1]}"',
        executable,
      ],
      { cwd: at.workspace, env: { ...at.env, ...env }, stdout: 'pipe' },
    )
    expect((await child.stdout.text()).trim()).toBe('130')
    expect((await at.run(['run', 'list', '--json'])).stdout).toContain('cancelled')
  })
})

describe('after a hello', () => {
  test('each wrong line is answered with the id that it had, and the session goes on', async () => {
    using at = nest()
    await using client = stdioClient(at, answers(at, 'fine'))
    client.send({ hello: { protocol: 1 } })
    await client.member('hello')
    const wrong: [object | string, object][] = [
      ['{"id":"1","prompt', { error: { code: 'bad_input' } }],
      [
        { id: '2', aprove: {} },
        { id: '2', error: { message: expect.stringContaining('did you mean "approve"?') } },
      ],
      [
        { id: '3', approve: { gateId: 'x', alow: true } },
        { id: '3', error: { message: expect.stringContaining('did you mean "allow"?') } },
      ],
      [
        { id: '4', approve: { gateId: 'x' } },
        { id: '4', error: { message: expect.stringContaining('allow') } },
      ],
      [{ prompt: 'x' }, { error: { message: expect.stringContaining('has no "id"') } }],
      [
        { id: '5', mode: { newMode: 'god' } },
        { id: '5', error: { message: expect.stringContaining('"structured"|"wiggum"') } },
      ],
      [
        { id: 'm', mode: { newMode: 'wiggum', maxIter: 2 } },
        { id: 'm', rejected: expect.stringContaining('modes: wiggum mode needs checks') },
      ],
      [
        { id: 'm', mode: { newMode: 'structured', maxIterations: -2 } },
        { id: 'm', rejected: 'modes: maxIterations is -2; give a whole number from 1' },
      ],
      [{ credit: -1 }, { error: { message: expect.stringContaining('"credit": Too small') } }],
      [
        { id: '6', hello: { protocol: 1 } },
        { id: '6', error: { message: expect.stringContaining('comes once') } },
      ],
      [{ id: 7, prompt: 'x' }, { error: { message: expect.stringContaining('"id": Invalid input: expected string') } }],
      [
        { id: '8', prompt: 'x', cancel: true },
        { id: '8', error: { message: expect.stringContaining('the line has prompt, cancel') } },
      ],
      [{ piece: { id: 'model-1', type: 'song' } }, { error: { message: expect.stringContaining('"piece.type": Invalid') } }],
      [{ result: { id: 'call-1', output: 1 } }, { error: { code: 'unknown_call', message: expect.stringContaining('"call-1"') } }],
      [{ piece: { id: 'model-9', type: 'done' } }, { error: { code: 'unknown_call' } }],
    ]
    for (const [line, answer] of wrong) {
      client.send(line)
      expect(await client.next()).toMatchObject(answer)
    }
    client.send({ id: 'p', prompt: 'still there?' })
    expect(await client.event('done')).toMatchObject({ event: { result: 'fine' } })
  })

  test.each<[string, object, string]>([
    ['a tool with a built-in name', { tools: [{ name: 'shell', description: 'x', parameters: { type: 'object' } }] }, 'built-in tool'],
    ['a tool without a schema', { tools: [{ name: 'a', description: 'x' }] }, 'parameters'],
    [
      'a tool with an unknown risk',
      { tools: [{ name: 'a', description: 'x', parameters: { type: 'object' }, risk: 'none' }] },
      '"low"|"medium"|"high"',
    ],
    ['two tools of one name', { tools: [1, 2].map(() => ({ name: 'a', description: 'x', parameters: { type: 'object' } })) }, 'two tools'],
    ['a thread that is no rule', { threads: [{ name: 'x' }] }, 'threads.0.on'],
    ['a rule with a mistake', { threads: [{ name: 'x', on: { type: 'act' } }] }, 'must be "propose"'],
    ['an unknown member', { tool: [] }, 'did you mean "tools"?'],
  ])('%s is refused by name', async (_, parts, message) => {
    using at = nest()
    await using client = stdioClient(at, answers(at, 'x'))
    client.send({ hello: { protocol: 1, ...parts } })
    client.send({ id: 'p', prompt: 'x' })
    const found: string[] = []
    for (let tries = 0; tries < 4 && !found.join(' ').includes(message); tries++)
      found.push(JSON.stringify(await client.next()).replaceAll('\\"', '"'))
    expect(found.join(' ')).toContain(message)
  })

  test('an answer that comes twice counts once', async () => {
    using at = nest()
    await using client = stdioClient(at)
    const tool = { name: 'note', description: 'Notes', parameters: { type: 'object' }, risk: 'low' }
    client.send({ hello: { protocol: 1, modelCall: true, tools: [tool] } })
    client.send({ id: 'p', prompt: 'x' })
    const { model } = await client.member('model')
    client.send({ piece: { id: model.id, type: 'tool_use', name: 'note', input: {} } })
    client.send({ piece: { id: model.id, type: 'done' } })
    const { call } = await client.member('call')
    client.send({ result: { id: call.id, output: 'first' } })
    client.send({ result: { id: call.id, output: 'second' } })
    expect(await client.member('error')).toMatchObject({ error: { code: 'unknown_call' } })
    expect(await client.event('tool_result')).toMatchObject({ event: { output: 'first' } })
    client.send({ piece: { id: model.id, type: 'text', content: 'again' } })
    expect(await client.member('error')).toMatchObject({ error: { code: 'unknown_call' } })
  })

  test('a model that fails ends the turn with an error; nonsense is refused, and the model may go on', async () => {
    using at = nest()
    await using client = stdioClient(at)
    client.send({ hello: { protocol: 1, modelCall: true } })
    client.send({ id: 'p', prompt: 'x' })
    const { model } = await client.member('model')
    for (const piece of [{ type: 'song' }, { type: 'tool_use' }, { type: 'text' }]) {
      client.send({ piece: { id: model.id, ...piece } })
      expect(await client.member('error')).toMatchObject({ error: { code: 'bad_input' } })
    }
    client.send({ piece: { id: model.id, type: 'text', content: 'well' } })
    client.send({ piece: { id: model.id, type: 'error', content: 'no power' } })
    expect(await client.event('error')).toMatchObject({ event: { message: expect.stringContaining('no power') } })
    expect(await client.event('done')).toMatchObject({ id: 'p', event: { stopReason: 'error' } })
  })

  test('a model that never stops is stopped at 16 MiB, though nobody reads what it says', async () => {
    using at = nest()
    await using client = stdioClient(at)
    client.send({ hello: { protocol: 1, modelCall: true, credits: 1 } })
    client.send({ id: 'p', prompt: 'x' })
    const { model } = await client.member('model')
    for (let sent = 0; sent < 5; sent++) client.send({ piece: { id: model.id, type: 'text', content: 'x'.repeat(4 * 1024 * 1024) } })
    client.send({ credit: 100 })
    expect(await client.event('error')).toMatchObject({ event: { message: expect.stringContaining('more than 16777216 characters') } })
    expect(await client.event('done')).toMatchObject({ event: { stopReason: 'error' } })
  })

  test('a client that grants no credits: the memory stays bounded, and the turn ends when it hangs up', async () => {
    using at = nest()
    const text = 'word '.repeat(400_000)
    const env = { BRAIDCLAW_MOCK_FIXTURE: at.fixture([{ text, chunks: 100_000 }]) }
    await using client = stdioClient(at, env)
    client.send({ hello: { protocol: 1, credits: 1 } })
    await client.member('hello')
    client.send({ id: 'p', prompt: 'x' })
    await client.event('init')
    const resident = () => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${client.pid}/status`, 'utf8'))?.[1])
    const before = resident()
    for (let request = 0; request < 50; request++) {
      client.send({ id: `c${request}`, changes: 'none' })
      await client.answer(`c${request}`)
    }
    expect(client.waiting()).toEqual([])
    expect(resident() - before).toBeLessThan(40_000)
    client.hangUp()
    expect(await client.exit()).toBe(130)
  })

  test('a client that never reads its pipe: the memory stays bounded, and the turn ends when it hangs up', async () => {
    using at = nest()
    const env = { BRAIDCLAW_MOCK_FIXTURE: at.fixture([{ text: 'word '.repeat(400_000), chunks: 100_000 }]) }
    const child = Bun.spawn([executable, 'stdio', '--quiet'], {
      cwd: at.workspace,
      env: { ...at.env, ...env },
      stdin: 'pipe',
      stdout: 'pipe',
    })
    const written = () => Number(/^wchar: (\d+)/m.exec(readFileSync(`/proc/${child.pid}/io`, 'utf8'))?.[1])
    child.stdin.write('{"prompt":"x"}\n')
    child.stdin.flush()
    await until(() => written() > 300_000)
    const status = readFileSync(`/proc/${child.pid}/status`, 'utf8')
    expect(Number(/VmHWM:\s+(\d+)/.exec(status)?.[1])).toBeLessThan(250_000)
    child.kill('SIGTERM')
    await child.exited
    expect((await at.run(['run', 'list', '--json'])).stdout).toMatch(/cancelled|interrupted/)
  })

  test('a client that asks and asks without waiting is told so and let go', async () => {
    using at = nest()
    await using client = stdioClient(at, answers(at, 'x'))
    client.send({ hello: { protocol: 1, credits: 0 } })
    for (let n = 0; n < 80; n++) client.send({ id: `p${n}`, prompt: 'x' })
    expect(await client.member('error')).toMatchObject({ error: { code: 'too_many' } })
    expect(await client.exit()).toBe(2)
  })
})
