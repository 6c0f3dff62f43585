/** The MCP server of the gateway at /mcp: tokens, hosts, origins, sizes, and clients that disappear. */

import { expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { gateway, tokenOf } from '../support/gateway.ts'
import { needs } from '../support/needs.ts'
import { repetitions } from '../support/tier.ts'
import { asksFirst, home, scripted } from '../support/turns.ts'
import { until } from '../support/until.ts'
import { generations, hasGeneration, overHttp } from './serve-clients.ts'

const bwrap = needs('bwrap')

const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
const listing = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} })

test('a request without a token in force, of a foreign page, by a rebound name, or too large is refused', async () => {
  using at = home()
  await using server = await gateway(at)
  const bearer = `Bearer ${server.token}`
  const send = async (more: Record<string, string>, body = listing) => {
    const response = await fetch(`${server.url}/mcp`, { method: 'POST', headers: { ...headers, ...more }, body })
    return [response.status, (await response.text()).slice(0, 300)]
  }
  expect(await send({})).toEqual([401, expect.stringContaining('Bearer')])
  expect(await send({ authorization: 'Bearer bc_wrong' })).toEqual([401, expect.any(String)])
  expect(await send({ authorization: bearer, host: `evil.example:${server.port}` })).toEqual([403, expect.stringContaining('foreign_host')])
  expect(await send({ authorization: bearer, origin: 'https://evil.example' })).toEqual([403, expect.stringContaining('foreign_origin')])
  expect(await send({ authorization: bearer, 'sec-fetch-site': 'cross-site' })).toEqual([403, expect.stringContaining('foreign_origin')])
  expect(await send({ authorization: bearer, 'content-type': 'text/plain' })).toEqual([415, expect.any(String)])
  expect(await send({ authorization: bearer }, `{"x":"${'x'.repeat(1_100_000)}"}`)).toEqual([413, expect.any(String)])
  expect(await send({ authorization: bearer }, '{')).toEqual([400, expect.any(String)])
  expect(await send({ authorization: bearer })).toEqual([200, expect.stringContaining('"name":"time"')])
  const get = await fetch(`${server.url}/mcp`, { headers: { authorization: bearer, accept: 'text/event-stream' } })
  expect(get.status).toBe(405)
})

test('a token is offered what its scopes and its profile permit, and sees its own conversations alone', async () => {
  using at = home()
  const { env } = scripted(at, [{ text: 'One.' }, { text: 'Two.' }])
  await using server = await gateway(at, [], { env })
  const [bot, other, approver] = [
    await tokenOf(at, 'bot', '--scope', 'chat', '--scope', 'read'),
    await tokenOf(at, 'other', '--scope', 'chat', '--scope', 'read'),
    await tokenOf(at, 'approver', '--scope', 'approve'),
  ]
  await using one = await overHttp(server.url, bot)
  await using two = await overHttp(server.url, other)
  await using none = await overHttp(server.url, approver)
  const named = async ({ client }: typeof one) => (await client.listTools()).tools.map(({ name }) => name)
  expect(await named(one)).toEqual(['time', 'memory_search', 'agent_turn', 'receipts_list', 'receipts_verify'])
  expect(await named(none)).toEqual([])
  for (const name of ['time', 'agent_turn', 'receipts_list'])
    expect(await none.call(name, { message: 'x' })).toEqual([expect.stringContaining('not offered'), true])
  expect(await one.call('file_list', {})).toEqual([expect.any(String), true])
  const [said] = await one.call('agent_turn', { message: 'hello' })
  const { conversation_id, run_id } = JSON.parse(said.split('\n').at(-1) ?? '')
  expect(await two.call('agent_turn', { message: 'x', conversation_id })).toEqual([expect.stringContaining('does not exist'), true])
  for (const uri of [`braidclaw://sessions/${conversation_id}`, `braidclaw://runs/${run_id}`]) {
    expect((await one.client.readResource({ uri })).contents).toHaveLength(1)
    await expect(two.client.readResource({ uri })).rejects.toThrow()
    await expect(none.client.readResource({ uri })).rejects.toThrow()
  }
  const complete = { ref: { type: 'ref/resource' as const, uri: 'braidclaw://sessions/{id}' }, argument: { name: 'id', value: '' } }
  for (const { client } of [two, none]) expect((await client.complete(complete)).completion.values).not.toContain(conversation_id)
  expect((await one.client.complete(complete)).completion.values).toContain(conversation_id)
  const [listed] = (await two.client.readResource({ uri: 'braidclaw://sessions' })).contents
  expect(JSON.stringify(listed)).not.toContain(conversation_id)
})

