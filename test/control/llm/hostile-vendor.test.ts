/** Vendors that break, lie or never end, and many calls at once: the budget is never passed by more than a vendor itself lies. */

import { afterEach, expect, test } from 'bun:test'
import fc from 'fast-check'
import { dialects } from '../../support/dialects.ts'
import { until } from '../../support/until.ts'
import { sends } from '../../support/vendor-fake.ts'
import { type Metered, startMetered } from './metered-server.ts'

const running: Metered[] = []
afterEach(() => {
  for (const one of running.splice(0)) one.stop()
})

function started(...given: Parameters<typeof startMetered>): Metered {
  const metered = startMetered(...given)
  running.push(metered)
  return metered
}

const ask = { model: 'm', max_tokens: 1_000, messages: [{ role: 'user', content: 'hi' }] }
const sse = (value: unknown) => `data: ${JSON.stringify(value)}\n\n`

test('fifteen calls at once never reserve and spend more than the limit; who got nothing is told to stop', async () => {
  const body = JSON.parse(dialects[0]?.whole({ text: ['x'] }) ?? '{}')
  body.usage = { prompt_tokens: 25, completion_tokens: 475 }
  const metered = started(
    async () => {
      expect(metered.plane.state.spent + metered.plane.state.reserved).toBeLessThanOrEqual(5_000)
      await Bun.sleep(20)
      return Response.json(body)
    },
    { limit: 5_000, sleep: (ms) => Bun.sleep(ms / 50) },
  )
  const answers = await Promise.all(Array.from({ length: 15 }, () => metered.post('/chat/completions', { ...ask, max_tokens: 600 })))
  const statuses = answers.map(({ status }) => status)
  expect(new Set(statuses)).toEqual(new Set([200, 402]))
  const served = statuses.filter((status) => status === 200).length
  expect(served).toBeGreaterThanOrEqual(8)
  expect(metered.plane.state.spent).toBe(served * 500)
  expect(metered.plane.state.spent).toBeLessThanOrEqual(5_000)
  expect(metered.plane.state.reserved).toBe(0)
})

test('what another call holds is free in a moment: who needs it is told to wait, and not to stop', async () => {
  const metered = started(() => sends([sse({ choices: [], usage: null })], 'hold'), { limit: 1_200, sleep: (ms) => Bun.sleep(ms / 100) })
  const first = (await metered.post('/chat/completions', { ...ask, stream: true })).body?.getReader()
  await first?.read()
  const answer = await metered.post('/chat/completions', ask)
  expect([answer.status, metered.plane.settled, metered.vendor.asked.length]).toEqual([429, [], 1])
  // Until here somebody holds the stream, so that it is not collected.
  await first?.cancel()
})

test.each([
  ['nothing', undefined],
  ['zero', { prompt_tokens: 0, completion_tokens: 0 }],
  ['less than nothing', { prompt_tokens: -5, completion_tokens: -1 }],
  ['words', { prompt_tokens: 'many', completion_tokens: {} }],
])('a vendor that counts %s costs the estimate of what was sent and seen', async (_, usage) => {
  const content = 'x'.repeat(3_000)
  const metered = started(() => Response.json({ choices: [{ index: 0, message: { content } }], usage }))
  await metered.post('/chat/completions', ask)
  expect(metered.plane.settled[0]).toBeGreaterThanOrEqual(1_000)
  expect(metered.plane.settled[0]).toBeLessThan(1_200)
})

test('a stream without counts costs what was seen', async () => {
  const chunk = sse({ choices: [{ index: 0, delta: { content: 'x'.repeat(300) } }] })
  const metered = started(() => sends([...Array(10).fill(chunk), 'data: [DONE]\n\n']))
  await (await metered.post('/chat/completions', { ...ask, stream: true })).text()
  expect(metered.plane.settled[0]).toBeGreaterThanOrEqual(1_000)
})

test('an event that never ends is cut, and the call is settled', async () => {
  const piece = 'x'.repeat(1_048_576)
  const metered = started(() => sends(['data: ', ...Array(40).fill(piece)]))
  const text = await (await metered.post('/chat/completions', { ...ask, stream: true })).text()
  expect(text).toContain('an event of more than')
  expect(text.length).toBeLessThan(1_000)
  expect([metered.plane.settled.length, metered.plane.state.reserved]).toEqual([1, 0])
})

