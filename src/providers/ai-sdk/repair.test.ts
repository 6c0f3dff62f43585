/** Tests replies that a vendor's library would refuse completely because of one unknown or missing member. */

import { describe, expect, test } from 'bun:test'
import { type Dialect, dialects } from '../../../test/support/dialects.ts'
import { type Outcome, plain, sends, serve } from '../../../test/support/vendor-fake.ts'
import type { Part } from '../../runtime/event.ts'

const of = (kind: Dialect['kind']): Dialect => {
  const found = dialects.find((dialect) => dialect.kind === kind)
  if (found === undefined) throw new Error('no dialect')
  return found
}
const [messages, responses] = [of('anthropic'), of('openai')]

const event = (data: { readonly type: string; readonly [key: string]: unknown }) => `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`
const head = event({ type: 'message_start', message: { usage: {} } })
const start = (index: number, block: unknown) => event({ type: 'content_block_start', index, content_block: block })
const delta = (index: number, said: unknown) => event({ type: 'content_block_delta', index, delta: said })
const stop = (index: number) => event({ type: 'content_block_stop', index })
const text = (index: number, words: string) =>
  start(index, { type: 'text', text: '' }) + delta(index, { type: 'text_delta', text: words }) + stop(index)
const ended = (reason = 'end_turn') => event({ type: 'message_delta', delta: { stop_reason: reason }, usage: {} })
const last = event({ type: 'message_stop' })

/** Splits the body into pieces of this size; one piece by default. */
const streams = (...events: readonly string[]) => serve(messages, () => sends([events.join('')]))
const apart = (...events: readonly string[]) => serve(messages, () => sends(events))
const whole = (answer: object) => serve(messages, plain(JSON.stringify(answer), 'application/json'), { stream: false })
const parts = ({ response, failure }: Outcome) => failure?.message ?? response?.parts

describe('a stream of the Messages API', () => {
  test('may hold blocks, deltas and events that nobody knows: the rest of it counts', async () => {
    const unknown = [
      start(1, { type: 'hologram', beams: 3 }),
      delta(1, { type: 'beam_delta', beam: 1 }),
      delta(1, { type: 'text_delta', text: 'not a text of ours' }),
      stop(1),
      event({ type: 'mood', mood: 'calm' }),
      event({ type: 'content_block_start', index: 7, content_block: null }),
      stop(7),
      'event: ping\ndata: {}\n\n',
    ]
    const known = [text(0, 'Hel'), ...unknown, start(2, { type: 'text', text: '' }), delta(2, { type: 'text_delta', text: 'lo' })]
    const odd = [delta(2, { type: 'glow_delta', glow: 1 }), delta(2, { type: 'citations_delta', citation: { type: 'rumour' } }), stop(2)]
    const expected: Part[] = [
      { type: 'text', text: 'Hel' },
      { type: 'text', text: 'lo' },
    ]
    expect(parts(await streams(head, ...known, ...odd, ended(), last))).toEqual(expected)
    expect(parts(await apart(head, ...known, ...odd, ended(), last))).toEqual(expected)
  })

  test('may miss id, model and counts, and end after its stop_reason', async () => {
    const { response, shown } = await streams(event({ type: 'message_start' }), text(0, 'Hi'), ended('max_tokens'))
    expect([shown, response?.stop, response?.model]).toEqual(['Hi', 'length', 'model-0'])
    expect(response?.usage.outputTokens).toBeGreaterThan(0)
    const bare = event({ type: 'message_delta', delta: { stop_reason: 'end_turn' } })
    expect(parts(await streams(head, text(0, 'Hi'), bare, last))).toEqual([{ type: 'text', text: 'Hi' }])
  })

  test('may say something where a block begins', async () => {
    const blocks = [
      start(0, { type: 'thinking', thinking: 'hm' }),
      delta(0, { type: 'thinking_delta', thinking: '?' }),
      stop(0),
      start(1, { type: 'text', text: 'Hel' }),
      delta(1, { type: 'text_delta', text: 'lo' }),
      stop(1),
    ]
    expect(parts(await streams(head, ...blocks, ended(), last))).toMatchObject([
      { type: 'thinking', text: 'hm?' },
      { type: 'text', text: 'Hello' },
    ])
  })

  test('keeps a call that has no name or no arguments for the model to be told', async () => {
    const calls = [
      start(0, { type: 'tool_use', id: 'a' }),
      stop(0),
      start(1, { type: 'tool_use', id: 'b', name: 't', input: ['x'] }),
      stop(1),
    ]
    expect(parts(await streams(head, ...calls, ended('tool_use'), last))).toEqual([
      { type: 'call', id: 'a', name: '', input: {} },
      { type: 'call', id: 'b', name: 't', input: {}, malformed: '["x"]' },
    ])
  })

  test('is a part of one when it stops without a stop_reason, unless the server never sends that member', async () => {
    const message = { usage: {}, stop_reason: null }
    const begun = event({ type: 'message_start', message })
    const silent = event({ type: 'message_delta', delta: { stop_reason: null }, usage: {} })
    const call = start(1, { type: 'tool_use', id: 'a', name: 't' }) + delta(1, { type: 'input_json_delta', partial_json: '{"pa' })
    for (const events of [
      [begun, text(0, 'Half'), last],
      [begun, text(0, 'Half')],
      [head, text(0, 'Half'), silent, last],
      [head, text(0, 'Half'), call],
      [begun, text(0, 'Half'), call, stop(1), last],
    ])
      expect(await streams(...events)).toEqual({ shown: 'Half', code: 'network', failure: expect.anything() })
    expect(parts(await streams(head, text(0, 'Hi'), last))).toEqual([{ type: 'text', text: 'Hi' }])
    const early = event({ type: 'message_start', message: { ...message, stop_reason: 'end_turn' } })
    expect(parts(await streams(early, text(0, 'Hi'), last))).toEqual([{ type: 'text', text: 'Hi' }])
  })

  test('is still a failure when it is cut, wrong in a known place, an error, or nothing that anybody knows', async () => {
    expect(await streams(head, text(0, 'Half'))).toMatchObject({ code: 'network' })
    expect(await streams(head, text(0, 'Half'), event({ type: 'message_delta', delta: {}, usage: {} }))).toMatchObject({ code: 'network' })
    expect(await streams(head, start(0, { type: 'text' }), delta(0, { type: 'text_delta', text: 7 }))).toMatchObject({
      code: 'bad_response',
    })
    expect(await streams('data: {"type":"mood"}\n\n')).toMatchObject({ code: 'bad_response' })
    for (const error of [{ type: 'overloaded_error', message: 'Overloaded' }, { message: 'Overloaded' }, 'Overloaded'])
      expect((await streams(head, event({ type: 'error', error }))).failure?.message).toContain('Overloaded')
    expect((await streams(head, 'data: {"error":{"message":"no such model"}}\n\n')).failure?.message).toContain('no such model')
  })
})

