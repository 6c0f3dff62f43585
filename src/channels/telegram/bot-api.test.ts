import { afterAll, afterEach, expect, test } from 'bun:test'
import { ADA, startTelegram, TOKEN, tooMany } from '../../../test/support/telegram/fake.ts'
import { createProviderFetch } from '../../workspace/net/provider-fetch.ts'
import { createBotApi, createOutbox, refusalOf, TelegramFailure } from './bot-api.ts'

const fake = startTelegram()
const api = createBotApi({ api: `${fake.api}/`, token: TOKEN, fetch: createProviderFetch({ baseUrl: fake.api }) })
const never = new AbortController().signal
const failed = (call: Promise<unknown>) =>
  call.then(
    () => new Error('no failure'),
    (error: unknown) => (error instanceof TelegramFailure ? error : new Error(`another failure: ${error}`)),
  )
afterAll(() => fake[Symbol.dispose]())
afterEach(() => {
  for (const method of Object.keys(fake.trouble)) delete fake.trouble[method]
})

test('a path that could lead to another address is not asked for', async () => {
  for (const path of ['../x', 'photos/../../getMe', '/etc/passwd', 'a//b', 'a?b', 'a#b', '%2e%2e/x', '.hidden', ''])
    expect(() => api.file(path, { signal: never, most: 9 })).toThrow('cannot be fetched')
  expect(fake.seen.files).toEqual([])
})

test('a file longer than permitted is cut off, whatever was said of its size', async () => {
  fake.files.set('long', { path: 'photos/long.jpg', bytes: new Uint8Array(1_000), size: 3 })
  expect((await failed(api.file('photos/long.jpg', { signal: never, most: 999 }))).message).toBe('it is larger than 999 bytes')
  expect((await api.file('photos/long.jpg', { signal: never, most: 1_000 })).length).toBe(1_000)
})

test('no failure has the token: not of an unreachable server, a foreign page, a redirect, or a server that says it again', async () => {
  const gone = createBotApi({ api: 'http://127.0.0.1:9', token: TOKEN, fetch: createProviderFetch({ baseUrl: 'http://127.0.0.1:9' }) })
  fake.trouble.getMe = [
    { status: 502, body: `<html>${TOKEN}</html>` },
    { status: 200, body: 'not JSON' },
    { status: 400, body: { ok: false, error_code: 400, description: `bad ${TOKEN} ${encodeURIComponent(TOKEN)}` } },
  ]
  const failures = [
    await failed(gone.call('getMe', {}, { signal: never })),
    await failed(api.call('getMe', {}, { signal: never })),
    await failed(api.call('getMe', {}, { signal: never })),
    await failed(api.call('getMe', {}, { signal: never })),
    await failed(
      createBotApi({ api: 'http://x', token: TOKEN, fetch: (url) => Promise.reject(new Error(`${url} fails`)) }).call(
        'a',
        {},
        { signal: never },
      ),
    ),
  ]
  for (const { message } of failures) expect(message).not.toContain(TOKEN.slice(12))
  expect(failures.map((failure) => refusalOf(failure, 'x').kind)).toEqual(['passing', 'passing', 'passing', 'final', 'passing'])
})

test('an answer that does not come in time, and a stop, end the request', async () => {
  const slow = api.call('getUpdates', { timeout: 30 }, { signal: never, timeoutMs: 20 })
  expect((await failed(slow)).message).toBe('no answer from Telegram in time')
  const stopping = new AbortController()
  const stopped = failed(api.call('getUpdates', { timeout: 30 }, { signal: stopping.signal }))
  stopping.abort()
  expect((await stopped).message).toBe('no answer from Telegram in time')
})

test('two programs for one bot wait for each other; a webhook has to be removed by a person', () => {
  const of = (message: string, status: number) => refusalOf(new TelegramFailure(message, { status }), 'getUpdates')
  expect(of('Conflict: terminated by other getUpdates request', 409)).toMatchObject({
    kind: 'passing',
    message: expect.stringContaining('another program'),
  })
  expect(of("Conflict: can't use getUpdates method while webhook is active", 409)).toMatchObject({
    kind: 'final',
    message: expect.stringContaining('webhook'),
  })
  expect(of('Unauthorized', 401)).toMatchObject({ kind: 'final', message: expect.stringContaining('@BotFather') })
  expect(of('Forbidden: bot was blocked by the user', 403)).toMatchObject({
    kind: 'final',
    message: 'getUpdates: Forbidden: bot was blocked by the user (403); the person has blocked the bot, or it was removed from the group',
  })
  expect(of('Bad Request: offset must be an integer', 400).message).toBe('getUpdates: Bad Request: offset must be an integer (400)')
})

