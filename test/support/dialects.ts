/** Formats model replies in each vendor's real wire format. It has no tests of its own. */

import type { WireKind } from '../../src/providers/wire/provider-settings.ts'

/** A model's reply, which a dialect formats for its wire. */
export type Speech = {
  readonly thinking?: { readonly text: readonly string[]; readonly signature: string }
  readonly text?: readonly string[]
  readonly calls?: readonly { readonly id: string; readonly name: string; readonly args: readonly string[] }[]
  /** True: the deltas of several calls alternate. */
  readonly interleaved?: boolean
}

export type Dialect = {
  readonly kind: Exclude<WireKind, 'plugin'>
  readonly path: string
  /** Returns one SSE event each, complete with its blank line. */
  events(speech: Speech): readonly string[]
  /** Returns the answer to a request without streaming. */
  whole(speech: Speech): string
  /** Returns an error in the middle of a stream. */
  errorEvent(type: string, message: string): string
  errorBody(type: string, message: string): string
}

const sse = (data: unknown) => `data: ${JSON.stringify(data)}\n\n`
const named = (data: { type: string } & Record<string, unknown>) => `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`

/** Returns start, deltas and end of each call, one call after the other or alternating. */
function callEvents<T>(
  speech: Speech,
  spell: { start(n: number): T; delta(n: number, text: string): T; end(n: number): readonly T[] },
): T[] {
  const calls = speech.calls ?? []
  if (!speech.interleaved)
    return calls.flatMap((call, n) => [spell.start(n), ...call.args.map((text) => spell.delta(n, text)), ...spell.end(n)])
  const longest = Math.max(...calls.map((call) => call.args.length))
  const turns = Array.from({ length: longest }, (_, turn) =>
    calls.flatMap((call, n) => (call.args[turn] === undefined ? [] : [spell.delta(n, call.args[turn])])),
  )
  return [...calls.map((_, n) => spell.start(n)), ...turns.flat(), ...calls.flatMap((_, n) => spell.end(n))]
}

const completions: Dialect = {
  kind: 'openai-compatible',
  path: '/chat/completions',
  events(speech) {
    const chunk = (delta: unknown, finish: string | null = null) =>
      sse({
        id: 'c1',
        object: 'chat.completion.chunk',
        created: 1,
        model: 'model-1',
        choices: [{ index: 0, delta, finish_reason: finish }],
      })
    const tool = (n: number, call: unknown) => chunk({ tool_calls: [{ index: n, ...Object(call) }] })
    return [
      chunk({ role: 'assistant', content: null }),
      ...(speech.thinking?.text ?? []).map((text) => chunk({ reasoning_content: text })),
      ...(speech.text ?? []).map((text) => chunk({ content: text })),
      ...callEvents(speech, {
        start: (n) => tool(n, { id: speech.calls?.[n]?.id, type: 'function', function: { name: speech.calls?.[n]?.name, arguments: '' } }),
        delta: (n, text) => tool(n, { function: { arguments: text } }),
        end: () => [],
      }),
      chunk({}, speech.calls ? 'tool_calls' : 'stop'),
      sse({
        id: 'c1',
        object: 'chat.completion.chunk',
        created: 1,
        model: 'model-1',
        choices: [],
        usage: { prompt_tokens: 100, completion_tokens: 20, total_tokens: 120, prompt_tokens_details: { cached_tokens: 60 } },
      }),
      'data: [DONE]\n\n',
    ]
  },
  whole: (speech) =>
    JSON.stringify({
      id: 'c1',
      object: 'chat.completion',
      created: 1,
      model: 'model-1',
      choices: [
        {
          index: 0,
          message: {
            role: 'assistant',
            content: speech.text?.join('') ?? null,
            tool_calls: speech.calls?.map(({ id, name, args }) => ({ id, type: 'function', function: { name, arguments: args.join('') } })),
          },
          finish_reason: speech.calls ? 'tool_calls' : 'stop',
        },
      ],
      usage: { prompt_tokens: 100, completion_tokens: 20, total_tokens: 120, prompt_tokens_details: { cached_tokens: 60 } },
    }),
  errorEvent: (type, message) => sse({ error: { type, message, code: type } }),
  errorBody: (type, message) => JSON.stringify({ error: { type, message, code: type, param: null } }),
}

const usage = { input_tokens: 30, cache_read_input_tokens: 60, cache_creation_input_tokens: 10, output_tokens: 20 }

