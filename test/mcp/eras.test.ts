/** Tests the client against the official libraries, in the newest revision and in older ones, over pipes and over HTTP. */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { createMcpHandler } from '@modelcontextprotocol/server'
import type { McpConnection, McpList, McpTransport } from '../../src/mcp/contract.ts'
import { given } from '../support/needs.ts'
import { bun, never, stage } from './connecting.ts'
import { rawServer } from './raw-server.ts'
import { createServer } from './sdk-server.ts'

const handler = createMcpHandler(createServer)
const web = Bun.serve({ hostname: '127.0.0.1', port: 0, idleTimeout: 0, fetch: (request) => handler.fetch(request) })
afterAll(() => web.stop(true))

const sdk = (mode: string): McpTransport => ({ kind: 'stdio', argv: [...bun, join(import.meta.dir, 'sdk-server.ts'), mode], env: {} })
const kinds: [string, string, McpTransport][] = [
  ['pipes in the newest revision', '2026-07-28', sdk('both')],
  ['pipes in an older revision', '2025-11-25', sdk('old')],
  ['HTTP in the newest revision', '2026-07-28', { kind: 'http', url: web.url.href, headers: {} }],
]

function itemsOf<T>(list: McpList<T> | { readonly why: string }): readonly T[] {
  if ('why' in list) throw new Error(list.why)
  expect(list.refused).toEqual([])
  return list.items
}

describe.each(kinds)('over %s', (_, protocol, to) => {
  let at: ReturnType<typeof stage>
  let connection: McpConnection
  const call = (name: string, input = {}, more = {}) => connection.callTool(name, input, { signal: never(), ...more })
  beforeAll(async () => {
    at = stage()
    connection = await at.connect(to)
  })
  afterAll(async () => {
    await connection.close()
    expect(at.running.size).toBe(0)
    await at[Symbol.asyncDispose]()
  })

  test('the server introduces itself', () => {
    expect(connection.server).toMatchObject({ name: 'sdk', version: '2.4.0', protocol, instructions: 'be kind' })
    expect(connection.server.offers).toEqual(['tools', 'resources', 'prompts', 'subscriptions'])
  })

  test('its lists are complete, with templates and arguments', async () => {
    expect(itemsOf(await connection.tools(never())).map(({ name }) => name)).toContain('echo')
    const resources = itemsOf(await connection.resources(never()))
    expect(resources.map(({ uri, isTemplate }) => [uri, isTemplate])).toEqual([
      ['note://1', false],
      ['note://{n}', true],
    ])
    expect(itemsOf(await connection.prompts(never()))[0]?.arguments).toEqual([{ name: 'name', description: '', required: true }])
  })

  test('calls, resources and prompts answer, twenty at once', async () => {
    const all = await Promise.all(Array.from({ length: 20 }, (_, n) => call('echo', { message: `${n}` })))
    expect(all.map(({ text }) => text)).toEqual(Array.from({ length: 20 }, (_, n) => `${n}`))
    expect((await connection.readResource('note://7', { signal: never() })).text).toBe('note 7')
    expect((await connection.getPrompt('greet', { name: 'Ada' }, { signal: never() })).text).toBe('user: Hello Ada')
  })

  test('a result that fits its schema arrives with its structure', async () => {
    expect(await call('sum', { a: 1, b: 2 })).toMatchObject({ structured: { sum: 3 }, isError: false })
  })

  test('a wrong argument and an unknown tool are errors, and the connection lives on', async () => {
    expect((await call('echo', {})).isError).toBe(true)
    expect((await call('none')).isError).toBe(true)
    expect((await connection.readResource('other://1', { signal: never() })).failed?.why).toMatch(/error -3\d+/)
    expect((await call('echo', { message: 'well' })).text).toBe('well')
  })

  test('a question reaches the person who is in the call, a secret one does not, and without a person it is declined', async () => {
    const asked: string[] = []
    const elicit = async ({ message }: { readonly message: string }) => {
      asked.push(message)
      return { action: 'accept' as const, content: { colour: 'blue' } }
    }
    expect((await call('ask', {}, { elicit })).text).toContain('"blue"')
    expect((await call('ask', { field: 'password' }, { elicit })).text).toContain('declined: it asks for a secret ("password")')
    expect((await call('ask')).text).toContain('declined: nobody can be asked here')
    expect(asked).toEqual(['Which colour?'])
  })

  test('a model is not lent to the server, and the connection lives on', async () => {
    expect(await call('think')).toMatchObject({ isError: true })
    expect((await call('echo', { message: 'well' })).text).toBe('well')
  })

  test('a person who takes their time keeps no cancelled call open', async () => {
    const aborting = new AbortController()
    const elicit = () => {
      aborting.abort()
      return new Promise<never>(() => {})
    }
    expect((await call('ask', {}, { elicit, signal: aborting.signal })).failed?.why).toBe('the call was cancelled')
  })

  test('progress is told', async () => {
    const told: string[] = []
    expect((await call('slow', {}, { onProgress: (words: string) => told.push(words) })).text).toBe('done')
    expect(told).toEqual(['half'])
  })

  test('a changed list and an updated resource are told', async () => {
    const changed = new Promise((resolve) => connection.onListChanged(resolve))
    const watching = new AbortController()
    const updates = connection.subscribe('note://1', watching.signal)[Symbol.asyncIterator]()
    const update = updates.next()
    if (to.kind === 'stdio') await call('grow')
    else handler.notify.toolsChanged()
    expect(await changed).toBe('tools')
    const touch = setInterval(() => (to.kind === 'stdio' ? call('touch') : handler.notify.resourceUpdated('note://1')), 50)
    expect(await update).toEqual({ done: false, value: { uri: 'note://1' } })
    clearInterval(touch)
    watching.abort()
    expect(await updates.next()).toEqual({ done: true, value: undefined })
  })
})

