/** A model's reply that is no answer, through every entrance: each says the same, and none takes it for a success. */

import { describe, expect, test } from 'bun:test'
import { createAgent } from '../../src/agent.ts'
import { llmCall } from '../../src/unix.ts'
import { type Nest, nest, type Result } from '../support/cli.ts'
import { daemon, person, stopping } from '../support/daemon.ts'
import { gateway } from '../support/gateway.ts'
import { chunk, document, done, type RawServer, startRaw, streamed } from '../support/raw-server.ts'
import { shell } from '../support/shell.ts'
import { isDeep } from '../support/tier.ts'
import { home, turn } from '../support/turns.ts'

const call = (...calls: readonly unknown[]) => streamed(chunk({ tool_calls: calls }) + chunk({}, 'tool_calls') + done)
const says = (text: string) => streamed(chunk({ content: text }) + chunk({}, 'stop') + done)
const list = { index: 0, id: 'a', type: 'function', function: { name: 'file_list', arguments: '{"path":"."}' } }

type Setting = Disposable & { readonly at: Nest; readonly server: RawServer }

/** A home whose model is a server that gives these answers. */
function asking(...answers: readonly string[]): Setting {
  const at = nest()
  const server = startRaw(answers)
  const table = `kind = "openai-compatible"\nbase_url = "${server.url}"\nmodel = "m"\nmax_retries = 1\n`
  at.config(`default_provider = "far"\nworkspace_dir = "${at.workspace}"\n[providers.models.far]\n${table}`)
  return {
    at,
    server,
    [Symbol.dispose]() {
      server[Symbol.dispose]()
      at[Symbol.dispose]()
    },
  }
}

const agent = (at: Nest, ...flags: string[]): Promise<Result> => at.run(['agent', '-m', 'hi', ...flags])

const fails: readonly (readonly [name: string, answer: string, code: string, words: string])[] = [
  ['an empty text', says(''), 'empty', 'answered with nothing: no text and no tool call'],
  ['an empty document', document({ choices: [{ message: { content: '' }, finish_reason: 'stop' }] }), 'empty', 'answered with nothing'],
  [
    'thinking alone',
    streamed(chunk({ reasoning: 'hm' }) + chunk({}, 'length') + done),
    'empty',
    'only thinking: it reached its output limit',
  ],
  ['calls that never come', streamed(chunk({}, 'tool_calls') + done), 'empty', 'answered with nothing'],
  [
    'a content filter',
    streamed(chunk({ content: 'Half' }) + chunk({}, 'content_filter') + done),
    'refused',
    'refused to answer (refusal or content filter): Half',
  ],
  [
    'a refusal',
    streamed(chunk({ refusal: 'I will not.' }) + chunk({}, 'stop') + done),
    'refused',
    'refused to answer (refusal or content filter): I will not.',
  ],
  [
    'a flood of calls',
    document({ choices: [{ message: { content: null, tool_calls: Array(10_000).fill(list) }, finish_reason: 'tool_calls' }] }),
    'bad_response',
    'asked for 10000 tool calls in one reply; at most 256 are taken',
  ],
]

/** In the fast tier each answer goes through one entrance of a kind, and one answer of each code through all. */
const ofEachCode = new Map(fails.toReversed().map((one) => [one[2], one[0]]))

describe.each(fails)('%s', (name, answer, code, words) => {
  const isWhole = isDeep || ofEachCode.get(code) === name

  test('ends agent and filter with 8, the reason on stderr and nothing on stdout', async () => {
    using setting = asking(answer)
    const { at } = setting
    const runs = [() => agent(at), ...(isWhole ? [() => at.run(['hi']), () => at.run([], { stdin: 'hi' })] : [])]
    for (const { stderr, ...rest } of await Promise.all(runs.map((run) => run()))) {
      expect([rest.code, rest.stdout, stderr]).toEqual([8, '', expect.stringMatching(/^error: provider "far" /)])
      expect(stderr).toContain(words)
      expect(stderr).not.toContain('livelock')
    }
  })

  if (!isWhole) return

  test('ends --json and stream-json with the same reason', async () => {
    using setting = asking(answer)
    const json = await agent(setting.at, '--json')
    expect([json.code, JSON.parse(json.stdout)]).toEqual([
      8,
      expect.objectContaining({
        result: null,
        ending: 'provider',
        exitCode: 8,
        errors: [{ code: `provider.${code}`, message: expect.stringContaining(words) }],
      }),
    ])
    const stream = await agent(setting.at, '--output-format', 'stream-json')
    const events = stream.stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(stream.code).toBe(8)
    expect(events.filter(({ type, isPartial }) => type !== 'init' && !isPartial)).toEqual([
      { type: 'error', code: `provider.${code}`, message: expect.stringContaining(words), recoverable: false },
      expect.objectContaining({ type: 'done', stopReason: 'error' }),
    ])
  })

  test('ends the library and the daemon with the same reason', async () => {
    using setting = asking(answer)
    const { at } = setting
    const answered = await llmCall('hi', { home: `${at.home}/.braidclaw`, env: { HOME: at.home } })
    expect(answered).toEqual({ ok: false, code: 'provider', message: expect.stringContaining(words), text: '' })
    await using running = stopping(await daemon(at))
    await using me = await person(running.dir)
    expect(await me.ask('hi')).toBe(code === 'empty' ? '' : 'Temporarily unavailable')
    expect((await running.stop()).stderr).toContain(words.slice(0, 40).replaceAll('"', '\\"'))
  }, 120_000)
})

