/** The event hub of a host in one process: live, stored and resumed events, in order, without gap or double. */

import { expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Host } from '../../src/host/api.ts'
import type { HostEvent, Subscription } from '../../src/host/events/host-event.ts'
import { openRecords } from '../../src/host/open/open-records.ts'
import { clearConversations } from '../../src/memory/conversations/delete-conversations.ts'
import type { ModelCall } from '../../src/providers/model-call.ts'
import { begin, calling, events, place, says, waiting } from '../support/host.ts'

const numbered = (seen: readonly HostEvent[]) => seen.filter(({ seq }) => seq !== undefined)
const typesOf = (seen: readonly HostEvent[]) => seen.map(({ event }) => event.type)
const ended = ({ event }: HostEvent) => event.type === 'run_ended'

/** Reads until so many events match; fails by the test's own time limit. */
async function take(host: Host, wanted: Subscription, isLast: (event: HostEvent) => boolean, count = 1): Promise<HostEvent[]> {
  const seen: HostEvent[] = []
  let left = count
  for await (const event of host.events.subscribe(wanted)) {
    seen.push(event)
    if (isLast(event)) left -= 1
    if (left === 0) break
  }
  return seen
}

test('a subscriber gets the events of a turn with numbers, and the text that streams without', async () => {
  using at = place()
  const host = await at.host()
  const live = take(host, {}, ended)
  const conversation = await begin(host, calling('file_read', { path: 'notes.md' }))
  const own = await events(conversation)
  const seen = await live
  expect(typesOf(numbered(seen))).toEqual(['run_started', 'init', 'tool_use', 'tool_result', 'text', 'done', 'run_ended'])
  expect(seen.some(({ seq, event }) => seq === undefined && event.type === 'text' && event.isPartial)).toBe(true)
  const shown = numbered(seen).map(({ event }) => event)
  expect(shown).toEqual(expect.arrayContaining(own.filter((event) => !(event.type === 'text' && event.isPartial))))
  expect(seen.every(({ runId, conversationId, channel }) => runId && conversationId === conversation.id && channel === 'test')).toBe(true)
  await host.close()
})

test('who subscribes later gets the same numbered events from the journal, from each position on', async () => {
  using at = place()
  const host = await at.host()
  const live = take(host, {}, ended, 2)
  await events(await begin(host, calling('file_read', { path: 'notes.md' })))
  await events(await begin(host, calling('file_read', { path: 'missing.md' })))
  const all = numbered(await live)
  for (const [index, { id = '' }] of all.entries()) {
    const rest = all.slice(index + 1)
    if (rest.length === 0) break
    const again = await take(host, { after: id }, ({ id }) => id === all.at(-1)?.id)
    expect(numbered(again)).toEqual(rest)
  }
  expect(numbered(await take(host, { after: 0 }, ended, 2))).toEqual(all)
  await host.close()
})

test('what is no position is refused, and says what one looks like', async () => {
  using at = place()
  const host = await at.host()
  for (const after of ['x', '1.', '-1', '1.2.3', Number.NaN, '9'.repeat(20)])
    expect(() => host.events.subscribe({ after })).toThrow('is not an event id')
  await host.close()
})

test('a subscription of one conversation gets nothing of another', async () => {
  using at = place()
  const host = await at.host()
  const [one, other] = [await begin(host, says('one')), await begin(host, says('other'))]
  const live = take(host, { conversationId: other.id }, ended)
  await events(one)
  await events(other)
  expect((await live).every(({ conversationId }) => conversationId === other.id)).toBe(true)
  const stored = await take(host, { conversationId: other.id, after: 0 }, ended)
  expect(new Set(stored.map(({ conversationId }) => conversationId))).toEqual(new Set([other.id]))
  await host.close()
})

