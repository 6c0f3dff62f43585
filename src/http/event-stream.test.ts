import { expect, test } from 'bun:test'
import { until } from '../../test/support/until.ts'
import { openEventStream } from './event-stream.ts'

const connection = () => ({ address: '', stay: () => {}, disconnected: new AbortController().signal })

async function read(response: Response, most = Number.POSITIVE_INFINITY): Promise<string> {
  const decoder = new TextDecoder()
  let text = ''
  for await (const piece of response.body ?? []) {
    text += decoder.decode(piece, { stream: true })
    if (text.length >= most) break
  }
  return text
}

test('a text with line breaks of any kind stays one event, and cannot begin a field of its own', async () => {
  const stream = openEventStream({ connection: connection() })
  stream.send({ id: '1.0', data: 'a\nid: 9\r\nevent: x\rdata: y' })
  stream.send({ data: { a: 'b\nc' } })
  stream.end()
  expect(await read(stream.response)).toBe('id: 1.0\ndata: a\ndata: id: 9\ndata: event: x\ndata: data: y\n\ndata: {"a":"b\\nc"}\n\n')
})

test('whoever asks for the head alone holds no stream open', () => {
  const stream = openEventStream({ connection: { ...connection(), isHead: true }, opening: true })
  expect([stream.response.status, stream.disconnected.aborted]).toEqual([200, true])
})

test('a quiet stream shows now and then that it lives', async () => {
  const stream = openEventStream({ connection: connection(), pingMs: 20, opening: true })
  expect(await read(stream.response, 30)).toStartWith(': open\n\n: ping\n\n: ping')
  const silent = openEventStream({ connection: connection(), pingMs: 20 })
  expect(await read(silent.response, 10)).toStartWith(': ping\n\n')
})

test('a client that reads nothing is dropped when too much waits, or when it waits too long', async () => {
  const full = openEventStream({ connection: connection(), maxBytes: 1_000 })
  for (let at = 0; at < 9; at++) full.send({ data: 'x'.repeat(100) })
  expect(full.disconnected.aborted).toBe(false)
  full.send({ data: 'x'.repeat(200) })
  expect(full.disconnected.aborted).toBe(true)
  const stuck = openEventStream({ connection: connection(), pingMs: 10, maxWaitMs: 15 })
  stuck.send({ data: 'x' })
  await until(() => stuck.disconnected.aborted)
})

test('a client that leaves is noticed, and a recorder gets the events all the same', async () => {
  const frames: string[] = []
  const at = { ...connection(), recorder: { frame: (text: string) => void frames.push(text), end: () => void frames.push('end') } }
  const stream = openEventStream({ connection: at })
  stream.send({ data: 1 })
  await stream.response.body?.cancel()
  expect(stream.disconnected.aborted).toBe(true)
  stream.send({ data: 2 })
  stream.end()
  expect(frames).toEqual(['data: 1\n\n', 'data: 2\n\n', 'end'])
})
