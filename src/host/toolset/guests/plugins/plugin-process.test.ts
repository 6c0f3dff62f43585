/** Tests the process of a plugin as a real child: what it may say, and that one that lies, hangs, floods or dies harms nobody. */

import { afterAll, expect, test } from 'bun:test'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { JsonObject } from '../../../../kit/json.ts'
import { gone } from '../../../../tools/fixture.ts'
import { cleanEnvironment, spawnPlain } from '../../../../tools/process.ts'
import type { PluginManifest } from './manifest.ts'
import { createPluginProcess } from './plugin-process.ts'

const root = mkdtempSync(join(tmpdir(), 'braidclaw-plugin-process-'))
afterAll(() => rmSync(root, { recursive: true, force: true }))

const manifest: PluginManifest = {
  name: 'p',
  version: '1',
  description: '',
  capabilities: ['tool'],
  tools: [{ spec: { name: 'echo', description: 'd', parameters: { type: 'object' } } }],
  hooks: [],
  tests: [],
  process: 'serve',
  permissions: { files: 'none', hosts: [], variables: [] },
}

/** Answers by `on`, which has `send`, `answer(id, result)` and the message; every other method by the protocol. */
const server = (on: string) => `
const send = (message) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\\n')
const answer = (id, result) => send({ id, result })
const cancelled = new Set()
let rest = ''
process.stdin.on('data', (chunk) => {
  const lines = (rest + chunk).split('\\n')
  rest = lines.pop()
  for (const line of lines) {
    const { id, method, params } = JSON.parse(line)
    if (method === 'cancel') cancelled.add(params.id)
    ${on}
    if (method === 'hello') answer(id, { protocol: 1, name: 'p' })
    if (method === 'health') answer(id, {})
    if (method === 'call' && params.arguments.do === undefined) answer(id, params.arguments)
  }
})`

function stage(on = '', more: Partial<Parameters<typeof createPluginProcess>[0]> = {}) {
  const file = join(root, `${crypto.randomUUID()}.js`)
  writeFileSync(file, server(on))
  const closed = new AbortController()
  const clock = { now: 0 }
  const process_ = createPluginProcess({
    manifest,
    spawn: spawnPlain,
    plan: { argv: [process.execPath, '--config=/dev/null', '--no-env-file', file], cwd: root, env: cleanEnvironment({ home: root }) },
    maxOutputBytes: 100_000,
    closed: closed.signal,
    now: () => clock.now,
    ...more,
  })
  const call = (input: JsonObject = {}, signal = new AbortController().signal) => process_.call('echo', input, signal)
  return { call, clock, [Symbol.dispose]: () => closed.abort() }
}

const errorOf = async (result: ReturnType<ReturnType<typeof stage>['call']>) => (await result).error ?? 'none'

test('one process answers one call after the other, each with its own', async () => {
  const log = join(root, 'starts')
  using at = stage(`if (method === 'hello') require('node:fs').appendFileSync(${JSON.stringify(log)}, '.')`)
  const results = await Promise.all(Array.from({ length: 20 }, (_, n) => at.call({ n })))
  expect(results.map(({ output }) => output)).toEqual(Array.from({ length: 20 }, (_, n) => `{"n":${n}}`))
  expect(readFileSync(log, 'utf8')).toBe('.')
})

test('output in pieces comes before the result, and stays when the call fails', async () => {
  using at = stage(`if (params.arguments?.do) {
    for (const text of ['a', 'b']) send({ method: 'output', params: { id, text } })
    if (params.arguments.do === 'end') answer(id, 'c'); else process.exit(3)
  }`)
  expect(await at.call({ do: 'end' })).toMatchObject({ success: true, output: 'abc' })
  expect(await at.call({ do: 'die' })).toMatchObject({ success: false, output: 'ab', error: 'its process ended with exit code 3' })
})

test.each([
  ['another protocol', `if (method === 'hello') { answer(id, { protocol: 2 }); continue }`, 'it speaks protocol 2, not 1'],
  [
    'a schema that was not approved',
    `if (method === 'hello') { answer(id, { protocol: 1, tools: [{ name: 'echo', schema: { type: 'object', properties: {} } }] }); continue }`,
    'it describes other tools than its manifest',
  ],
  [
    'more tools than were approved',
    `if (method === 'hello') { answer(id, { protocol: 1, tools: [{ name: 'echo', schema: { type: 'object' } }, { name: 'shell', schema: { type: 'object' } }] }); continue }`,
    'it describes other tools than its manifest',
  ],
  ['what is not JSON', `process.stdout.write('\\u001b[2Jhi\\n')`, 'it printed what is not JSON-RPC: "\\u001b[2Jhi"'],
  ['JSON that is not JSON-RPC', `process.stdout.write('{"id":1}\\n')`, 'it printed what is not JSON-RPC'],
  [
    'an error in place of a greeting',
    `if (method === 'hello') { send({ id, error: { code: 1, message: 'no' } }); continue }`,
    'gave no proper greeting',
  ],
])('a greeting of %s ends it', async (_what, on, says) => {
  using at = stage(on)
  expect(await errorOf(at.call())).toContain(says)
})

