import { expect, test } from 'bun:test'
import { createMcpServer, serveMcp } from './mcp-server.ts'

const server = createMcpServer(
  {
    name: 'skills_search',
    description: 'Finds a skill',
    parameters: { type: 'object' },
    call({ query }) {
      if (query === 'bad') throw new Error('no such thing')
      return `found ${String(query)}`
    },
  },
  '1.0.0',
)
const ask = async (message: object) => JSON.parse((await server(JSON.stringify({ jsonrpc: '2.0', ...message }))) ?? 'null')

test.each([
  ['{', -32700],
  ['[]', -32600],
  ['{"id":1,"method":"ping"}', -32600],
  ['{"jsonrpc":"2.0","id":1,"method":"resources/list"}', -32601],
  ['{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"shell"}}', -32602],
  ['{"jsonrpc":"2.0","id":1,"method":"tools/call"}', -32602],
])('%s is refused with %d', async (line, code) => {
  expect(JSON.parse((await server(line)) ?? '').error.code).toBe(code)
})

test('a client learns the version it asked for, or the newest, and the one tool', async () => {
  const greeting = (await ask({ id: 1, method: 'initialize', params: { protocolVersion: '2025-06-18' } })).result
  expect(greeting.protocolVersion).toBe('2025-06-18')
  expect((await ask({ id: 1, method: 'initialize', params: { protocolVersion: '1999' } })).result.protocolVersion).toBe('2025-11-25')
  expect((await ask({ id: 2, method: 'tools/list' })).result.tools.map(({ name }: { name: string }) => name)).toEqual(['skills_search'])
  expect(await ask({ method: 'notifications/initialized' })).toBeNull()
})

test('what a call throws is a result that the model reads', async () => {
  const call = (query: string) => ask({ id: 'x', method: 'tools/call', params: { name: 'skills_search', arguments: { query } } })
  expect((await call('a')).result).toEqual({ content: [{ type: 'text', text: 'found a' }] })
  expect((await call('bad')).result).toEqual({ content: [{ type: 'text', text: 'no such thing' }], isError: true })
})

test('lines may be cut anywhere, also inside a character', async () => {
  const bytes = new TextEncoder().encode(
    `${JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'skills_search', arguments: { query: 'é日' } } })}\n\n`,
  )
  const written: string[] = []
  await serveMcp(server, {
    input: (async function* () {
      for (const byte of bytes) yield Uint8Array.of(byte)
    })(),
    write: (text: string) => written.push(text),
  })
  expect(written).toEqual(['{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"found é日"}]}}\n'])
})