describe('a whole answer of the Messages API', () => {
  test('may hold blocks that nobody knows, thinking without a signature, and miss id, model and counts', async () => {
    const content = [
      { type: 'thinking', thinking: 'hm' },
      { type: 'hologram', beams: 3 },
      { type: 'text', text: 'Hi', citations: [{ type: 'rumour' }] },
      { type: 'tool_use', id: 'a', input: { path: 'x' } },
    ]
    const { response } = await whole({ content, stop_reason: 'tool_use', container: 7 })
    expect([response?.model, response?.stop]).toEqual(['model-0', 'tool_calls'])
    expect(response?.parts).toMatchObject([
      { type: 'thinking', text: 'hm' },
      { type: 'text', text: 'Hi' },
      { type: 'call', id: 'a', name: '', input: { path: 'x' } },
    ])
    expect(response?.usage.inputTokens).toBeGreaterThan(0)
    expect(parts(await whole({ type: 'message', content: 'Hi' }))).toEqual([{ type: 'text', text: 'Hi' }])
  })

  test('keeps the signature of a thought that has one', async () => {
    const { response } = await whole({
      content: [
        { type: 'thinking', thinking: 'hm', signature: 'sig' },
        { type: 'text', text: 'Hi' },
      ],
    })
    const maker = { provider: 'far', host: '127.0.0.1', model: 'model-0' }
    expect(response?.parts[0]).toEqual({ type: 'thinking', text: 'hm', meta: { anthropic: { signature: 'sig' }, maker } })
  })

  test('is still a failure when there is no content in it, or a text is none', async () => {
    expect(await whole({ id: 'x' })).toMatchObject({ code: 'bad_response' })
    expect(await whole({ content: [{ type: 'text', text: 7 }] })).toMatchObject({ code: 'bad_response' })
    expect(await whole({ content: [] })).toMatchObject({ code: 'empty' })
  })
})

describe('the Responses API', () => {
  const item = { type: 'function_call', arguments: { path: 'x' } }
  const output = [
    { type: 'hologram' },
    { type: 'message', role: 'assistant', id: 'm', content: [{ type: 'output_text', text: 'Hi', annotations: [] }] },
    item,
  ]

  test('may hold items that nobody knows, and a call without a name', async () => {
    const asked = serve(responses, plain(JSON.stringify({ output }), 'application/json'), { stream: false })
    expect(parts(await asked)).toMatchObject([{ text: 'Hi' }, { type: 'call', name: '', input: { path: 'x' } }])
  })

  test('is a part of an answer when its stream ends without response.completed', async () => {
    const events = responses.events({ text: ['Half'], calls: [{ id: 'a', name: 't', args: ['{"pa', 'th":"x"}'] }] })
    for (const upTo of [1, 2, 3].map((cut) => events.slice(0, -cut)))
      expect(await serve(responses, () => sends(upTo))).toEqual({ shown: 'Half', code: 'network', failure: expect.anything() })
    expect(await serve(responses, () => sends([...events.slice(0, -1), 'data: [DONE]\n\n']))).toMatchObject({ code: 'network' })
  })

  test('may hold keep-alives and a call without a name in a stream', async () => {
    const events = responses.events({ text: ['Hi'] })
    const added = (type: string) => event({ type: `response.output_item.${type}`, output_index: 5, item })
    const stream = [
      ...events.slice(0, -1),
      'data: {}\n\n',
      'event: ping\ndata: {"type":"ping"}\n\n',
      added('added'),
      added('done'),
      ...events.slice(-1),
    ]
    expect(parts(await serve(responses, () => sends(stream)))).toMatchObject([
      { text: 'Hi' },
      { type: 'call', name: '', input: { path: 'x' } },
    ])
  })
})
