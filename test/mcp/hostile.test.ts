/** Tests that a server that lies, hangs, floods or dies gets one sentence and an end, and harms nobody. */

import { describe, expect, test } from 'bun:test'
import type { JsonObject } from '../../src/kit/json.ts'
import type { McpConnection, McpFailure, McpPorts } from '../../src/mcp/contract.ts'
import { never, stage } from './connecting.ts'
import { rawServer } from './raw-server.ts'

const why = (result: McpConnection | McpFailure) => ('why' in result ? result.why : 'none')

/** Connects to a raw server, and calls its tool. */
async function calling(on: string, { input = {}, tools, ...ports }: Partial<McpPorts> & { input?: JsonObject; tools?: string } = {}) {
  await using at = stage(ports)
  const connection = await at.connect(at.program(rawServer(on, tools)))
  await connection.tools(never())
  const began = performance.now()
  const content = await connection.callTool('echo', input, { signal: never() })
  const ms = performance.now() - began
  await connection.close()
  expect(at.running.size).toBe(0)
  return { content, ms, reason: String(connection.closed.reason) }
}

describe('a greeting of', () => {
  test.each([
    ['nothing at all', `return`, /did not answer the greeting within 1 s/],
    ['what is not JSON', `return write('hello\\n')`, /not JSON-RPC: "hello"; a server writes its log to stderr/],
    ['JSON that is no message', `return write('{}\\n')`, /not JSON-RPC/],
    ['an answer that nobody asked for', `return answer('guess', {})`, /answered "guess", which is not open/],
    ['a line without end', `for (;;) write('x'.repeat(65536))`, /line longer than 8388608 bytes/],
    [
      '100 MB of lines',
      `for (let n = 0; n < 100; n++) write(('{"jsonrpc":"2.0","method":"a"}' + ' '.repeat(1e6)) + '\\n')`,
      /more than 67108864 bytes/,
    ],
    [
      'a death with a word',
      `console.error('no \\u001b[31mkey'); process.exit(3)`,
      /its process ended with exit code 3: no \\u\{1b\}\[31mkey/,
    ],
    ['a death without one', `process.kill(process.pid, 'SIGKILL')`, /its process ended with SIGKILL/],
    [
      'an answer in a wrong form',
      `if (method === 'initialize') return answer(id, { protocolVersion: 7 })`,
      /broke the protocol|wrong form/,
    ],
    [
      'a revision that nobody speaks',
      `if (method === 'initialize') return answer(id, { protocolVersion: '1999-01-01', capabilities: {}, serverInfo: { name: 'x', version: '1' } })`,
      /1999-01-01/,
    ],
    [
      'depth',
      `return write('{"jsonrpc":"2.0","id":0,"result":' + '['.repeat(2e6) + ']'.repeat(2e6) + '}\\n')`,
      /JSON-RPC|nobody can read|not open/,
    ],
  ])('%s ends it, in a sentence', async (_, on, expected) => {
    await using at = stage({ timeoutMs: on === 'return' ? 1_000 : 10_000 })
    expect(why(await at.tryTo(at.program(rawServer(on))))).toMatch(expected)
    await Promise.all(at.running)
  })

  test('no program at all says so', async () => {
    await using at = stage()
    expect(why(await at.tryTo({ kind: 'stdio', argv: ['/nowhere/server'], env: {} }))).toMatch(
      /its process ended with cannot start "\/nowhere\/server"/,
    )
  })
})

describe('in a call', () => {
  const failed = async (on: string, more: Parameters<typeof calling>[1] = {}) => {
    const { content, reason } = await calling(`if (method === 'tools/call') { ${on} }`, more)
    expect(content.isError).toBe(true)
    return { why: content.failed?.why, reason }
  }
  test.each([
    ['a hang', 'return', { callTimeoutMs: 300 }, /gave no answer within 0.3 s/],
    ['junk between messages', `write('debug\\n')`, {}, /not JSON-RPC: "debug"/],
    ['a death', 'process.exit(1)', {}, /its process ended with exit code 1/],
    ['an answer to another call', `return answer(id + 1, {})`, {}, /which is not open/],
    ['two answers to one call', `answer(id, { content: [] }); answer(id, { content: [] }); return`, {}, undefined],
    ['100 MB in one line', `return answer(id, { content: [{ type: 'text', text: 'x'.repeat(1e8) }] })`, {}, /line longer than/],
    [
      '100 MB in lines',
      `for (let n = 0; n < 1e4; n++) send({ method: 'notifications/message', params: { level: 'info', data: 'x'.repeat(1e4) } }); return`,
      {},
      /more than 67108864 bytes/,
    ],
  ] as const)('%s ends the server', async (_, on, ports, expected) => {
    if (expected === undefined) {
      const { reason } = await calling(`if (method === 'tools/call') { ${on} }`)
      return expect(reason).toMatch(/not open|it was closed/)
    }
    const found = await failed(on, ports)
    expect(found.why).toMatch(expected)
    expect(found.reason).toMatch(expected)
  })

  test('an error of the server is an error of this call alone', async () => {
    const found = await failed(`return send({ id, error: { code: -32000, message: 'no \\u001b[2J' } })`)
    expect(found).toEqual({ why: 'it answered with the error -32000: no \\u{1b}[2J', reason: 'it was closed' })
  })

  test('a result in a wrong form is an error of this call alone', async () => {
    expect((await failed(`return answer(id, { content: 'x' })`)).why).toMatch(/broke the protocol/)
  })

  test('a result that is nested without end is an error of this call alone', async () => {
    const line = `write('{"jsonrpc":"2.0","id":' + id + ',"result":{"content":[],"structuredContent":' + '{"a":'.repeat(2e5) + '1' + '}'.repeat(2e5) + '}}\\n')`
    expect(await failed(`return ${line}`)).toEqual({ why: expect.stringMatching(/nested too deeply/), reason: 'it was closed' })
  })

  const promising = (schema: string) => `[{ name: 'echo', description: '', inputSchema: { type: 'object' }, outputSchema: ${schema} }]`
  test.each([
    ['nothing', 'content: []', /sent none/],
    ['another type', `content: [], structuredContent: { n: 'x' }`, /does not fit its own outputSchema/],
  ])('a tool that promises a number and sends %s is not believed', async (_, result, expected) => {
    const tools = promising(`{ type: 'object', properties: { n: { type: 'number' } }, required: ['n'] }`)
    expect((await failed(`return answer(id, { ${result} })`, { tools })).why).toMatch(expected)
  })

  test('a pattern that takes for ever is not run', async () => {
    const tools = promising(`{ type: 'object', properties: { n: { type: 'string', pattern: '^(a+)+$' }, pattern: { type: 'number' } } }`)
    const result = `content: [], structuredContent: { n: 'a'.repeat(40) + '!', pattern: 1 }`
    const { content, ms } = await calling(`if (method === 'tools/call') return answer(id, { ${result} })`, { tools })
    expect(content.failed).toBeUndefined()
    expect(ms).toBeLessThan(1_000)
  })

  test('a cancelled call ends at once; a server that lives goes on, and one that hangs is ended', async () => {
    await using at = stage()
    const connection = await at.connect(
      at.program(rawServer(`if (method === 'tools/call' && params.arguments.hang) { if (params.arguments.all) for (;;) {} ; return }`)),
    )
    const cancel = async (input: JsonObject) => {
      const aborting = new AbortController()
      const began = performance.now()
      const call = connection.callTool('echo', input, { signal: aborting.signal })
      setTimeout(() => aborting.abort(), 50)
      expect((await call).failed?.why).toBe('the call was cancelled')
      expect(performance.now() - began).toBeLessThan(1_000)
    }
    await cancel({ hang: true })
    expect((await connection.callTool('echo', { a: 1 }, { signal: never() })).text).toBe('{"a":1}')
    await cancel({ hang: true, all: true })
    await new Promise((resolve) => connection.closed.addEventListener('abort', resolve))
    expect(connection.closed.reason).toMatch(/answered neither a cancelled call/)
    expect((await connection.callTool('echo', {}, { signal: never() })).failed?.why).toMatch(/neither/)
  })
})
