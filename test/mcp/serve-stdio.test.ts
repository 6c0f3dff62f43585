/** `mcp serve` on standard input and output: the same gate, approvals and receipts as a turn, for clients of every generation. */

import { describe, expect, test } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Nest } from '../support/cli.ts'
import { needs } from '../support/needs.ts'
import { repetitions } from '../support/tier.ts'
import { asksFirst, call, everyTool, home, scripted, turn } from '../support/turns.ts'
import { until } from '../support/until.ts'
import { type Answering, generations, hasGeneration, overStdio } from './serve-clients.ts'

type Receipt = { readonly tool: string; readonly status: string }

/** Returns what became of each call, in order. */
async function outcomes(at: Nest): Promise<readonly string[]> {
  const { stdout } = await at.run(['receipt', 'list', '--json'])
  const receipts: readonly Receipt[] = JSON.parse(stdout)
  return receipts.map(({ tool, status }) => `${tool} ${status}`)
}

const yes: Answering = () => ({ action: 'accept', content: { allow: true } })

const bwrap = needs('bwrap')

describe.each(generations)('a client of the generation %s', (generation) => {
  const runs = hasGeneration(generation)

  test.if(runs)('is denied what the policy denies, is not offered what it hides, and each call leaves a receipt', async () => {
    using at = home()
    at.config(everyTool.replace('[channels.cli]\n', '[channels.cli]\ntools_allow = ["time", "file_read", "file_write"]\n'))
    at.file('notes.md', 'hello\n')
    await using mcp = await overStdio(at, ['--autonomy', 'readonly'], { generation, answering: yes })
    const { tools } = await mcp.client.listTools()
    const own = ['agent_turn', 'receipts_list', 'receipts_verify']
    expect(tools.map(({ name }) => name)).toEqual(['time', 'file_read', 'file_write', ...own])
    const [denied, isError] = await mcp.call('file_write', { path: 'new.txt', content: 'x' })
    expect([denied, isError, existsSync(join(at.workspace, 'new.txt'))]).toEqual([expect.stringContaining('readonly'), true, false])
    expect(await mcp.call('shell', { command: 'touch made' })).toEqual([expect.any(String), true])
    expect(await mcp.call('file_read', { path: '/etc/shadow' })).toEqual([expect.any(String), true])
    expect(await mcp.call('file_read', { path: 'notes.md' })).toEqual(['hello\n', false])
    expect(await outcomes(at)).toEqual(['file_write denied', 'shell denied', 'file_read denied', 'file_read allowed'])
  })

  test.if(runs && bwrap)('a person at the client decides about a call; only a whole yes counts', async () => {
    using at = home('', asksFirst)
    const answers = [
      { action: 'decline' },
      { action: 'cancel' },
      { action: 'accept', content: { allow: false } },
      { action: 'accept', content: {} },
      yes(''),
    ]
    const messages: string[] = []
    const answering: Answering = (message) => answers[messages.push(message) - 1] ?? { action: 'decline' }
    await using mcp = await overStdio(at, [], { generation, answering })
    for (const _ of [1, 2, 3]) expect((await mcp.call('shell', { command: 'echo ran > ran.txt' }))[1]).toBe(true)
    // A client that checks answers itself sends none that lacks a member.
    await mcp.call('shell', { command: 'echo ran > ran.txt' }).catch(() => {})
    expect(existsSync(join(at.workspace, 'ran.txt'))).toBe(false)
    expect((await mcp.call('shell', { command: 'echo ran > ran.txt' }))[1]).toBe(false)
    expect(existsSync(join(at.workspace, 'ran.txt'))).toBe(true)
    expect(messages[0]).toContain('BraidClaw asks')
    expect(messages[0]).toContain('echo ran > ran.txt')
  })

  test.if(runs && bwrap)('without a person at the client a call waits for an operator, whose yes counts once', async () => {
    using at = home('', asksFirst)
    await using mcp = await overStdio(at, [], { generation })
    const command = { command: 'echo ran >> ran.txt' }
    const [text, isError] = await mcp.call('shell', command)
    const [, id = ''] = /needs approval: braidclaw approvals allow (\S+)/.exec(text) ?? []
    expect([isError, id]).toEqual([true, expect.stringMatching(/^run_/)])
    expect((await at.run(['approvals', 'allow', id])).code).toBe(0)
    expect((await mcp.call('shell', command))[1]).toBe(false)
    expect((await mcp.call('shell', command))[0]).toContain('needs approval')
    expect(readFileSync(join(at.workspace, 'ran.txt'), 'utf8')).toBe('ran\n')
  })

  test.if(runs)('reads records, and lets the agent work with progress, in a conversation that it can continue', async () => {
    using at = home()
    const { env } = scripted(at, [call('time', {}), { text: 'It is late.' }, { text: 'Later still.' }])
    await using mcp = await overStdio(at, [], { generation, env })
    const progress: string[] = []
    const onprogress = ({ message }: { message?: string }) => void progress.push(message ?? '')
    const [first] = await mcp.call('agent_turn', { message: 'How late is it?' }, { onprogress })
    const { conversation_id, ending } = lastLine(first)
    expect([first, ending, progress]).toEqual([expect.stringContaining('It is late.'), 'answered', ['calls time']])
    const [second] = await mcp.call('agent_turn', { message: 'And now?', conversation_id })
    expect([second, lastLine(second)]).toEqual([expect.stringContaining('Later still.'), expect.objectContaining({ conversation_id })])
    expect(await mcp.call('agent_turn', { message: 'x', conversation_id: 'conversation_0' })).toEqual([expect.any(String), true])
    expect(await mcp.call('agent_turn', { text: 'x' })).toEqual([expect.stringContaining('message'), true])

    const read = async (uri: string) =>
      JSON.parse((await mcp.client.readResource({ uri })).contents.map((each) => 'text' in each && each.text).join())
    const session = await read(`braidclaw://sessions/${conversation_id}`)
    const asked = session.messages.filter(({ role }: { role: string }) => role === 'user')
    expect(asked.map(({ content }: { content: string }) => content)).toEqual(['How late is it?', 'And now?'])
    const { runs } = await read('braidclaw://runs')
    expect(await read(`braidclaw://runs/${runs[0].runId}`)).toMatchObject({ runId: runs[0].runId })
    expect((await read('braidclaw://receipts')).receipts).toHaveLength(1)
    const complete = async (uri: string, value: string) =>
      (await mcp.client.complete({ ref: { type: 'ref/resource', uri }, argument: { name: 'id', value } })).completion.values
    for (const wrong of ['braidclaw://receipts/{id}', 'braidclaw://runs', 'constructor']) expect(await complete(wrong, '')).toEqual([])
    expect(await complete('braidclaw://sessions/{id}', 'nothing')).toEqual([])
    expect(await complete('braidclaw://sessions/{id}', conversation_id.slice(0, -2))).toEqual([conversation_id])
    expect(await complete('braidclaw://runs/{id}', '')).toContain(runs[0].runId)
    for (const uri of ['braidclaw://runs/run_none', 'braidclaw://../config.toml', 'file:///etc/passwd'])
      await expect(mcp.client.readResource({ uri })).rejects.toThrow()
    expect(await mcp.call('receipts_verify', { deep: true })).toEqual([expect.stringContaining('"ok":true'), false])
    expect(await mcp.call('receipts_list', { limit: 0 })).toEqual([expect.any(String), true])
  })
})