test('the 403 of a proxy does not say that a person has blocked the bot, and the answer is sent when the proxy lets it through', async () => {
  const lines: string[] = []
  const outbox = createOutbox({
    api,
    sleep: async () => {},
    log: (_, __, fields) => void lines.push(JSON.stringify(fields)),
    signal: never,
  })
  fake.trouble.sendMessage = Array(3).fill({ status: 403, body: '<html>Denied by policy</html>' })
  expect(await outbox.send(String(ADA.id), 'through')).toMatchObject({ ok: true })
  expect(lines).toHaveLength(3)
  for (const line of lines) {
    expect(line).toContain('something other than Telegram answers 403 \\"Denied by policy\\"')
    expect(line).not.toContain('blocked the bot')
  }
  fake.seen.sent.length = 0
})

test('a message waits as long as Telegram asks, keeps its place, and has no preview of addresses; other places are not written to', async () => {
  const waits: number[] = []
  const sleep = async (ms: number) => void waits.push(ms)
  const outbox = createOutbox({ api, sleep, log: () => {}, signal: never })
  fake.trouble.sendMessage = [tooMany(7), { status: 500, body: 'no' }]
  const both = [outbox.send(String(ADA.id), 'first', { replyTo: '33' }), outbox.send(String(ADA.id), 'second')]
  expect((await Promise.all(both)).map(({ ok }) => ok)).toEqual([true, true])
  expect([waits, fake.texts()]).toEqual([
    [7_000, 1_000],
    ['first', 'second'],
  ])
  expect(fake.seen.sent[0]?.body).toMatchObject({ link_preview_options: { is_disabled: true }, reply_parameters: { message_id: 33 } })
  await outbox.send('-100/4', 'in a topic')
  expect(fake.seen.sent.at(-1)?.body).toMatchObject({ chat_id: -100, message_thread_id: 4 })
  for (const address of ['cli', '@name', '1;2', '', '1/2/3']) expect((await outbox.send(address, 'x')).ok).toBe(false)
  expect(await outbox.send('404', 'x')).toEqual({
    ok: false,
    isFinal: true,
    message: expect.stringContaining('chat not found (400); a person must write'),
  })
  expect(fake.texts()).toHaveLength(3)
})

const refused = (description: string, parameters?: object) => ({
  status: 400,
  body: { ok: false, error_code: 400, description: `Bad Request: ${description}`, parameters },
})

test('a message follows a chat that has moved, and a topic that is closed or deleted is answered in the chat itself, with a word about it', async () => {
  const moves: string[][] = []
  const settings = { api, log: () => {}, signal: never, sleep: async () => {}, moved: (...move: string[]) => void moves.push(move) }
  const outbox = createOutbox(settings)
  fake.seen.sent.length = 0
  fake.trouble.sendMessage = [refused('group chat was upgraded to a supergroup chat', { migrate_to_chat_id: -1009 })]
  expect(await outbox.send('-9', 'moved', { replyTo: '3' })).toMatchObject({ ok: true })
  expect([moves, fake.seen.sent.at(-1)]).toMatchObject([[['-9', '-1009']], { chat: -1009, text: 'moved' }])
  for (const words of ['TOPIC_CLOSED', 'message thread not found', 'TOPIC_DELETED']) {
    fake.trouble.sendMessage = [refused(words)]
    expect(await outbox.send('-9/4', 'answer')).toMatchObject({ ok: true })
    const last = fake.seen.sent.at(-1)
    expect(last?.text).toBe('[The topic is closed or deleted, so I write here.]\n\nanswer')
    expect(last?.body).not.toHaveProperty('message_thread_id')
    fake.trouble.sendMessage = [refused(words)]
    expect(await outbox.send('-9/4', 'word '.repeat(1_000), { skip: 1 })).toMatchObject({ ok: true })
    expect(fake.texts().at(-1)).toStartWith('word')
  }
  fake.trouble.sendMessage = Array(3).fill(refused('TOPIC_CLOSED'))
  expect(await outbox.send('-9', 'the general topic is closed')).toMatchObject({ ok: false, isFinal: true })
})

test('the general topic is named in updates, and left out of requests', async () => {
  const outbox = createOutbox({ api, log: () => {}, signal: never, sleep: async () => {} })
  await outbox.send('-9/1', 'x')
  expect(fake.seen.sent.at(-1)?.body).not.toHaveProperty('message_thread_id')
})