test('as many calls at once as are taken run through to the end', async () => {
  using at = home()
  const writes = Array.from({ length: 256 }, (_, n) => ({ name: 'file_write', arguments: { path: `${n}.txt`, content: 'x' } }))
  const { code, stdout } = await turn(at, [{ tool_calls: writes }, { text: 'Done.' }], [], { timeoutMs: 30_000 })
  expect([code, stdout]).toEqual([4, 'Done.\n'])
}, 120_000)

test('a provider of your own that answers with nothing fails the run as well', async () => {
  using at = nest()
  const own = createAgent({
    cwd: at.workspace,
    home: `${at.home}/.braidclaw`,
    env: { HOME: at.home },
    modelCall: async function* () {
      yield { type: 'thinking', content: 'hm' }
    },
  })
  const errors: string[] = []
  for await (const event of own.run('hi')) if (event.type === 'error') errors.push(event.code)
  expect([errors, own.ending()?.code]).toEqual([['provider.empty'], 'provider'])
  await own.close()
})

describe('a call that cannot be read', () => {
  const surrogate = { ...list, function: { name: 'file_write', arguments: String.raw`{"path":"a.txt","content":"b\ud800"}` } }

  test.each<[string, unknown, string]>([
    ['has no name', { ...list, function: { name: '', arguments: '{}' } }, 'the call names no tool'],
    ['has neither name nor arguments', { index: 0, id: 'a', function: {} }, 'the call names no tool'],
    ['is no object', 'file_list', 'the call cannot be read'],
    ['is of a type nobody knows', { index: 0, id: 'a', type: 'custom', custom: { name: 'file_list' } }, 'the call cannot be read'],
    ['has a list for arguments', { ...list, function: { name: 'file_list', arguments: ['.'] } }, 'not a JSON object'],
    ['has a name with spaces around it', { ...list, function: { ...list.function, name: ' file_list ' } }, 'unknown tool " file_list "'],
    ['writes half a character', surrogate, '"content" holds half a character'],
  ])('%s: nothing runs, the model is told and corrects itself', async (_, broken, words) => {
    using setting = asking(call(broken), call(list), says('Now it works.'))
    const { at, server } = setting
    const { code, stdout, stderr } = await agent(at)
    expect([code, stdout]).toEqual([0, 'Now it works.\n'])
    expect(stderr).toContain('✗ Denied by ')
    const messages: readonly {
      readonly role: string
      readonly content: string
      readonly tool_calls?: readonly { readonly function: { readonly name: string } }[]
    }[] = JSON.parse(server.asked[1] ?? '').messages
    expect(messages.at(-1)).toMatchObject({ role: 'tool', content: expect.stringContaining(words) })
    // What goes back is what every vendor takes.
    for (const { tool_calls: calls = [] } of messages)
      for (const { function: said } of calls) expect(said.name).toMatch(/^[A-Za-z0-9_-]{1,64}$/)
    const receipts = JSON.parse((await at.run(['receipt', 'list', '--json'])).stdout)
    expect(receipts.map(({ status }: { status: string }) => status)).toEqual(['denied', 'allowed'])
    expect(await Bun.file(`${at.workspace}/a.txt`).exists()).toBe(false)
    if (!isDeep && broken !== surrogate) return
    expect((await at.run(['receipt', 'verify', '--deep'])).code).toBe(0)
    const { runId } = JSON.parse((await at.run(['run', 'list', '--json'])).stdout)[0]
    expect((await at.run(['replay', runId])).code).toBe(0)
  })

  test('is denied to the end where the model goes on like that, and the rounds are bounded', async () => {
    using setting = asking(call('file_list'))
    expect((await agent(setting.at, '--max-turns', '2')).code).toBe(5)
    expect(setting.server.asked).toHaveLength(3)
  })
})

