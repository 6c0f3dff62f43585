/** Requests and answers that try to cost more than the ledger says: each is refused, limited, or counted as all that it may have cost. */

import { afterEach, describe, expect, test } from 'bun:test'
import { dialects, upTo } from '../../support/dialects.ts'
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

const chat = { model: 'm', messages: [{ role: 'user', content: 'hi' }] }
const sse = (value: unknown) => `data: ${JSON.stringify(value)}\n\n`
const done = 'data: [DONE]\n\n'
const usage = { prompt_tokens: 100, completion_tokens: 20 }
const answered = (fields: object = {}) => Response.json({ choices: [{ index: 0, message: { content: 'x' } }], usage, ...fields })

async function settledOnce({ plane }: Metered): Promise<number> {
  while (plane.settled.length === 0) await Bun.sleep(5)
  expect([plane.settled.length, plane.state.reserved]).toEqual([1, 0])
  return plane.settled[0] ?? 0
}

describe('a request', () => {
  test.each([0, -1, 1.5, 129, 1e308, '3', {}, true])('for n = %j answers is refused, and no vendor is asked', async (n) => {
    const { post, vendor, plane } = started(() => answered())
    const answer = await post('/chat/completions', { ...chat, max_tokens: 10, n })
    expect(answer.status).toBe(400)
    expect(await answer.text()).toContain('n: ')
    expect([vendor.asked, plane.reservedSums]).toEqual([[], []])
  })

  test('for three answers reserves all three', async () => {
    const { post, plane } = started(() => answered())
    expect((await post('/chat/completions', { ...chat, max_tokens: 1_000, n: 3 })).status).toBe(200)
    expect(plane.reservedSums[0]).toBeGreaterThanOrEqual(3_000)
  })

  test.each([
    { max_completion_tokens: 300, max_tokens: 90_000 },
    { max_completion_tokens: 0, max_tokens: 300 },
    { max_completion_tokens: 300, max_tokens: '90000' },
    { max_tokens: 300, n_predict: 90_000 },
  ])('with several limits %j reaches the vendor with one, the reserved one', async (limits) => {
    const { post, vendor, plane } = started(() => answered())
    await post('/chat/completions', { ...chat, ...limits })
    const sent = JSON.parse(vendor.asked[0]?.text ?? '{}')
    const kept = ['max_completion_tokens', 'max_tokens', 'n_predict'].flatMap((name) => (name in sent ? [sent[name]] : []))
    expect(kept).toEqual([300])
    expect(plane.reservedSums[0]).toBeLessThan(400)
  })

  test.each([
    ['/chat/completions', { ...chat, messages: [{ role: 'user', type: 'image', content: 'word '.repeat(70_000) }] }],
    ['/messages', { ...chat, type: 'image', max_tokens: 300, messages: [{ role: 'user', content: 'word '.repeat(70_000) }] }],
    ['/responses', { model: 'm', input: [{ type: 'input_image', image_url: 'x', text: 'word '.repeat(70_000) }] }],
  ])('to %s cannot hide its text in what only looks like a picture', async (path, body) => {
    const { post, vendor } = started(() => answered(), { limit: 50_000 })
    expect((await post(path, body)).status).toBe(402)
    expect(vendor.asked).toEqual([])
  })

  const asInput = (path: string, part: object) => {
    const messages = [{ role: 'user', content: [part] }]
    return path === '/responses' ? { model: 'm', input: messages } : { ...chat, max_tokens: 300, messages }
  }

  test.each([
    ['/chat/completions', { type: 'file', file: { file_id: 'file-1' } }],
    ['/responses', { type: 'input_file', file_id: 'file-1' }],
    ['/responses', { type: 'input_file', file_url: 'https://example.org/long.pdf' }],
    ['/messages', { type: 'document', source: { type: 'url', url: 'https://example.org/long.pdf' } }],
    ['/messages', { type: 'tool_result', content: [{ type: 'document', source: { type: 'file', file_id: 'file_1' } }] }],
    ['/messages', { type: 'container_upload', file_id: 'file_1' }],
  ])('to %s that only names a document, %j, is refused, and no vendor is asked', async (path, part) => {
    const { post, vendor, plane } = started(() => answered())
    const answer = await post(path, asInput(path, part))
    expect([answer.status, (await answer.text()).includes('input that is not in the request')]).toEqual([400, true])
    expect([vendor.asked, plane.reservedSums]).toEqual([[], []])
  })

  test('with a hidden number of answers is refused', async () => {
    const { post, vendor } = started(() => answered())
    expect((await post('/chat/completions', { ...chat, best_of: 20 })).status).toBe(400)
    expect(vendor.asked).toEqual([])
  })

  const picture = 'A'.repeat(1_000_000)
  test.each([
    ['/chat/completions', { type: 'image_url', image_url: { url: `data:image/png;base64,${picture}` } }],
    ['/messages', { type: 'image', source: { type: 'base64', media_type: 'image/png', data: picture } }],
    ['/responses', { type: 'input_image', image_url: `data:image/png;base64,${picture}` }],
    ['/responses', { type: 'input_image', file_id: 'file-1' }],
    ['/messages', { type: 'image', source: { type: 'file', file_id: 'file_1' } }],
  ])('to %s with a real picture costs what a picture costs', async (path, part) => {
    const { post, plane } = started(() => answered(), { limit: 50_000 })
    await post(path, asInput(path, part))
    expect(plane.reservedSums[0]).toBeGreaterThan(2_500)
    expect(plane.reservedSums[0]).toBeLessThan(20_000)
  })
})