const old = join(import.meta.dir, '../control/foreign/node_modules/@modelcontextprotocol/sdk/dist/esm')
test.if(given(existsSync(old), 'npm ci in test/control/foreign'))('the library of the former version serves it as well', async () => {
  await using at = stage()
  const program = `
    import { McpServer } from '${old}/server/mcp.js'
    import { StdioServerTransport } from '${old}/server/stdio.js'
    const server = new McpServer({ name: 'former', version: '1' })
    server.registerTool('ask', { description: 'asks' }, async () => {
      const requestedSchema = { type: 'object', properties: { colour: { type: 'string' } } }
      return { content: [{ type: 'text', text: JSON.stringify(await server.server.elicitInput({ message: 'Which?', requestedSchema })) }] }
    })
    await server.connect(new StdioServerTransport())`
  const connection = await at.connect(at.program(program))
  expect(connection.server).toMatchObject({ name: 'former', protocol: '2025-11-25' })
  expect(itemsOf(await connection.tools(never())).map(({ name }) => name)).toEqual(['ask'])
  const elicit = async () => ({ action: 'accept' as const, content: { colour: 'red' } })
  expect((await connection.callTool('ask', {}, { signal: never(), elicit })).text).toBe('{"action":"accept","content":{"colour":"red"}}')
  expect(itemsOf(await connection.prompts(never()))).toEqual([])
})