test('a question is told when it opens and when it closes', async () => {
  using at = place()
  const host = await at.host()
  const live = take(host, {}, ended)
  const conversation = await begin(host, calling('file_write', { path: 'a.txt', content: 'a' }))
  for await (const event of conversation.run('go'))
    if (event.type === 'approval_gate') void conversation.approve(event.gateId, { allow: true, by: 'ann' })
  const seen = await live
  const open = seen.flatMap(({ event }) => (event.type === 'approval_open' ? [event.approval] : []))
  expect(open).toMatchObject([{ tool: 'file_write', about: 'call', risk: 'medium', conversationId: conversation.id }])
  expect(seen.flatMap(({ event }) => (event.type === 'approval_closed' ? [event] : []))).toEqual([
    { type: 'approval_closed', id: open[0]?.id ?? '', state: 'allowed', by: 'ann' },
  ])
  await host.close()
})

test('the emergency stop is told when it is set and when it is cleared', async () => {
  using at = place()
  const host = await at.host()
  const stops = take(host, {}, ({ event }) => event.type === 'estop', 2)
  await Bun.sleep(20)
  writeFileSync(join(at.home, 'ESTOP'), 'enough\n')
  await Bun.sleep(400)
  await Bun.$`rm ${join(at.home, 'ESTOP')}`
  expect((await stops).map(({ event }) => event)).toEqual([
    { type: 'estop', set: true, reason: 'enough' },
    { type: 'estop', set: false },
  ])
  await host.close()
})

test('a subscriber that takes nothing is ended and told why, and continues from its number', async () => {
  using at = place()
  const host = await at.host()
  const many: ModelCall = async function* (messages) {
    if (messages.at(-1)?.role === 'tool') return yield { type: 'text', content: 'done' }
    for (let call = 0; call < 700; call += 1) yield { type: 'tool_use', name: 'time', input: {} }
  }
  const slow = host.events.subscribe({})
  const first = slow.next()
  await events(await begin(host, many))
  await first
  const seen = await Array.fromAsync(slow)
  expect(seen.at(-1)?.event).toMatchObject({ type: 'subscription_ended', reason: 'slow' })
  const last = numbered(seen).at(-1)
  const rest = await take(host, { after: last?.id ?? '' }, ended)
  const whole = numbered(await take(host, { after: 0 }, ended))
  expect([...numbered([...seen]), ...numbered(rest)].map(({ id }) => id)).toEqual(whole.slice(1).map(({ id }) => id))
  await host.close()
})

test('a host that closes ends its subscriptions and says so', async () => {
  using at = place()
  const host = await at.host()
  const seen = Array.fromAsync(host.events.subscribe({}))
  await Bun.sleep(20)
  await host.close()
  expect(typesOf(await seen)).toEqual(['subscription_ended'])
})

test('who subscribes in the middle of a streaming text gets what was said so far', async () => {
  using at = place()
  const host = await at.host()
  const gate = waiting()
  const model: ModelCall = async function* (...given) {
    yield { type: 'text', content: 'once upon ' }
    yield { type: 'text', content: 'a time ' }
    yield* gate.model(...given)
  }
  const early = take(host, {}, ended)
  const running = events(await begin(host, model))
  while (gate.asked() === 0) await Bun.sleep(1)
  const late = take(host, {}, ended)
  await Bun.sleep(20)
  gate.go()
  await running
  await early
  expect((await late)[0]?.event).toEqual({ type: 'text', content: 'once upon a time ', isPartial: true })
  await host.close()
})

test('clearing the memory is told, and no number that somebody has seen is used again', async () => {
  using at = place()
  const host = await at.host()
  await events(await begin(host, says('hello')))
  const last = host.events.latest()
  const told = take(host, {}, ({ event }) => event.type === 'memory_cleared')
  const memory = openRecords(at.setup())
  clearConversations(memory, { yes: true })
  memory.close()
  expect((await told).map(({ seq }) => seq)).toEqual([last + 1])
  const next = take(host, { after: last + 1 }, ended)
  await events(await begin(host, says('again')))
  expect(numbered(await next)[0]?.seq).toBe(last + 2)
  await host.close()
})