describe('an answer', () => {
  const hidden = { ...usage, total_tokens: 900 }
  const inResponses = { input_tokens: 100, output_tokens: 20, total_tokens: 900 }
  const stop = { index: 0, delta: {}, finish_reason: 'stop' }
  test.each([
    ['/chat/completions', () => answered({ usage: hidden })],
    ['/chat/completions', () => sends([sse({ choices: [stop] }), sse({ choices: [], usage: hidden }), done])],
    ['/responses', () => Response.json({ object: 'response', output: [], usage: inResponses })],
    ['/responses', () => sends([sse({ type: 'response.completed', response: { object: 'response', usage: inResponses } })])],
  ])('of %s whose thinking stands only in the total costs the total', async (path, answer) => {
    const metered = started(answer)
    await (await metered.post(path, { ...chat, input: 'hi', max_tokens: 1_000, max_output_tokens: 1_000 })).text()
    expect(await settledOnce(metered)).toBe(900)
  })

  test('with work of the vendor before it costs that too', async () => {
    const iterations = [
      { type: 'compaction', input_tokens: 5_000, output_tokens: 700 },
      { type: 'message', input_tokens: 100, output_tokens: 20 },
    ]
    const metered = started(() =>
      Response.json({ type: 'message', content: [], usage: { input_tokens: 100, output_tokens: 20, iterations } }),
    )
    await metered.post('/messages', { ...chat, max_tokens: 1_000 })
    expect(await settledOnce(metered)).toBe(5_820)
  })

  test('that is no JSON costs what was seen', async () => {
    const metered = started(() => new Response('x'.repeat(30_000), { headers: { 'content-type': 'application/json' } }))
    await metered.post('/chat/completions', { ...chat, max_tokens: 500 })
    expect(await settledOnce(metered)).toBeGreaterThanOrEqual(10_000)
  })

  test('that is a stream by another spelling of its type arrives event by event', async () => {
    const metered = started(() => {
      const { body } = sends([sse({ choices: [{ index: 0, delta: { content: 'Hel' } }] })], 'hold')
      return new Response(body, { headers: { 'content-type': 'Text/Event-Stream' } })
    })
    const answer = await metered.post('/chat/completions', { ...chat, stream: true })
    const piece = await answer.body?.getReader().read()
    expect(new TextDecoder().decode(piece?.value)).toContain('Hel')
  })

  test('that refuses without end is cut, and costs nothing', async () => {
    const metered = started(() => {
      const piece = new Uint8Array(65_536).fill(120)
      return new Response(new ReadableStream({ pull: (controller) => controller.enqueue(piece) }), { status: 400 })
    })
    const answer = await metered.post('/chat/completions', chat)
    expect(answer.status).toBe(400)
    expect((await answer.text()).length).toBeLessThanOrEqual(65_536)
    expect([metered.plane.settled, metered.plane.state.reserved]).toEqual([[], 0])
  })
})

/** Nobody can say what a vendor wrote, or thought without showing it, when nobody heard its last word. */
describe('an answer whose end nobody saw costs all that was reserved', () => {
  const early = { index: 0, delta: {}, finish_reason: null }
  test.each([
    ['that shows little', [sse({ choices: [{ index: 0, delta: { content: 'Hel' } }] })]],
    ['that shows nothing', [': thinking\n\n']],
    ['that counts too early', [sse({ choices: [], usage }), sse({ choices: [{ index: 0, delta: { content: 'x'.repeat(300) } }] })]],
    ['that counts while it goes on', [sse({ choices: [early], usage }), sse({ choices: [early], usage })]],
  ])('a stream %s, when the client goes', async (_, events) => {
    const metered = started(() => sends(events, 'hold'))
    const gone = new AbortController()
    const answer = await fetch(`${metered.url}/chat/completions`, {
      method: 'POST',
      headers: { authorization: 'Bearer cpr_test', 'content-type': 'application/json' },
      body: JSON.stringify({ ...chat, max_tokens: 5_000, stream: true }),
      signal: gone.signal,
    })
    const reader = answer.body?.getReader()
    for (let text = ''; !text.includes(events.at(-1) ?? ''); ) text += new TextDecoder().decode((await reader?.read())?.value)
    gone.abort()
    expect(await settledOnce(metered)).toBeGreaterThanOrEqual(metered.plane.reservedSums[0] ?? Number.POSITIVE_INFINITY)
  })

  test('a document, when the client goes', async () => {
    const metered = started(() => new Promise<Response>(() => {}))
    const gone = new AbortController()
    const asking = metered.post('/chat/completions', { ...chat, max_tokens: 5_000 }, { authorization: 'Bearer cpr_test' }, gone.signal)
    asking.catch(() => {})
    while (metered.vendor.asked.length === 0) await Bun.sleep(5)
    gone.abort()
    expect(await settledOnce(metered)).toBeGreaterThanOrEqual(5_000)
  })

  test.each(dialects.map((dialect) => [dialect.path, dialect] as const))('a stream of %s that only stops', async (path, dialect) => {
    const metered = started(() => sends(upTo(dialect, 'Hel')))
    await (await metered.post(path, { ...chat, input: 'hi', max_tokens: 5_000, max_output_tokens: 5_000, stream: true })).text()
    expect(await settledOnce(metered)).toBeGreaterThanOrEqual(5_000)
  })

  test('but one whose count was the last thing seen costs that count', async () => {
    const metered = started(() => sends([sse({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }), sse({ choices: [], usage })]))
    await (await metered.post('/chat/completions', { ...chat, max_tokens: 5_000, stream: true })).text()
    expect(await settledOnce(metered)).toBe(120)
  })
})
