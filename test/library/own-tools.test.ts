/** Tools of the calling program, in process: each call passes the gate and leaves a receipt. */

import { describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { z } from 'zod'
import { createAgent, type ModelCall, type OwnTool, replay } from '../../src/agent.ts'
import { needs } from '../support/needs.ts'

function folders() {
  const dir = mkdtempSync(join(tmpdir(), 'braidclaw-own-tools-'))
  const cwd = join(dir, 'workspace')
  mkdirSync(cwd)
  return { cwd, home: join(dir, 'home'), env: { HOME: dir }, [Symbol.dispose]: () => rmSync(dir, { recursive: true, force: true }) }
}

const calls = (name: string, input = {}): ModelCall =>
  async function* (messages) {
    const last = messages.at(-1)
    if (last?.role === 'tool') yield { type: 'text', content: last.content }
    else yield { type: 'tool_use', name, input }
  }

const weather = (more: Partial<OwnTool> = {}): OwnTool => ({
  name: 'weather',
  description: 'Tells the weather of a city',
  parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  execute: ({ city }) => ({ sky: 'grey', city: city ?? null }),
  ...more,
})

async function turn(
  at: ReturnType<typeof folders>,
  tool: OwnTool,
  { input = { city: 'Oslo' }, allow = true }: { input?: object; allow?: boolean } = {},
) {
  const agent = createAgent({ ...at, tools: [tool], modelCall: calls(tool.name, input) })
  const seen = { gates: 0, result: '', status: '' }
  for await (const event of agent.run('go')) {
    if (event.type === 'approval_gate') {
      seen.gates += 1
      await agent.approve(event.gateId, { allow })
    }
    if (event.type === 'tool_result') Object.assign(seen, { status: event.status, result: String(event.output) })
  }
  const code = agent.ending()?.code
  await agent.close()
  return { ...seen, code }
}

describe('the gate', () => {
  test('a no keeps the tool from running', async () => {
    using at = folders()
    let ran = 0
    const found = await turn(at, weather({ execute: () => String(++ran) }), { allow: false })
    expect(found).toMatchObject({ gates: 1, status: 'failed', code: 'denied' })
    expect(ran).toBe(0)
  })

  test('input that does not fit the schema never reaches the tool', async () => {
    using at = folders()
    let ran = 0
    const found = await turn(at, weather({ risk: 'low', execute: () => String(++ran) }), { input: { town: 'Oslo' } })
    expect(found.status).toBe('failed')
    expect(ran).toBe(0)
  })

  test('a medium risk, which is the default, asks; the receipt names the tool', async () => {
    using at = folders()
    expect(await turn(at, weather())).toMatchObject({
      gates: 1,
      status: 'completed',
      result: '{"sky":"grey","city":"Oslo"}',
      code: 'answered',
    })
    const receipts = readFileSync(join(at.home, 'tool_receipts.log'), 'utf8')
    expect(receipts).toContain('"weather"')
  })

  test('a low risk runs unasked; a text is the result as it is', async () => {
    using at = folders()
    expect(await turn(at, weather({ risk: 'low', execute: () => 'rain' }))).toMatchObject({ gates: 0, result: 'rain', code: 'answered' })
  })
})

describe('a zod schema', () => {
  const parameters = z.object({ city: z.string().min(2), days: z.number().int().default(3) })

  test('is what the model sees and what the tool gets, with its defaults', async () => {
    using at = folders()
    const tool = weather({ risk: 'low', parameters, execute: (input) => input })
    expect(await turn(at, tool)).toMatchObject({ result: '{"city":"Oslo","days":3}' })
  })

  test('refuses by what JSON Schema cannot say', async () => {
    using at = folders()
    const even = z.object({ city: z.string().refine((text) => text.length % 2 === 0, 'an even city') })
    expect(await turn(at, weather({ risk: 'low', parameters: even }), { input: { city: 'odd' } })).toMatchObject({
      status: 'failed',
      result: expect.stringContaining('an even city'),
    })
  })

  test('that is not of an object is refused at once', () => {
    expect(() => createAgent({ tools: [weather({ parameters: z.string() })] })).toThrow('schema of an object')
  })
})

test('an error of the tool is a failed result; a result is cut as others are', async () => {
  using at = folders()
  const broken = weather({ risk: 'low', execute: () => Promise.reject(new Error('no sky')) })
  expect(await turn(at, broken)).toMatchObject({ status: 'failed', result: expect.stringContaining('no sky') })
  const long = await turn(at, weather({ risk: 'low', execute: () => 'x'.repeat(3_000_000) }))
  expect(long.result.length).toBeLessThan(100_000)
  expect(long.result).toContain('bytes omitted')
})

test('cancel aborts the signal of a running tool', async () => {
  using at = folders()
  const state = { aborted: false }
  const started = Promise.withResolvers<void>()
  const execute: OwnTool['execute'] = (_, { signal, cwd }) => {
    expect(cwd).toBe(at.cwd)
    started.resolve()
    return new Promise((resolve) => signal.addEventListener('abort', () => resolve(String(Object.assign(state, { aborted: true })))))
  }
  const agent = createAgent({ ...at, tools: [weather({ risk: 'low', execute })], modelCall: calls('weather', { city: 'Oslo' }) })
  void started.promise.then(() => agent.cancel())
  for await (const _ of agent.run('go'));
  expect(agent.ending()?.code).toBe('cancelled')
  expect(state.aborted).toBe(true)
  await agent.close()
})

test('a built-in name is refused, and so is a name twice', async () => {
  using at = folders()
  for (const [tools, why] of [
    [[weather({ name: 'shell' })], 'a built-in tool has that name'],
    [[weather(), weather()], 'two tools have that name'],
    [[weather({ name: 'wea ther' })], 'a name is a letter'],
  ] as const) {
    const agent = createAgent({ ...at, tools, modelCall: calls('weather') })
    await expect(agent.run('go').next()).rejects.toThrow(why)
    await agent.close()
  }
})

test('a rule in JSON among the threads refuses calls, and the run replays with it', async () => {
  using at = folders()
  const rule = { name: 'no-weather', on: { type: 'propose', tool: 'weather' }, reason: 'look out of the window' }
  const agent = createAgent({ ...at, tools: [weather({ risk: 'low' })], threads: [rule], modelCall: calls('weather', { city: 'Oslo' }) })
  const results: unknown[] = []
  for await (const event of agent.run('go')) if (event.type === 'tool_result') results.push(event.output)
  expect(results).toEqual([expect.stringContaining('look out of the window')])
  const other = createAgent({ ...at, tools: [weather({ risk: 'low' })], modelCall: calls('weather', { city: 'Oslo' }) })
  for await (const event of other.run('go')) if (event.type === 'tool_result') expect(event.status).toBe('completed')
  const again = await replay({ home: at.home, env: at.env, runId: agent.runId() ?? '' })
  expect(again).toMatchObject({ ok: true, ended: true })
  expect(JSON.stringify(again)).toContain('look out of the window')
  await agent.close()
  await other.close()
})

test.if(needs('bwrap'))('a rule in JSON about changes drops what a command changed', async () => {
  using at = folders()
  const rule = {
    name: 'migrations-stay',
    on: { type: 'propose' },
    changes: { path: { path: 'migrations/**' } },
    reason: 'people write them',
  }
  const command = 'mkdir -p migrations && echo new > migrations/1.sql && echo x > other.txt'
  const agent = createAgent({ ...at, threads: [rule], permissionMode: 'full', modelCall: calls('shell', { command }) })
  const results: unknown[] = []
  for await (const event of agent.run('go')) if (event.type === 'tool_result') results.push(event.output)
  await agent.close()
  expect(results).toEqual([expect.stringContaining('people write them')])
  expect(existsSync(join(at.cwd, 'other.txt'))).toBe(false)
})