test.if(bwrap)('a client that cancels a call, or dies in mid-call, ends the command, and the receipt says so', async () => {
  using at = home()
  const began = join(at.workspace, 'began')
  const sleeping = { command: 'touch began; sleep 300', direct: true }
  const receipt = () => until(async () => (await outcomes(at)).length === 1)
  await using mcp = await overStdio(at, ['--auto'], { answering: yes })
  const cancelling = new AbortController()
  const cancelled = mcp.call('shell', sleeping, { signal: cancelling.signal }).catch(() => 'cancelled')
  await until(() => existsSync(began))
  cancelling.abort()
  expect(await cancelled).toBe('cancelled')
  await receipt()
  expect((await mcp.call('file_delete', { path: 'began' }))[1]).toBe(false)

  const dying = mcp.call('shell', sleeping).catch(() => 'gone')
  await until(() => existsSync(began))
  await mcp.client.close()
  expect(await dying).toBe('gone')
  // The client kills a server that needs more than two seconds for its end; the next start then writes what is missing.
  expect((await turn(at, [{ text: 'on we go' }])).code).toBe(0)
  expect(await outcomes(at)).toEqual(['shell failed', 'file_delete allowed', 'shell failed'])
})

test.if(bwrap)('--tools offers only what it names, and a call that waits for its answer does not hold up the others', async () => {
  using at = home('', asksFirst)
  at.file('tools.json', '[{"name":"time"},{"name":"shell"}]')
  const asked = Promise.withResolvers<void>()
  const answered = Promise.withResolvers<void>()
  const answering = async () => {
    asked.resolve()
    await answered.promise
    return { action: 'accept', content: { allow: true } }
  }
  await using mcp = await overStdio(at, ['--tools', 'tools.json'], { answering })
  expect((await mcp.client.listTools()).tools.map(({ name }) => name)).toEqual(['time', 'shell'])
  for (const name of ['agent_turn', 'receipts_list', 'file_list']) expect((await mcp.call(name, { message: 'x' }))[1]).toBe(true)
  const waiting = mcp.call('shell', { command: 'echo ran > ran.txt' })
  await asked.promise
  expect((await mcp.call('time'))[1]).toBe(false)
  answered.resolve()
  expect(await waiting).toEqual([expect.any(String), false])
})

test('a script gets an answer to each line, also to one that is not JSON, and to more calls at once than a client needs', async () => {
  using at = home()
  const calls = repetitions({ fast: 100, deep: 1_000 })
  const request = (id: number, method: string, params: object) => JSON.stringify({ jsonrpc: '2.0', id, method, params })
  const info = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'script', version: '1' } }
  const lines = [
    request(0, 'initialize', info),
    '{',
    '[]',
    '"',
    ...Array.from({ length: calls }, (_, at) => request(at + 1, 'tools/call', { name: 'time', arguments: {} })),
  ]
  const { code, stdout } = await at.run(['mcp', 'serve'], { stdin: `${lines.join('\n')}\n`, timeoutMs: 120_000 })
  const answers = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  expect(code).toBe(0)
  expect(answers.filter(({ error }) => error?.code === -32700)).toHaveLength(3)
  expect(answers.filter(({ id, result }) => id !== 0 && result?.content)).toHaveLength(calls)
}, 120_000)

function lastLine(text: string) {
  return JSON.parse(text.split('\n').at(-1) ?? '')
}
