/** Tests that no definition and no question of a server hides something, costs without end or asks for a secret. */

import { describe, expect, test } from 'bun:test'
import type { JsonObject } from '../../src/kit/json.ts'
import type { McpContent } from '../../src/mcp/contract.ts'
import { never, stage } from './connecting.ts'
import { rawServer } from './raw-server.ts'

describe('a list', () => {
  async function listing(on: string, tools?: string) {
    await using at = stage({ timeoutMs: 5_000 })
    const connection = await at.connect(at.program(rawServer(on, tools)))
    return await connection.tools(never())
  }
  const nested = (depth: number) => `JSON.parse('{"type":"object","properties":{"a":'.repeat(${depth}) + '{}' + '}}'.repeat(${depth}))`
  test.each([
    ['refers to itself', `{ type: 'object', properties: { a: { $ref: '#' } } }`, /refers to itself through "#"/],
    [
      'goes round in a circle',
      `{ type: 'object', $ref: '#/$defs/a', $defs: { a: { items: { $ref: '#/$defs/b' } }, b: { $ref: '#/$defs/a' } } }`,
      /refers to itself/,
    ],
    [
      'leads outside',
      `{ type: 'object', properties: { a: { $ref: 'http://127.0.0.1/x' } } }`,
      /refers to "http:\/\/127.0.0.1\/x", which it does not contain/,
    ],
    ['leads nowhere', `{ type: 'object', $ref: '#/$defs/none' }`, /which it does not contain/],
    ['is deep', nested(20), /more than 32 levels/],
    ['has deep data', `{ type: 'object', default: ${nested(40)} }`, /nested too deeply/],
    ['is long', `{ type: 'object', description: 'x'.repeat(1e5) }`, /bytes, more than 65536/],
    [
      'unfolds without end',
      `{ type: 'object', $ref: '#/$defs/d0', $defs: Object.fromEntries(Array.from({ length: 9 }, (_, n) => ['d' + n, n < 8 ? { allOf: Array(6).fill({ $ref: '#/$defs/d' + (n + 1) }) } : {}])) }`,
      /unfolds to more than 10000 parts/,
    ],
  ])('refuses a schema that %s, and keeps the others', async (_, schema, expected) => {
    const good = `{ name: 'good', inputSchema: { type: 'object', properties: { a: { $ref: '#/$defs/b' }, c: { $ref: '#/$defs/b' } }, $defs: { b: { type: 'string', default: { $ref: '#' } } } } }`
    const list = await listing(
      '',
      `[{ name: 'bad', inputSchema: ${schema} }, ${good}, { name: 'out', inputSchema: { type: 'object' }, outputSchema: ${schema} }]`,
    )
    if ('why' in list) throw new Error(list.why)
    expect(list.items.map(({ name }) => name)).toEqual(['good'])
    expect(list.refused.map(({ name }) => name)).toEqual(['bad', 'out'])
    expect(list.refused[0]?.why).toMatch(/^its (inputSchema|definition) /)
    expect(list.refused[1]?.why).toMatch(/^its (outputSchema|definition) /)
    for (const refused of list.refused) expect(refused.why).toMatch(expected)
  })

  test('refuses names that hide something, and a second tool of a name', async () => {
    const names = ['ok', 'a\u001b[2J', 'b\u202ec', 'c\u200bd', 'e\nf', '', 'ok', 'x'.repeat(3_000)]
    const list = await listing(
      '',
      JSON.stringify([
        ...names.map((name) => ({ name, inputSchema: { type: 'object' } })),
        { name: 'flat', inputSchema: { type: 'string' } },
        7,
      ]),
    )
    if ('why' in list) throw new Error(list.why)
    expect(list.items.map(({ name }) => name)).toEqual(['ok'])
    expect(list.refused).toHaveLength(9)
    for (const { name } of list.refused) expect(name).toMatch(/^[ -~…]*$/)
  })

  test('whose cursor comes again ends; one that never ends, or is too long, is refused', async () => {
    const circle = await listing(
      `if (method === 'tools/list') return answer(id, { tools: [{ name: 't' + (params?.cursor ?? ''), inputSchema: { type: 'object' } }], nextCursor: params?.cursor === 'a' ? 'b' : 'a' })`,
    )
    expect('items' in circle && circle.items.map(({ name }) => name)).toEqual(['t', 'ta', 'tb'])
    const endless = await listing(`if (method === 'tools/list') return answer(id, { tools: [], nextCursor: crypto.randomUUID() })`)
    expect('why' in endless && endless.why).toMatch(/more than 64 pages/)
    const long = await listing(
      `if (method === 'tools/list') return answer(id, { tools: [{ name: 'x', title: 'x'.repeat(5e6), inputSchema: { type: 'object' } }] })`,
    )
    expect('why' in long && long.why).toMatch(/4194304 bytes/)
  })

  test('that changes 1,000 times a second is reported a few times, and a call passes through', async () => {
    await using at = stage()
    const connection = await at.connect(
      at.program(
        rawServer(
          `if (method === 'tools/call' && params.arguments.go) setInterval(() => { for (let n = 0; n < 10; n++) send({ method: 'notifications/tools/list_changed' }) }, 10)`,
        ),
      ),
    )
    const times: number[] = []
    const third = Promise.withResolvers<void>()
    connection.onListChanged((list) => {
      expect(list).toBe('tools')
      if (times.push(performance.now()) === 3) third.resolve()
    })
    await connection.callTool('echo', { go: true }, { signal: never() })
    const busy = process.cpuUsage()
    await third.promise
    const { user, system } = process.cpuUsage(busy)
    for (let n = 1; n < times.length; n++) expect((times[n] ?? 0) - (times[n - 1] ?? 0)).toBeGreaterThan(200)
    expect((user + system) / 1_000).toBeLessThan(750)
    expect((await connection.callTool('echo', { a: 1 }, { signal: never() })).text).toBe('{"a":1}')
  })
})

