/** Tests the faults of a server in all three protocols: each ends in a ProviderFailure with a code. */

import { describe, expect, test } from 'bun:test'
import { dialects, type Speech, upTo } from '../../../test/support/dialects.ts'
import {
  ask,
  outcomeOf,
  plain,
  providerAt,
  question,
  realSleep,
  type Served,
  sends,
  serve,
  startCutter,
  startFake,
} from '../../../test/support/vendor-fake.ts'
import type { FailureCode } from '../../runtime/event.ts'
import type { WireConfig } from './provider-settings.ts'

const says =
  (speech: Speech): Served =>
  (dialect) =>
    sends(dialect.events(speech))

const status =
  (code: number, type: string, message: string, headers: Record<string, string> = {}): Served =>
  (dialect) =>
    new Response(dialect.errorBody(type, message), { status: code, headers: { 'content-type': 'application/json', ...headers } })
const html = '<!doctype html>\n<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>'

type Row = readonly [string, Served, FailureCode, Partial<WireConfig>?]

const failures: readonly Row[] = [
  ['a refused key is auth', status(401, 'authentication_error', 'invalid x-api-key'), 'auth'],
  ['a forbidden model is auth', status(403, 'permission_error', 'not allowed'), 'auth'],
  ['an empty account is auth, though it says 429', status(429, 'insufficient_quota', 'You exceeded your current quota'), 'auth'],
  ['too many requests is rate_limit', status(429, 'rate_limit_error', 'slow down'), 'rate_limit'],
  ['a server error is server', status(500, 'api_error', 'oops'), 'server'],
  ['an overloaded server is server', status(529, 'overloaded_error', 'Overloaded'), 'server'],
  ['a proxy that is down is server', plain(html, 'text/html', 502), 'server'],
  ['a gateway timeout is timeout', plain('upstream timed out', 'text/plain', 504), 'timeout'],
  [
    'a prompt that is too long is context_length',
    status(400, 'invalid_request_error', 'prompt is too long: 210000 tokens'),
    'context_length',
  ],
  ['a full context window is context_length', status(400, 'context_length_exceeded', 'maximum context length is 8192'), 'context_length'],
  ['a wrong request is bad_request', status(400, 'invalid_request_error', 'temperature: must be below 2'), 'bad_request'],
  ['an unknown model is bad_request', status(404, 'not_found_error', 'model: nope'), 'bad_request'],
  ['an error with an empty body still has a code', plain('', 'text/plain', 503), 'server'],
  ['an error with a body of garbage still has a code', plain('\u0000\u0001{{{', 'application/json', 500), 'server'],
  [
    'a redirect is not followed',
    () => new Response(null, { status: 307, headers: { location: 'http://169.254.169.254/' } }),
    'bad_response',
  ],
  ['a web page with status 200 is bad_response', plain(html, 'text/html'), 'bad_response'],
  ['a web page that calls itself a stream is bad_response', plain(html, 'text/event-stream'), 'bad_response'],
  ['an empty body is bad_response', plain('', 'text/event-stream'), 'bad_response'],
  ['white space for ever is bad_response', () => sends(Array(100).fill(' \n'.repeat(1000)), 'hold'), 'bad_response'],
  ['broken JSON instead of a stream is bad_response', plain('{"id": "x", "choi', 'application/json'), 'bad_response'],
  ['a JSON list is bad_response', plain('[]', 'application/json'), 'bad_response'],
  ['plain words are no reply', plain('Hello! How can I help?', 'text/plain'), 'network'],
  ['an event of broken JSON is bad_response', () => sends(['data: {"id":\n\n']), 'bad_response'],
  ['an event of another shape is bad_response', () => sends(['data: {"hello":"world"}\n\n']), 'bad_response'],
  ['JSON null as an event is bad_response', () => sends(['data: null\n\n']), 'bad_response'],
  [
    'an error with status 200 keeps its meaning',
    (dialect) => plain(dialect.errorBody('rate_limit_error', 'slow'), 'application/json')(dialect, { text: '' }),
    'rate_limit',
  ],
  [
    'a stream that begins with an error keeps its meaning',
    (dialect) => sends([dialect.errorEvent('overloaded_error', 'Overloaded')]),
    'server',
  ],
  ['a reply without text and calls is empty', says({}), 'empty'],
  ['a reply of nothing but white space is empty', says({ text: [' \n'] }), 'empty'],
  ['a reply of nothing but thinking is empty', says({ thinking: { text: ['hm'], signature: 's' } }), 'empty'],
  ['a flood of calls is bad_response', says({ calls: Array(257).fill({ id: 'c', name: 'time', args: ['{}'] }) }), 'bad_response'],
  ['silence after the question is timeout', () => new Promise<Response>(() => {}), 'timeout', { idleTimeoutS: 0.05 }],
  ['silence in the middle is timeout', (dialect) => sends(upTo(dialect, 'one'), 'hold'), 'timeout', { idleTimeoutS: 0.05 }],
  ['silence in an error body still has the code of the status', silentError, 'auth', { idleTimeoutS: 1 }],
  [
    'a drip that never ends is timeout',
    () =>
      sends(
        (function* () {
          for (;;) yield ': still here\n\n'
        })(),
        'close',
        5,
      ),
    'timeout',
    { totalTimeoutS: 0.08, idleTimeoutS: 0.05 },
  ],
  [
    'a line that never ends is too_large',
    () =>
      sends(
        (function* () {
          yield 'data: "'
          for (;;) yield 'x'.repeat(65_536)
        })(),
      ),
    'too_large',
    { maxResponseBytes: 10_000 },
  ],
  [
    'a JSON answer that never ends is too_large',
    () =>
      sends(
        (function* () {
          yield '{"a":"'
          for (;;) yield '\n'.repeat(65_536)
        })(),
      ),
    'too_large',
    { maxResponseBytes: 10_000 },
  ],
  [
    'an answer one byte over the limit is too_large',
    says({ text: ['x'.repeat(600), 'é'.repeat(200), 'x'] }),
    'too_large',
    { maxResponseBytes: 1_000 },
  ],
  [
    'thinking counts too',
    says({ thinking: { text: ['x'.repeat(1_001)], signature: 's' }, text: ['y'] }),
    'too_large',
    { maxResponseBytes: 1_000 },
  ],
  [
    'arguments count too',
    says({ calls: [{ id: 'a', name: 'time', args: ['{"x":"', 'y'.repeat(1_000), '"}'] }] }),
    'too_large',
    { maxResponseBytes: 1_000 },
  ],
  ['a default answer over 1 MiB is too_large', says({ text: Array(17).fill('x'.repeat(65_536)) }), 'too_large'],
]

