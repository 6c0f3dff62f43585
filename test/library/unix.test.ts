/** `braidclaw/unix` as a program would use it. */

import { describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { exports as entries } from '../../package.json'
import { composeSystem, llmCall, session, tools } from '../../src/unix.ts'

function place() {
  const dir = mkdtempSync(join(tmpdir(), 'braidclaw-unix-'))
  const workspace = join(dir, 'workspace')
  const folder = join(dir, '.braidclaw/agents/default')
  mkdirSync(workspace)
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(workspace, 'hello.txt'), 'hello from a file')
  const fixture = (responses: readonly object[]) => {
    writeFileSync(join(dir, 'fixture.json'), JSON.stringify({ responses }))
    return { workspace, env: { HOME: dir, BRAIDCLAW_MOCK_FIXTURE: join(dir, 'fixture.json') } }
  }
  const stub = { workspace, env: { HOME: dir, BRAIDCLAW_LLM_BACKEND: 'stub' } }
  return { folder, stub, fixture, [Symbol.dispose]: () => rmSync(dir, { recursive: true, force: true }) }
}

test('the package offers it', () => {
  expect(entries['./unix']).toBe('./src/unix.ts')
})

describe('llmCall', () => {
  test('what would end a command is a value: an agent that is not there, a model that fails, tools that are not there', async () => {
    using at = place()
    expect(await llmCall('x', { ...at.stub, agent: 'ghost' })).toMatchObject({ ok: false, code: 'usage', text: '' })
    expect(await llmCall('x', at.fixture([{ error: 'auth' }]))).toMatchObject({ ok: false, code: 'provider' })
    expect(await llmCall(' \n', at.stub)).toMatchObject({ ok: false, code: 'usage', message: expect.stringContaining('empty'), text: '' })
    expect(await llmCall('x', { ...at.stub, tools: 'nowhere' })).toMatchObject({ ok: false, code: 'usage' })
    expect(await llmCall('x', { ...at.stub, env: { ...at.stub.env, BRAIDCLAW_AUTONOMY: 'god' } })).toMatchObject({
      ok: false,
      code: 'error',
    })
  })

  test('a call that needs a yes is refused: nobody is asked', async () => {
    using at = place()
    const writes = [{ tool_calls: [{ name: 'file_write', arguments: { path: 'new.txt', content: 'x' } }] }, { text: 'Not done.' }]
    const answer = await llmCall('write', { ...at.fixture(writes), tools: 'default' })
    expect(answer).toMatchObject({ ok: false, text: 'Not done.' })
    expect(existsSync(join(at.stub.workspace, 'new.txt'))).toBe(false)
  })

  test('cancelled by its signal', async () => {
    using at = place()
    const options = { ...at.fixture([{ text: 'late', delay_ms: 5000 }]), signal: AbortSignal.timeout(50) }
    expect(await llmCall('wait', options)).toMatchObject({ ok: false, code: 'cancelled' })
  })

  test('one answer, streamed as well, mirrored, and gone on with', async () => {
    using at = place()
    const pieces: string[] = []
    const first = await llmCall('Hello', { ...at.fixture([{ text: 'One answer.', chunks: 3 }]), onText: (piece) => pieces.push(piece) })
    expect(first).toMatchObject({ ok: true, text: 'One answer.' })
    expect([pieces.length > 1, pieces.join('')]).toEqual([true, 'One answer.'])
    const next = await llmCall('And?', { ...at.fixture([{ text: 'Two.' }]), continue: true })
    expect(next.ok && first.ok && next.conversationId === first.conversationId).toBe(true)
    const { entries: said } = session.load(join(at.folder, 'sessions/current.jsonl'))
    expect(said.map(({ content }) => content)).toEqual(['Hello', 'One answer.', 'And?', 'Two.'])
  })
})

test('composeSystem is cat soul.md, and says when there is no agent', async () => {
  using at = place()
  expect(composeSystem(join(at.folder, 'none'))).rejects.toThrow('name that of an agent')
  writeFileSync(join(at.folder, 'soul.md'), 'You are brief.\n')
  expect(await composeSystem(at.folder)).toBe('You are brief.\n')
})

test('a session of one’s own, anywhere', () => {
  using at = place()
  const file = join(at.folder, 'mine', 'talk.jsonl')
  expect([session.count(file), session.clear(file)]).toEqual([0, undefined])
  session.append(file, 'user', 'Hello')
  session.append(file, 'assistant', 'Hi')
  expect([session.count(file), session.load(file, 1).entries[0]?.content]).toEqual([2, 'Hi'])
  expect(session.load(session.clear(file) ?? '').entries).toHaveLength(2)
  expect(session.count(file)).toBe(0)
})

describe('tools', () => {
  test('what the gate refuses, or would have to ask about, is not run', async () => {
    using at = place()
    expect(await tools.run('file_read', { path: '/etc/passwd' }, at.stub)).toMatchObject({ ok: false, code: 'denied' })
    expect(await tools.run('file_write', { path: 'new.txt', content: 'x' }, at.stub)).toMatchObject({ ok: false, code: 'approval_needed' })
    expect(await tools.run('fiel_read', {}, at.stub)).toMatchObject({ ok: false, code: 'denied' })
    expect(existsSync(join(at.stub.workspace, 'new.txt'))).toBe(false)
  })

  test('listed, and run with a receipt', async () => {
    using at = place()
    expect((await tools.list(at.stub)).map(({ name }) => name)).toContain('file_read')
    const read = await tools.run('file_read', { path: 'hello.txt' }, at.stub)
    expect(read).toMatchObject({ ok: true, output: expect.stringContaining('hello from a file') })
    expect(existsSync(join(at.folder, '../../tool_receipts.log'))).toBe(true)
  })
})