test('an answer to another call, or output of one, ends the process, and the open call does not take it', async () => {
  for (const wrong of [
    'answer(id + 1, "stolen")',
    'answer(1, "stolen")',
    'answer("x", "stolen")',
    'send({ method: "output", params: { id: 99, text: "stolen" } })',
  ]) {
    using at = stage(`if (params.arguments?.do) { ${wrong}; answer(id, 'late') }`)
    const result = await at.call({ do: 'x' })
    expect(result).toMatchObject({ success: false, error: expect.stringContaining('which is not open'), output: '' })
    expect(await at.call({ n: 1 })).toMatchObject({ success: true, output: '{"n":1}' })
  }
})

test('an unasked answer between two calls is taken for no call', async () => {
  using at = stage(`if (params.arguments?.n === 1) setTimeout(() => answer(id + 1, 'early'), 0)`)
  expect((await at.call({ n: 1 })).success).toBe(true)
  const next = await at.call({ n: 2 })
  expect(next.output).not.toContain('early')
})

test('a flood of 100 MB, in lines or in one, is stopped, and the next call works', async () => {
  for (const flood of [
    "send({ method: 'output', params: { id, text: 'x'.repeat(1e6) } })",
    "process.stdout.write('x'.repeat(1e6))",
    "process.stderr.write('x'.repeat(1e6))",
  ]) {
    using at = stage(`if (params.arguments?.do) for (let n = 0; n < 100; n++) ${flood}`)
    const before = process.memoryUsage.rss()
    const { error, output } = await at.call({ do: 'flood' }, AbortSignal.timeout(20_000))
    expect(error).toMatch(/printed more than 67108864 bytes|line longer than 8388608 bytes/)
    expect(output.length).toBeLessThan(110_000)
    expect(process.memoryUsage.rss() - before).toBeLessThan(300e6)
    expect((await at.call()).success).toBe(true)
  }
})

test('one that hangs is cancelled, and ended when it does not listen; what it started ends with it', async () => {
  const pid = join(root, 'pid')
  using at =
    stage(`if (params.arguments?.do === 'listen') { const wait = setInterval(() => { if (cancelled.has(id)) { clearInterval(wait); answer(id, 'stopped') } }, 5) }
    if (params.arguments?.do === 'hang') { const child = require('node:child_process').spawn('sleep', ['600']); require('node:fs').writeFileSync(${JSON.stringify(pid)}, String(child.pid)); while (true); }`)
  expect(await at.call({ do: 'listen' }, AbortSignal.timeout(100))).toMatchObject({ success: true, output: 'stopped' })
  const hanging = new AbortController()
  const result = at.call({ do: 'hang' }, hanging.signal)
  while (!existsSync(pid)) await Bun.sleep(5)
  hanging.abort()
  expect(await errorOf(result)).toBe('it did not answer "call" in time')
  await gone(Number(readFileSync(pid, 'utf8')))
  expect((await at.call()).success).toBe(true)
})

test('one that keeps dying is started again later and later, and at once after it answered', async () => {
  using at = stage(`if (params.arguments?.do) process.exit(1)`)
  expect(await errorOf(at.call({ do: 'die' }))).toContain('exit code 1')
  expect(await errorOf(at.call({ do: 'die' }))).toContain('exit code 1')
  expect(await errorOf(at.call())).toBe(
    'its process failed 2 times in a row; it is started again in 1 s: its process ended with exit code 1',
  )
  at.clock.now += 1_000
  expect(await errorOf(at.call({ do: 'die' }))).toContain('exit code 1')
  at.clock.now += 1_000
  expect(await errorOf(at.call())).toBe(
    'its process failed 3 times in a row; it is started again in 1 s: its process ended with exit code 1',
  )
  at.clock.now += 1_000
  expect((await at.call()).success).toBe(true)
  expect(await errorOf(at.call({ do: 'die' }))).toContain('exit code 1')
  expect((await at.call()).success).toBe(true)
})

test('one that rested is asked for its health, and replaced when it is not well', async () => {
  const log = join(root, 'health')
  using at = stage(`require('node:fs').appendFileSync(${JSON.stringify(log)}, method[0]); if (method === 'health') process.exit(0)`)
  expect((await at.call()).success).toBe(true)
  at.clock.now += 60_000
  expect((await at.call()).success).toBe(true)
  // hello, call, health; then another process: hello, call.
  expect(readFileSync(log, 'utf8')).toBe('hch' + 'hc')
})

test('when the conversation is closed the process ends, and a later call starts none', async () => {
  const pid = join(root, 'closed')
  const at = stage(`if (method === 'hello') require('node:fs').writeFileSync(${JSON.stringify(pid)}, String(process.pid))`)
  expect((await at.call()).success).toBe(true)
  at[Symbol.dispose]()
  await gone(Number(readFileSync(pid, 'utf8')))
  expect(await errorOf(at.call())).toBe('cancelled before it started')
})