const messages: Dialect = {
  kind: 'anthropic',
  path: '/messages',
  events(speech) {
    const start = (index: number, block: unknown) => named({ type: 'content_block_start', index, content_block: block })
    const delta = (index: number, part: unknown) => named({ type: 'content_block_delta', index, delta: part })
    const stop = (index: number) => named({ type: 'content_block_stop', index })
    const [textAt, callsAt] = [speech.thinking ? 1 : 0, (speech.thinking ? 1 : 0) + (speech.text ? 1 : 0)]
    const thinking = speech.thinking && [
      start(0, { type: 'thinking', thinking: '', signature: '' }),
      ...speech.thinking.text.map((text) => delta(0, { type: 'thinking_delta', thinking: text })),
      delta(0, { type: 'signature_delta', signature: speech.thinking.signature }),
      stop(0),
    ]
    const text = speech.text && [
      start(textAt, { type: 'text', text: '' }),
      ...speech.text.map((piece) => delta(textAt, { type: 'text_delta', text: piece })),
      stop(textAt),
    ]
    return [
      named({
        type: 'message_start',
        message: {
          id: 'msg_1',
          type: 'message',
          role: 'assistant',
          model: 'model-1',
          content: [],
          stop_reason: null,
          stop_sequence: null,
          usage: { ...usage, output_tokens: 1 },
        },
      }),
      named({ type: 'ping' }),
      ...(thinking ?? []),
      ...(text ?? []),
      ...callEvents(speech, {
        start: (n) => start(callsAt + n, { type: 'tool_use', id: speech.calls?.[n]?.id, name: speech.calls?.[n]?.name, input: {} }),
        delta: (n, json) => delta(callsAt + n, { type: 'input_json_delta', partial_json: json }),
        end: (n) => [stop(callsAt + n)],
      }),
      named({ type: 'message_delta', delta: { stop_reason: speech.calls ? 'tool_use' : 'end_turn', stop_sequence: null }, usage }),
      named({ type: 'message_stop' }),
    ]
  },
  whole: (speech) =>
    JSON.stringify({
      id: 'msg_1',
      type: 'message',
      role: 'assistant',
      model: 'model-1',
      content: [
        ...(speech.text ? [{ type: 'text', text: speech.text.join('') }] : []),
        ...(speech.calls ?? []).map(({ id, name, args }) => ({ type: 'tool_use', id, name, input: JSON.parse(args.join('')) })),
      ],
      stop_reason: speech.calls ? 'tool_use' : 'end_turn',
      stop_sequence: null,
      usage,
    }),
  errorEvent: (type, message) => named({ type: 'error', error: { type, message } }),
  errorBody: (type, message) => JSON.stringify({ type: 'error', error: { type, message } }),
}

const responsesUsage = {
  input_tokens: 100,
  input_tokens_details: { cached_tokens: 60 },
  output_tokens: 20,
  output_tokens_details: { reasoning_tokens: 0 },
  total_tokens: 120,
}

const responses: Dialect = {
  kind: 'openai',
  path: '/responses',
  events(speech) {
    const base = { id: 'resp_1', object: 'response', created_at: 1, model: 'model-1', service_tier: null }
    const added = (output_index: number, item: unknown) => named({ type: 'response.output_item.added', output_index, item })
    const done = (output_index: number, item: unknown) => named({ type: 'response.output_item.done', output_index, item })
    const [textAt, callsAt] = [speech.thinking ? 1 : 0, (speech.thinking ? 1 : 0) + (speech.text ? 1 : 0)]
    const reasoning = { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: speech.thinking?.signature }
    const thinking = speech.thinking && [
      added(0, { ...reasoning, encrypted_content: null }),
      named({ type: 'response.reasoning_summary_part.added', item_id: 'rs_1', output_index: 0, summary_index: 0 }),
      ...speech.thinking.text.map((delta) =>
        named({ type: 'response.reasoning_summary_text.delta', item_id: 'rs_1', output_index: 0, summary_index: 0, delta }),
      ),
      done(0, { ...reasoning, summary: [{ type: 'summary_text', text: speech.thinking.text.join('') }] }),
    ]
    const message = { type: 'message', id: 'msg_1', role: 'assistant', status: 'completed', content: [] }
    const text = speech.text && [
      added(textAt, message),
      ...speech.text.map((delta) =>
        named({ type: 'response.output_text.delta', item_id: 'msg_1', output_index: textAt, content_index: 0, delta }),
      ),
      done(textAt, { ...message, content: [{ type: 'output_text', text: speech.text.join(''), annotations: [] }] }),
    ]
    const item = (n: number, args: string) => {
      const call = speech.calls?.[n]
      return { type: 'function_call', id: `fc_${n}`, call_id: call?.id, name: call?.name, arguments: args, status: 'completed' }
    }
    return [
      named({ type: 'response.created', response: base }),
      named({ type: 'response.in_progress', response: base }),
      ...(thinking ?? []),
      ...(text ?? []),
      ...callEvents(speech, {
        start: (n) => added(callsAt + n, item(n, '')),
        delta: (n, delta) =>
          named({ type: 'response.function_call_arguments.delta', item_id: `fc_${n}`, output_index: callsAt + n, delta }),
        end: (n) => [done(callsAt + n, item(n, speech.calls?.[n]?.args.join('') ?? ''))],
      }),
      named({ type: 'response.completed', response: { ...base, incomplete_details: null, usage: responsesUsage } }),
    ]
  },
  whole: (speech) =>
    JSON.stringify({
      id: 'resp_1',
      object: 'response',
      created_at: 1,
      model: 'model-1',
      error: null,
      incomplete_details: null,
      output: [
        ...(speech.text
          ? [
              {
                type: 'message',
                id: 'msg_1',
                role: 'assistant',
                status: 'completed',
                content: [{ type: 'output_text', text: speech.text.join(''), annotations: [] }],
              },
            ]
          : []),
        ...(speech.calls ?? []).map(({ id, name, args }, n) => ({
          type: 'function_call',
          id: `fc_${n}`,
          call_id: id,
          name,
          arguments: args.join(''),
          status: 'completed',
        })),
      ],
      usage: responsesUsage,
    }),
  errorEvent: (type, message) => named({ type: 'error', sequence_number: 9, error: { type, code: type, message, param: null } }),
  errorBody: (type, message) => JSON.stringify({ error: { type, message, code: type, param: null } }),
}

export const dialects: readonly Dialect[] = [completions, messages, responses]

/** Returns a reply that stops right after the delta with `word`. */
export function upTo(dialect: Dialect, word: string): readonly string[] {
  const events = dialect.events({ text: [word, 'more'] })
  return events.slice(0, events.findIndex((event) => event.includes(`"${word}"`)) + 1)
}