function silentError(): Response {
  const body = new ReadableStream({ start: (controller) => controller.enqueue(new TextEncoder().encode('{"err')) })
  return new Response(body, { status: 401 })
}

for (const dialect of dialects) {
  describe(dialect.kind, () => {
    for (const [name, answer, code, over] of failures) {
      test(name, async () => {
        const { code: got, failure } = await serve(dialect, answer, over)
        expect([got, failure?.message]).toEqual([code, expect.stringContaining('"far"')])
        expect(failure?.message).not.toContain('sk-test-key')
      })
    }

    test('an error in mid-text is a failure after what was shown', async () => {
      const outcome = await serve(dialect, ({ errorEvent }) =>
        sends([...upTo(dialect, 'so far'), errorEvent('rate_limit_error', 'enough')]),
      )
      expect([outcome.shown, outcome.code]).toEqual(['so far', 'rate_limit'])
    })

    // chat/converse.test.ts tests that a chat.completions server may end a reply this way.
    if (dialect.kind !== 'openai-compatible')
      test('a stream that ends without its last event is network', async () => {
        expect((await serve(dialect, () => sends(upTo(dialect, 'one')))).code).toBe('network')
      })

    test('a connection that breaks in the middle is network', async () => {
      const cutter = startCutter(upTo(dialect, 'one'))
      const { provider } = providerAt(dialect, cutter)
      const { code, shown } = await outcomeOf(provider.chat(question, new AbortController().signal))
      cutter.stop()
      expect(code).toBe('network')
      expect('one').toStartWith(shown)
    })

    test('a refused connection is network and names the address', async () => {
      const gone = startFake(() => new Response())
      gone.stop()
      const { provider } = providerAt(dialect, gone)
      const { code, failure } = await outcomeOf(provider.chat(question, new AbortController().signal))
      expect([code, failure?.message]).toEqual(['network', expect.stringContaining(gone.url)])
    })

    test('JSON of another shape is no reply', async () => {
      const { code } = await serve(dialect, plain('{"hello": "world"}', 'application/json'))
      expect(code).toBeOneOf(['bad_response', 'server'])
    })

    test('Retry-After comes along in ms, as seconds, as a date, and never longer than a day', async () => {
      const waits = ['7', new Date(Date.now() + 60_000).toUTCString(), '99999999999', 'soon', '-5']
      const got = await Promise.all(waits.map((wait) => serve(dialect, status(429, 'rate_limit_error', 'slow', { 'retry-after': wait }))))
      const [seconds, date, huge, nonsense, negative] = got.map((outcome) => outcome.failure?.detail.retryAfterMs)
      expect([seconds, huge, nonsense, negative]).toEqual([7_000, 86_400_000, undefined, undefined])
      expect(date).toBeWithin(50_000, 60_001)
    })
  })
}

test('a refusal that names the time in words alone is asked again after that time', async () => {
  const [chat] = dialects
  if (!chat) throw new Error('no dialect')
  const message = `${'Rate limit reached. '.repeat(20)}Please try again in 40ms.`
  const answers = [() => new Response(JSON.stringify({ error: { message } }), { status: 429 }), () => sends(chat.events({ text: ['Hi.'] }))]
  const slept: number[] = []
  const fake = startFake((_, n) => answers[n]?.() ?? new Response('', { status: 500 }))
  const sleep = async (ms: number, signal: AbortSignal) => void (ms < 1_000 ? slept.push(ms) : await realSleep(ms, signal))
  const { provider } = providerAt(chat, fake, { config: { maxRetries: 1 }, deps: { sleep, random: () => 0 } })
  expect((await ask(provider)).parts).toEqual([{ type: 'text', text: 'Hi.' }])
  fake.stop()
  expect(slept).toContain(40)
})