test.each(generations.filter((one) => hasGeneration(one) && bwrap))(
  'a client of the generation %s calls tools, and asks a person only where the protocol can',
  async (generation) => {
    using at = home('', asksFirst)
    at.file('notes.md', 'hello\n')
    await using server = await gateway(at)
    const messages: string[] = []
    const answering = (message: string) => ({ action: 'accept', content: { allow: messages.push(message) > 0 } })
    await using mcp = await overHttp(server.url, server.token, { generation, answering })
    expect(await mcp.call('file_read', { path: 'notes.md' })).toEqual(['hello\n', false])
    const [text, isError] = await mcp.call('shell', { command: 'echo ran > ran.txt' })
    expect([isError, messages.length]).toEqual(generation === 'auto' ? [false, 1] : [true, 0])
    if (generation !== 'auto') expect(text).toContain('needs approval')
  },
)

test.if(bwrap)('nobody answers a question twice, or that of another token', async () => {
  using at = home('', asksFirst)
  await using server = await gateway(at)
  const other = await tokenOf(at, 'other', '--scope', 'admin')
  const meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientInfo': { name: 't', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': { elicitation: {} },
  }
  const send = async (token: string, more: object) => {
    const params = { name: 'shell', arguments: { command: 'echo ran >> ran.txt' }, _meta: meta, ...more }
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params })
    const version = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call', 'mcp-name': 'shell' }
    const response = await fetch(`${server.url}/mcp`, {
      method: 'POST',
      headers: { ...headers, ...version, authorization: `Bearer ${token}` },
      body,
    })
    const { result }: { readonly result: ReturnType<typeof JSON.parse> } = JSON.parse(await response.text())
    return result
  }
  const { resultType, requestState } = await send(server.token, {})
  expect([resultType, requestState]).toEqual(['input_required', expect.any(String)])
  const answer = { requestState, inputResponses: { approval: { action: 'accept', content: { allow: true } } } }
  expect((await send(other, answer)).isError).toBe(true)
  expect(existsSync(join(at.workspace, 'ran.txt'))).toBe(false)
  expect((await send(server.token, answer)).isError).toBe(false)
  expect((await send(server.token, answer)).isError).toBe(true)
  expect(await Bun.file(join(at.workspace, 'ran.txt')).text()).toBe('ran\n')
  // A token without the scope is not asked: the call waits for an operator.
  const chat = await tokenOf(at, 'chat', '--scope', 'chat', '--tools', 'shell', '--autonomy', 'supervised')
  expect((await send(chat, {})).content[0].text).toContain('needs approval')
})

test.if(bwrap)(
  'a client that disconnects, and a token that is revoked, end a call; many calls at once all end',
  async () => {
    using at = home()
    const sleeping = { command: 'touch began; sleep 300', direct: true }
    await using server = await gateway(at, ['--auto'])
    const outcomes = async () => {
      const receipts: { tool: string; status: string }[] = JSON.parse((await at.run(['receipt', 'list', '--json'])).stdout)
      return receipts.filter(({ tool }) => tool === 'shell').map(({ status }) => status)
    }
    const began = join(at.workspace, 'began')
    const yes = () => ({ action: 'accept', content: { allow: true } })
    const more = await tokenOf(at, 'more', '--scope', 'admin')
    const leaving = new AbortController()
    for (const [number, end] of [() => leaving.abort(), () => void at.run(['token', 'revoke', 'more'])].entries()) {
      await using mcp = await overHttp(server.url, more, { answering: yes })
      const calling = mcp.call('shell', sleeping, number === 0 ? { signal: leaving.signal } : {}).catch(() => {})
      await until(() => existsSync(began))
      end()
      await until(async () => (await outcomes()).length === number + 1)
      await calling
      await Bun.file(began).delete()
    }
    expect(await outcomes()).toEqual(['failed', 'failed'])
    await using mcp = await overHttp(server.url, server.token)
    const calls = await Promise.all(Array.from({ length: repetitions({ fast: 100, deep: 1_000 }) }, () => mcp.call('time')))
    expect(calls.filter(([, isError]) => isError)).toEqual([])
  },
  120_000,
)