describe('a question', () => {
  async function asking(form: JsonObject, message = 'Which one?'): Promise<{ content: McpContent; asked: unknown[] }> {
    await using at = stage()
    const on = `if (method === 'tools/call') { globalThis.call = id; return send({ id: 'q', method: 'elicitation/create', params: ${JSON.stringify({ message, requestedSchema: { type: 'object', properties: form } })} }) }
      if (id === 'q') return answer(globalThis.call, { content: [{ type: 'text', text: JSON.stringify(message.result ?? message.error.code) }] })`
    const connection = await at.connect(at.program(rawServer(on)))
    const asked: unknown[] = []
    const elicit = async (question: object) => {
      asked.push(question)
      return { action: 'accept' as const, content: { answer: 'blue' } }
    }
    return { content: await connection.callTool('echo', {}, { signal: never(), elicit }), asked }
  }

  test.each([
    ['password', { type: 'string' }],
    ['apiKey', { type: 'string' }],
    ['API_TOKEN', { type: 'string' }],
    ['p\u200bassword', { type: 'string' }],
    ['ｐａｓｓｗｏｒｄ', { type: 'string' }],
    ['x', { type: 'string', title: 'Your secret key' }],
    ['x', { type: 'string', description: 'Paste the access token here' }],
  ])('for %s %p is declined, and nobody is asked', async (name, field) => {
    const { content, asked } = await asking({ [name]: field })
    expect(asked).toEqual([])
    expect(content.text).toMatch(/^\{"action":"decline"\}\n\[the server asked "Which one\?", which was declined: it asks for a secret/)
  })
  test('with the format of a password is refused as a wrong request', async () => {
    const { content, asked } = await asking({ x: { type: 'string', format: 'password' } })
    expect({ asked, text: content.text }).toEqual({ asked: [], text: '-32602' })
  })
  test('whose words ask for a password is declined', async () => {
    expect((await asking({ answer: { type: 'string' } }, 'Please type your password.')).asked).toEqual([])
  })
  test('for a colour reaches the person, and the answer reaches the server', async () => {
    const { content, asked } = await asking({
      answer: { type: 'string', title: 'Colour' },
      keyboard: { type: 'string' },
      passenger: { type: 'string' },
    })
    expect(asked).toHaveLength(1)
    expect(content.text).toBe('{"action":"accept","content":{"answer":"blue"}}')
  })
})