test.each([
  'data: {"choices":[{"delta":',
  'data: no json\n\n: comment\n\nevent: x\n\n',
  '\n\n\n\n',
  '',
  'data: [1,2]\r\rdata: null\r\n\r\n',
])('the stream %j is passed on as it is and costs something', async (stream) => {
  const metered = started(() => sends([stream]))
  expect(await (await metered.post('/chat/completions', { ...ask, stream: true })).text()).toBe(stream)
  expect(metered.plane.settled[0]).toBeGreaterThan(0)
  expect(metered.plane.state.reserved).toBe(0)
})

test('a vendor that sends elsewhere is not followed, and the key stays where it is', async () => {
  const other = started(() => Response.json({}))
  const metered = started(() => new Response(null, { status: 307, headers: { location: `${other.vendor.url}/chat/completions` } }))
  const answer = await metered.post('/chat/completions', ask)
  expect(answer.status).toBe(502)
  // Where the operator's vendors are is nothing for a runner.
  expect(await answer.text()).not.toMatch(/127\.0\.0\.1|sk-vendor-key/)
  expect(metered.logged.join()).toContain(other.vendor.url.replace('/v1', ''))
  expect(other.vendor.asked).toEqual([])
})

test('when the control plane cannot see the run for ten seconds, the call ends', async () => {
  const metered = started(() => sends([sse({ choices: [] })], 'hold'), { sleep: (ms) => Bun.sleep(ms / 100) })
  const answer = await metered.post('/messages', { ...ask, stream: true })
  metered.plane.state.broken = true
  expect(await answer.text()).toContain('cannot check whether this run may continue')
  expect(metered.plane.settled.length).toBe(1)
})

test('one run asks at most sixteen models at once', async () => {
  const { promise, resolve } = Promise.withResolvers<void>()
  const metered = started(async () => {
    await promise
    return Response.json({ choices: [], usage: { prompt_tokens: 1 } })
  })
  const answers = Array.from({ length: 20 }, () => metered.post('/chat/completions', ask))
  await until(() => metered.vendor.asked.length >= 16)
  resolve()
  const statuses = (await Promise.all(answers)).map(({ status }) => status)
  expect(statuses.filter((status) => status === 429).length).toBe(4)
  expect((await metered.post('/chat/completions', ask)).status).toBe(200)
})

test('a settlement that fails is logged, and the answer arrives', async () => {
  const metered = started(() => new Response(dialects[0]?.whole({ text: ['x'] })))
  Object.assign(metered.plane.budget, { settle: () => Promise.reject(new Error('the database is away')) })
  expect((await metered.post('/chat/completions', ask)).status).toBe(200)
  expect(metered.logged.join()).toContain('the database is away')
})

test('who tries many tokens is slowed down; a right token is never refused for that', async () => {
  const metered = started(() => new Response(dialects[0]?.whole({ text: ['x'] })))
  const tries = Array.from({ length: 60 }, (_, n) => metered.post('/chat/completions', ask, { authorization: `Bearer cpr_${n}` }))
  const statuses = (await Promise.all(tries)).map(({ status }) => status)
  expect(statuses.filter((status) => status === 401).length).toBeLessThanOrEqual(55)
  expect(statuses).toContain(429)
  expect((await metered.post('/chat/completions', ask)).status).toBe(200)
})

test('whatever a runner sends and a vendor answers, nothing stays reserved and nothing fails inside', async () => {
  const answers = { next: '' }
  const metered = started(({ text }) => {
    const type = text.includes('"stream":true') ? 'text/event-stream' : 'application/json'
    return new Response(answers.next, { headers: { 'content-type': type } })
  })
  const field = fc.constantFrom(
    'model',
    'messages',
    'max_tokens',
    'stream',
    'stream_options',
    'n',
    'usage',
    'thinking',
    'type',
    'input',
    'choices',
    'delta',
  )
  const value = fc.oneof(
    fc.jsonValue({ maxDepth: 2 }),
    fc.constant(true),
    fc.integer(),
    fc.constant({ include_usage: false }),
    fc.constant({ toString: false }),
  )
  const body = fc.dictionary(field, value, { maxKeys: 8 })
  const spoken = body.map((one) => `data: ${JSON.stringify(one)}\n\n`)
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...dialects.map(({ path }) => path)),
      body,
      fc.array(spoken, { maxLength: 3 }),
      async (path, sent, said) => {
        answers.next = said.join('')
        const answer = await metered.post(path, sent)
        await answer.text()
        expect(answer.status).toBeOneOf([200, 400])
        expect(metered.plane.state.reserved).toBe(0)
      },
    ),
    { numRuns: 300 },
  )
  expect(metered.logged).toEqual([])
})
