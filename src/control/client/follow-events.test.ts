import { expect, test } from 'bun:test'
import { PlaneRefusal } from '../contract/plane-refusal.ts'
import { followEvents } from './control-client.ts'
import type { ControlRequest, Transport } from './transport.ts'

const frame = (id: number) => `id: ${id}\ndata: ${JSON.stringify({ id })}\n\n`
const stream = (...pieces: string[]) =>
  new Response(
    new ReadableStream({
      start(controller) {
        for (const piece of pieces) controller.enqueue(new TextEncoder().encode(piece))
        controller.close()
      },
    }),
    { headers: { 'content-type': 'text/event-stream' } },
  )

function answering(...answers: (Response | Error)[]) {
  const calls: ControlRequest[] = []
  const send = async (call: ControlRequest) => {
    calls.push(call)
    const answer = answers.shift()
    if (answer instanceof Response) return answer
    throw answer ?? new PlaneRefusal('unauthorized', 'over')
  }
  return { calls, transport: { send } as Transport }
}
const options = { sleep: async () => {}, random: () => 0 }

async function read(transport: Transport, most = 99): Promise<number[]> {
  const ids: number[] = []
  for await (const { id } of followEvents(transport, options, { after: 0, type: 'x' }, new AbortController().signal))
    if (ids.push(id) >= most) break
  return ids
}

test('after each break it asks again after the last event it had, and pieces may be cut anywhere', async () => {
  const { transport, calls } = answering(
    stream(': open\n\n', frame(1), frame(2).slice(0, 9), frame(2).slice(9), 'id: 3\nda'),
    new PlaneRefusal('unavailable', 'down'),
    stream(`${frame(3)}: ping\n\n${frame(4)}`),
  )
  await expect(read(transport, 5)).rejects.toMatchObject({ code: 'unauthorized' })
  expect(calls.map(({ query }) => query)).toEqual([0, 2, 2, 4, 4, 4].map((after) => ({ after, type: 'x' })))
})

test('one refusal and a page of a portal do not end it', async () => {
  const page = new Response('<html>', { headers: { 'content-type': 'text/html' } })
  const { transport } = answering(page, new PlaneRefusal('unauthorized', 'once'), stream(frame(1)), new PlaneRefusal('forbidden', 'once'))
  await expect(read(transport)).rejects.toMatchObject({ message: 'over' })
})

test('it ends when its reader stops', async () => {
  const { transport, calls } = answering(stream(frame(7), frame(8)))
  expect(await read(transport, 1)).toEqual([7])
  expect(calls).toHaveLength(1)
})