test('a server of the newest kind that asks for the model or the folders of the client is told no', async () => {
  await using at = stage()
  const discovery = {
    resultType: 'complete',
    supportedVersions: ['2026-07-28'],
    capabilities: { tools: {} },
    ttlMs: 0,
    cacheScope: 'private',
  }
  const ask = `answer(id, { resultType: 'input_required', inputRequests: { a: { method: params.arguments.method, params: {} } } })`
  const connection = await at.connect(
    at.program(
      rawServer(
        `if (method === 'server/discover') return answer(id, ${JSON.stringify(discovery)}); if (method === 'tools/call') return ${ask}`,
      ),
    ),
  )
  expect(connection.server.protocol).toBe('2026-07-28')
  for (const method of ['sampling/createMessage', 'roots/list'])
    expect((await connection.callTool('echo', { method }, { signal: never() })).failed?.why).toBe(
      `it broke the protocol: it asks for "${method}", which servers are not offered`,
    )
  expect((await connection.callTool('echo', { method: 'elicitation/create' }, { signal: never() })).failed?.why).toBe(
    'it asked more than 10 times',
  )
  expect(connection.closed.aborted).toBe(false)
})

test('a server of the former kind that dies when it is greeted in the newest revision is greeted again', async () => {
  await using at = stage()
  const connection = await at.connect(at.program(rawServer(`if (method === 'server/discover') process.exit(1)`)))
  expect(connection.server).toMatchObject({ name: 'raw', protocol: '2025-11-25' })
})

test('a server of the former kind that stays silent when it is greeted in the newest revision is greeted again', async () => {
  await using at = stage({ timeoutMs: 900 })
  const connection = await at.connect(at.program(rawServer(`if (method === 'server/discover') return`)))
  expect(connection.server.protocol).toBe('2025-11-25')
})

describe('over HTTP', () => {
  const serving = (answer: (request: Request) => Response | Promise<Response>) => {
    const server = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: answer })
    return {
      to: { kind: 'http', url: server.url.href, headers: { 'x-key': 'k' } } as const,
      [Symbol.dispose]: () => void server.stop(true),
    }
  }
  const failure = async (to: McpTransport) => {
    await using at = stage()
    const result = await at.tryTo(to)
    return 'why' in result ? result : { why: 'none' }
  }

  test.each([
    [401, /asks for a login/, true],
    [403, /asks for a login/, true],
    [500, /HTTP status 500/, false],
    [404, /HTTP status 404/, false],
  ])('status %i is said', async (status, expected, needsLogin) => {
    using server = serving(() => new Response('no', { status }))
    const found = await failure(server.to)
    expect(found.why).toMatch(expected)
    expect('needsLogin' in found).toBe(needsLogin)
  })

  test('nobody there is said', async () => {
    const server = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response() })
    const url = server.url.href
    await server.stop(true)
    expect((await failure({ kind: 'http', url, headers: {} })).why).toMatch(/^it cannot be reached: /)
  })

  test('the headers of the configuration are sent, and a server that dies closes the connection', async () => {
    let seen = ''
    let dead = false
    using server = serving((request) => {
      seen = request.headers.get('x-key') ?? ''
      return dead ? new Response('gone', { status: 404 }) : handler.fetch(request)
    })
    await using at = stage()
    const connection = await at.connect(server.to)
    expect(seen).toBe('k')
    dead = true
    expect((await connection.callTool('echo', {}, { signal: never() })).failed?.why).toMatch(/HTTP status 404/)
    expect(connection.closed.reason).toMatch(/HTTP status 404/)
  })

  test('the headers do not follow a redirect to another origin', async () => {
    const seen: (string | null)[] = []
    using elsewhere = serving((request) => {
      seen.push(request.headers.get('x-key'))
      return new Response('no', { status: 500 })
    })
    using server = serving(() => Response.redirect(elsewhere.to.url, 307))
    expect((await failure(server.to)).why).not.toBe('none')
    expect(seen).toEqual([])
  })

  test('a flood ends the connection', async () => {
    let flood = false
    using server = serving((request) =>
      flood ? new Response('x'.repeat(1e8), { headers: { 'content-type': 'application/json' } }) : handler.fetch(request),
    )
    await using at = stage()
    const connection = await at.connect(server.to)
    flood = true
    expect((await connection.callTool('echo', {}, { signal: never() })).failed?.why).toMatch(/more than 67108864 bytes/)
    expect(connection.closed.aborted).toBe(true)
  })
})
