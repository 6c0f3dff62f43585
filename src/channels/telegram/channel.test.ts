import { afterAll, expect, test } from 'bun:test'
import { startTelegram, TOKEN, tooMany } from '../../../test/support/telegram/fake.ts'
import { until } from '../../../test/support/until.ts'
import type { Log } from '../../runtime/port.ts'
import { createProviderFetch } from '../../workspace/net/provider-fetch.ts'
import { createBotApi } from './bot-api.ts'
import { createRetryingCall, pauseMs, readUpdates } from './channel.ts'

const fake = startTelegram()
afterAll(() => fake[Symbol.dispose]())
const api = createBotApi({ api: fake.api, token: TOKEN, fetch: createProviderFetch({ baseUrl: fake.api }) })

function stage() {
  const [waits, lines, why]: [number[], string[], unknown[]] = [[], [], []]
  const stop = new AbortController()
  const { signal } = stop
  const log: Log = (_, event, fields) => {
    lines.push(event)
    if (fields?.why !== undefined) why.push(fields.why)
  }
  const ask = createRetryingCall({ api, sleep: async (ms) => void waits.push(ms), log, signal })
  return { ask, waits, lines, why, stop, signal }
}

const refusal = (code: number, description: string) => ({ status: code, body: { ok: false, error_code: code, description } })

test('an outage is waited for with longer pauses, and said when it begins and when it ends; a rate limit has its own time', async () => {
  const { ask, waits, lines } = stage()
  fake.trouble.getMe = [{ status: 502, body: 'no' }, { status: 500, body: 'no' }, tooMany(7), { status: 503, body: 'no' }]
  expect(await ask('getMe', {})).toMatchObject({ is_bot: true })
  expect([waits, lines]).toEqual([
    [1_000, 2_000, 7_000, 8_000],
    ['telegram out of reach', 'telegram reached again'],
  ])
  expect([pauseMs(6), pauseMs(1_000)]).toEqual([60_000, 60_000])
})

const webhook = refusal(409, "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first")

test('what only a person can change ends it when Telegram has said it three times in a row', async () => {
  const { ask, waits } = stage()
  fake.trouble.getUpdates = [webhook, webhook, { status: 502, body: 'no' }, webhook, webhook, webhook]
  await expect(ask('getUpdates', {})).rejects.toThrow('this bot has a webhook; remove it')
  expect(waits).toEqual([1_000, 2_000, 4_000, 8_000, 16_000])
})

test.each([401, 403, 404, 407, 408, 409, 200])('a page of a proxy with status %i is never the word of Telegram', async (status) => {
  const { ask, waits, why } = stage()
  fake.trouble.getMe = Array(6).fill({ status, body: '<html><style>p {}</style><h1>Blocked</h1> by the firewall</html>' })
  expect(await ask('getMe', {})).toMatchObject({ is_bot: true })
  expect(waits).toHaveLength(6)
  expect(why).toEqual([
    `getMe: something other than Telegram answers ${status} "Blocked by the firewall"; check the network, a proxy or portal on the way, and channels.telegram.api`,
  ])
})

test.each([
  refusal(401, 'Unauthorized'),
  refusal(400, 'Bad Request: wrong'),
  { status: 403, body: { error: 'denied' } },
  { status: 401, body: { ok: false } },
])('one momentary refusal passes: %p', async (answer) => {
  const { ask } = stage()
  fake.trouble.getMe = [answer, answer]
  expect(await ask('getMe', {})).toMatchObject({ is_bot: true })
})

test('another program that reads the same bot is waited for', async () => {
  const { ask, lines, stop } = stage()
  fake.seen.calls.length = 0
  const first = ask('getUpdates', { timeout: 30 })
  await until(() => fake.seen.calls.includes('getUpdates'))
  const other = stage()
  const second = other.ask('getUpdates', { timeout: 30 })
  await until(() => lines.includes('telegram out of reach'))
  stop.abort()
  other.stop.abort()
  expect(await Promise.all([first, second])).toEqual([undefined, undefined])
})

test('updates are asked for from the first that was not taken, and none while there is no room', async () => {
  const { ask, stop, signal } = stage()
  const room = Promise.withResolvers<void>()
  const taken: (readonly [number, number])[] = []
  const state: { offset?: number } = {}
  const take = (updates: readonly unknown[], next: number) => {
    taken.push([updates.length, next])
    state.offset = next
  }
  fake.say('one')
  fake.say('two')
  const before = fake.seen.calls.length
  const reading = readUpdates({ ask, signal, take, offset: () => state.offset, room: () => room.promise })
  await Bun.sleep(0)
  expect(fake.seen.calls.length).toBe(before)
  room.resolve()
  await until(() => fake.pending() === 0)
  expect([taken, fake.seen.offsets.at(-1)]).toEqual([[[2, 903]], 903])
  stop.abort()
  await reading
})