describe('half a reply', () => {
  const half = chunk({ content: 'Half an ans' })
  const cuts: readonly (readonly [string, string])[] = [
    ['the connection breaks', streamed(half, 'cut')],
    ['the connection is closed without an end', streamed(half, 'close')],
    ['chunks name no reason, and the body ends properly', streamed(half)],
    ['chunks name no reason, and [DONE] comes', streamed(half + done)],
    ['an error comes', streamed(`${half}data: {"error":{"message":"model crashed"}}\n\n`)],
  ]

  test.each(cuts)('%s: nothing of it is printed into a pipe', async (_, answer) => {
    using setting = asking(answer)
    for (const { code, stdout, stderr } of await Promise.all([agent(setting.at), setting.at.run(['hi'])])) {
      expect([code, stdout]).toEqual([8, ''])
      expect(stderr).toContain('error: ')
    }
    expect((await shell(setting.at, 'braidclaw agent -m hi | wc -c', {})).stdout.trim()).toBe('0')
  })

  test('a call in a reply without a reason does not run, and --json says why', async () => {
    const write = { ...list, function: { name: 'file_write', arguments: '{"path":"a.txt","content":"b"}' } }
    using setting = asking(streamed(half + chunk({ tool_calls: [write] }) + done))
    const { code, stdout } = await agent(setting.at, '--json')
    const message = expect.stringContaining('ended without a finish reason')
    expect([code, JSON.parse(stdout).errors]).toEqual([8, [{ code: 'provider.bad_response', message }]])
    expect(await Bun.file(`${setting.at.workspace}/a.txt`).exists()).toBe(false)
    // A pipe has shown nothing, but the provider itself has: what the model says twice may differ.
    expect(setting.server.asked).toHaveLength(1)
  })

  test('/v1 says the error, whole and as a stream, and never that the model stopped', async () => {
    using setting = asking(streamed(half))
    await using serving = await gateway(setting.at)
    const asked = { model: 'braidclaw', messages: [{ role: 'user', content: 'go' }] }
    const whole = await serving.ask('/v1/chat/completions', asked)
    expect([whole.status, whole.body.error.message]).toEqual([502, expect.stringContaining('ended without a finish reason')])
    const headers = { authorization: `Bearer ${serving.token}`, 'content-type': 'application/json' }
    const body = JSON.stringify({ ...asked, stream: true })
    const text = await (await fetch(`${serving.url}/v1/chat/completions`, { method: 'POST', body, headers })).text()
    expect(text).toContain('ended without a finish reason')
    expect(text).not.toContain('"finish_reason":"stop"')
  }, 120_000)

  test('stream-json keeps its pieces: they are events, and the error follows', async () => {
    using setting = asking(streamed(half, 'close'))
    const { code, stdout } = await agent(setting.at, '--output-format', 'stream-json')
    const events = stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect([code, events.map(({ type, content = '' }) => `${type} ${content}`.trim())]).toEqual([
      8,
      ['init', 'text Half an ans', 'error', 'done'],
    ])
  })

  test('a terminal shows the pieces as they come', async () => {
    using setting = asking(streamed(half, 'close'))
    const { code, stdout } = await setting.at.terminal(['agent', '-m', 'hi'], [])
    expect(code).toBe(8)
    expect(stdout).toMatch(/Half an ans\nerror: /)
  })

  test('what a model said before its next reply failed is no answer of the filter', async () => {
    const first = streamed(chunk({ content: 'Let me look.', tool_calls: [list] }) + chunk({}, 'tool_calls') + done)
    using setting = asking(first, streamed(half, 'close'))
    const { code, stdout } = await setting.at.run(['--tools', 'default', 'hi'])
    expect([code, stdout]).toEqual([8, ''])
  })

  test.each([
    ['408 Request Timeout', 'Retry-After: 0\r\n'],
    ['504 Gateway Timeout', ''],
  ])('%s is asked again, and the answer is printed once', async (status, headers) => {
    using setting = asking(document({ error: { message: 'late' } }, status, headers), says('Here.'))
    const { code, stdout, stderr } = await agent(setting.at)
    expect([code, stdout, setting.server.asked.length]).toEqual([0, 'Here.\n', 2])
    expect(stderr).toContain('provider retry')
  })
})

test('texts around a call are each printed once, on a terminal as on a pipe', async () => {
  const parts = [
    { type: 'text', text: 'One.' },
    { type: 'tool_use', id: 'a', name: 'time', input: {} },
    { type: 'text', text: 'Two.' },
  ]
  const message = (content: readonly object[], stop: string) =>
    document({ type: 'message', content, stop_reason: stop, usage: { input_tokens: 1, output_tokens: 1 } })
  for (const way of ['pipe', 'terminal'] as const) {
    using at = nest()
    using server = startRaw([message(parts, 'tool_use'), message([{ type: 'text', text: 'Three.' }], 'end_turn')])
    at.config(
      `default_provider = "far"\nworkspace_dir = "${at.workspace}"\n[providers.models.far]\nkind = "anthropic"\nbase_url = "${server.url}"\nmodel = "m"\nstream = false\n`,
    )
    const run = way === 'pipe' ? agent(at) : at.terminal(['agent', '-m', 'hi'], [])
    const { stdout } = await run
    for (const words of ['One.', 'Two.', 'Three.']) expect(stdout.split(words)).toHaveLength(2)
  }
})
