/** Many streams at once, and two gateways on one home: everybody hears their own turn whole and nothing of another's. */

import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { echoModel } from '../support/echo-model.ts'
import { type EventFollower, followEvents } from '../support/event-follower.ts'
import { type Gateway, gateway, tokenOf } from '../support/gateway.ts'
import { repetitions } from '../support/tier.ts'
import { home } from '../support/turns.ts'
import { until } from '../support/until.ts'

const words = (text: string): string[] => [...new Set(text.match(/w\d+x\d+z/g) ?? [])]

/** Reads the stream of one turn to its end. */
async function turn({ url, token }: Gateway, word: string, conversation?: string, verb = 'read') {
  const response = await fetch(`${url}/run`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ prompt: `${verb} ${word}`, ...(conversation === undefined ? {} : { conversation_id: conversation }) }),
  })
  const text = await response.text()
  const events = text.split('\n').flatMap((line) => (line.startsWith('data: ') ? [JSON.parse(line.slice(6))] : []))
  return { conversation: response.headers.get('x-conversation-id') ?? '', types: events.map(({ type }) => type), last: events.at(-1), text }
}

const ends = (follower: EventFollower) => follower.seen.filter(({ type }) => type === 'run_ended').length
const memoryOf = (pid: number) => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024

const many = repetitions({ fast: 48, deep: 256 })

test(`16 and ${many} streams at once: each has its own events, whole, and so has whoever follows all of them`, async () => {
  using model = echoModel()
  using at = home(model.toml)
  at.file('notes.txt', 'Buy milk.')
  await using server = await gateway(at, [...model.args], { env: model.env })
  const follower = followEvents(() => server.url, server.token)
  await turn(server, 'w0x0z')
  const before = memoryOf(server.pid)
  for (const count of [16, many]) {
    const own = Array.from({ length: count }, (_, client) => `w${count}x${client}z`)
    const turns = await Promise.all(own.map((word) => turn(server, word)))
    expect(turns.map(({ text }) => words(text))).toEqual(own.map((word) => [word]))
    expect(turns.map(({ last }) => last.result)).toEqual(own.map((word) => `I read ${word}`))
    for (const { types } of turns) expect(types.filter((type) => type !== 'text')).toEqual(['init', 'tool_use', 'tool_result', 'done'])
    await until(() => ends(follower) >= (count === 16 ? 17 : 17 + many))
    const byConversation = Map.groupBy(follower.seen, ({ conversationId }) => conversationId)
    expect(turns.map(({ conversation }) => words(JSON.stringify(byConversation.get(conversation))))).toEqual(own.map((word) => [word]))
  }
  expect(ends(follower)).toBe(17 + many)
  const started = follower.seen.filter(({ type }) => type === 'run_started').length
  const called = follower.seen.filter(({ type }) => type === 'tool_result').length
  expect([started, called]).toEqual([17 + many, 17 + many])
  expect(memoryOf(server.pid) - before).toBeLessThan(200)
  await follower.stop()
}, 120_000)

test('two gateways on one home: turns run side by side, each shows the events of both, and one dies without the other', async () => {
  using model = echoModel(20)
  using at = home(model.toml)
  at.file('notes.txt', 'Buy milk.')
  const token = await tokenOf(at, 'test', '--scope', 'admin')
  const begin = () => gateway(at, [...model.args], { env: model.env, token })
  await using one = await begin()
  const other = await begin()
  const followers = [one, other].map((server) => followEvents(() => server.url, token))
  const own = Array.from({ length: 24 }, (_, client) => `w24x${client}z`)
  const turns = await Promise.all(own.map((word, at) => turn(at % 2 === 0 ? one : other, word)))
  expect(turns.map(({ last }) => last.result)).toEqual(own.map((word) => `I read ${word}`))
  await until(() => followers.every((follower) => ends(follower) === 24))
  const [here, there] = followers.map(({ seen }) => seen.map(({ id }) => id))
  expect(here).toEqual(there ?? [])
  // A conversation that began at one goes on at the other, and knows what was said.
  const [first] = turns
  expect((await turn(other, 'w25x0z', first?.conversation)).last.result).toBe('I read w25x0z')
  expect(model.asked.at(-1)).toContain('read w24x0z')
  const cut = own.slice(0, 12).map((_, at) => turn(other, `w26x${at}z`).catch(() => undefined))
  const kept = own.slice(0, 12).map((_, at) => turn(one, `w27x${at}z`))
  await until(() => model.asked.some((body) => body.includes('w26x0z')))
  await other[Symbol.asyncDispose]()
  await Promise.all(cut)
  expect((await Promise.all(kept)).map(({ last }) => last.result)).toEqual(kept.map((_, at) => `I read w27x${at}z`))
  for (const follower of followers) await follower.stop()
  await using third = await begin()
  const { runs } = (await third.ask('/runs?limit=500')).body
  expect(runs.filter(({ ended }: { ended?: number }) => ended === undefined)).toEqual([])
  expect((await third.ask('/receipts/verify', {})).body).toMatchObject({ ok: true })
}, 120_000)

test('SIGTERM in the middle of many turns ends in time: each client hears it, and no run stays open', async () => {
  using model = echoModel()
  using at = home(model.toml)
  at.file('notes.txt', 'Buy milk.')
  const first = await gateway(at, [...model.args], { env: model.env })
  const twelve = Array.from({ length: 12 }, (_, client) => client)
  const answers = twelve.map((client) => first.ask('/chat', { message: `slow w12x${client}z` }))
  const streams = twelve.map((client) => turn(first, `w13x${client}z`, undefined, 'slow'))
  // Sixteen ask the model; the other eight wait for their turn there (max_concurrent).
  await until(async () => model.asked.length === 16 && (await first.ask('/runs?limit=500')).body.runs.length === 24)
  const begun = performance.now()
  expect((await first.stop()).code).toBe(0)
  expect(performance.now() - begun).toBeLessThan(5_000)
  for (const answer of await Promise.all(answers)) expect(answer).toMatchObject({ status: 200, body: { ending: { code: 'cancelled' } } })
  for (const stream of await Promise.all(streams)) expect(stream).toMatchObject({ last: { type: 'done', stopReason: 'cancelled' } })
  await using second = await gateway(at, [...model.args], { env: model.env, token: first.token })
  const { runs } = (await second.ask('/runs?limit=500')).body
  expect(runs.map(({ code }: { code: string }) => code)).toEqual(Array(24).fill('cancelled'))
  expect((await second.ask('/receipts/verify', {})).body).toMatchObject({ ok: true })
}, 120_000)
