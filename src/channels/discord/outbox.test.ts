import { describe, expect, mock, test } from 'bun:test'
import { connected, optionsFor, until } from '../../../test/support/discord/client.ts'
import { CHANNEL, CLOSED_CHANNEL, OTHER_CHANNEL, startDiscord, TOKEN } from '../../../test/support/discord/fake.ts'
import { createApi, createOutbox } from './rest.ts'

const portal = 'https://discord.com/developers/applications'
const both = { channelIds: [CHANNEL, OTHER_CHANNEL, CLOSED_CHANNEL, '1200000000000000009'] }
/** Waits as long as requested, but never by the library's own timers. */
const patient = { sleep: (ms: number) => Bun.sleep(ms) }

/** Discord is believed when it repeats a refusal. */
const thrice = (status: number, body: object) => Array.from({ length: 3 }, () => ({ status, body }))

const lines = (count: number) => Array.from({ length: count }, (_, n) => `line ${n} of a long answer`).join('\n')

describe('what is refused', () => {
  test('a channel that is not ours is never asked for, whatever it is called', async () => {
    using fake = startDiscord()
    await using client = await connected(fake)
    for (const channel of [OTHER_CHANNEL, '', '../../users/@me', `${CHANNEL}/messages?x=`, 'cli']) {
      expect(await client.discord.send(channel, 'hello')).toEqual({
        ok: false,
        isFinal: true,
        message: `channel ${JSON.stringify(channel)} is not one of ${CHANNEL} (DISCORD_CHANNEL_ID)`,
      })
      await client.discord.typing(channel)
    }
    expect(fake.rest.seen.paths).toEqual(['GET /api/v10/gateway/bot'])
  })

  test('a blank answer is not sent', async () => {
    using fake = startDiscord()
    await using client = await connected(fake)
    for (const text of ['', ' \n\t'])
      expect(await client.discord.send(CHANNEL, text)).toEqual({
        ok: false,
        isFinal: true,
        message: 'the answer is blank, and Discord takes no blank messages',
      })
    expect(fake.rest.seen.posts).toEqual([])
  })

  test('a replaced token, a closed and a missing channel say what to do', async () => {
    using fake = startDiscord()
    await using client = await connected(fake, both)
    const failure = async (channel: string) => {
      const sent = await client.discord.send(channel, 'hello')
      return sent.ok ? '' : sent.message
    }
    expect(await failure(CLOSED_CHANNEL)).toBe(
      `channel ${CLOSED_CHANNEL}: 403 Missing Access; invite the bot to the server and allow it "View Channel" and "Send Messages" there (after 3 attempts)`,
    )
    expect(await failure('1200000000000000009')).toContain('404 Unknown Channel; no such channel, or the bot is not in its server')
    for (const _ of ['the first time', 'and the second'])
      expect([fake.rest.trouble.next.push(...thrice(401, { message: '401: Unauthorized', code: 0 })), await failure(CHANNEL)]).toEqual([
        3,
        `channel ${CHANNEL}: 401 Unauthorized; the bot token is wrong or was replaced: copy it again from ${portal}, page Bot (DISCORD_BOT_TOKEN) (after 3 attempts)`,
      ])
    expect(client.waits).toEqual(Array(4).fill([1_000, 2_000]).flat())
    expect(await client.discord.send(CHANNEL, 'still alive')).toMatchObject({ ok: true })
  })

  test('what Discord does not like is told in its words', async () => {
    using fake = startDiscord()
    await using client = await connected(fake)
    const errors = { content: { _errors: [{ code: 'BAD', message: 'Must be nicer.' }] } }
    fake.rest.trouble.next.push(...thrice(400, { code: 50_035, message: 'Invalid Form Body', errors }))
    expect(await client.discord.send(CHANNEL, 'hello')).toEqual({
      ok: false,
      isFinal: true,
      message: `channel ${CHANNEL}: 400 Invalid Form Body; content[BAD]: Must be nicer. (after 3 attempts)`,
    })
  })

  test('an echo of the token goes into no message and no log', async () => {
    using fake = startDiscord()
    await using client = await connected(fake)
    fake.rest.trouble.next.push(...thrice(400, { code: 50_035, message: `bad header "Bot ${TOKEN}"` }))
    const sent = await client.discord.send(CHANNEL, 'hello')
    expect(sent).toMatchObject({ ok: false, message: expect.stringContaining('Bot [redacted:discord]') })
    expect(JSON.stringify([sent, client.lines])).not.toContain(TOKEN)
  })
})

describe('what is sent', () => {
  test('mentions nobody, under the name of the bot', async () => {
    using fake = startDiscord()
    await using client = await connected(fake)
    const sent = await client.discord.send(CHANNEL, 'hello @everyone <@1500000000000000001>')
    expect(fake.rest.seen.posts).toEqual([
      {
        channel: CHANNEL,
        authorization: `Bot ${TOKEN}`,
        body: {
          content: 'hello @everyone <@1500000000000000001>',
          allowed_mentions: { parse: [] },
          nonce: expect.stringMatching(/^[0-9a-f]{25}$/),
          enforce_nonce: true,
        },
      },
    ])
    expect(sent).toEqual({ ok: true })
    expect([...fake.rest.seen.agents][0]).toStartWith('DiscordBot (')
  })

  test('a long answer goes in pieces, in order, and none of them comes back as heard', async () => {
    using fake = startDiscord()
    await using client = await connected(fake)
    const sent = await client.discord.send(CHANNEL, lines(400))
    const pieces = fake.rest.seen.messages
    expect(sent.ok).toBe(true)
    expect(pieces.map((piece) => piece.content).join('')).toBe(lines(400))
    expect(pieces.length).toBeGreaterThan(4)
    fake.say('next')
    await until(() => client.heard.length > 0)
    expect(client.heard.map((message) => message.text)).toEqual(['next'])
  })

  test('two answers to one channel do not mix, whatever goes wrong in between', async () => {
    using fake = startDiscord()
    await using client = await connected(fake, both)
    fake.rest.trouble.next.push({ status: 500 }, { status: 200, body: 'ok', stage: 'after' }, { status: 502, stage: 'after' })
    const sent = await Promise.all([
      client.discord.send(CHANNEL, `A ${lines(150)}`),
      client.discord.send(OTHER_CHANNEL, 'elsewhere'),
      client.discord.send(CHANNEL, 'B'),
    ])
    expect(sent.map((one) => one.ok)).toEqual([true, true, true])
    const here = fake.rest.seen.messages.filter((message) => message.channel === CHANNEL).map((message) => message.content)
    expect(here.join('')).toBe(`A ${lines(150)}B`)
    expect(here.at(-1)).toBe('B')
  })

  test('half a surrogate pair does not stop an answer', async () => {
    using fake = startDiscord()
    await using client = await connected(fake)
    expect(await client.discord.send(CHANNEL, 'torn \ud83d')).toMatchObject({ ok: true })
    expect(fake.rest.seen.messages[0]?.content).toBe('torn \ufffd')
  })

  test('typing is shown, and its failure nobody hears of', async () => {
    using fake = startDiscord()
    await using client = await connected(fake, both)
    for (const channel of [CHANNEL, CLOSED_CHANNEL]) await client.discord.typing(channel)
    expect(fake.rest.seen.typing).toEqual([CHANNEL, CLOSED_CHANNEL])
  })
})

describe('what passes', () => {
  test.each([
    ['a momentary refusal of Discord', { status: 403, body: { code: 50_001, message: 'Missing Access' } }],
    ['the page of a proxy', { status: 403, body: '<html>Denied</html>' }],
    ['the JSON of a proxy', { status: 404, body: { code: 404, message: 'no route' } }],
    ['the page of a portal', { status: 200, body: '<html>Log in</html>' }],
  ])('%s is tried again', async (_, answer) => {
    using fake = startDiscord()
    await using client = await connected(fake)
    fake.rest.trouble.next.push(answer, answer)
    expect(await client.discord.send(CHANNEL, 'hello')).toMatchObject({ ok: true })
    expect(client.waits).toEqual([1_000, 2_000])
  })

  test('a server in trouble is tried four times, and then the answer says so', async () => {
    using fake = startDiscord()
    await using client = await connected(fake)
    fake.rest.trouble.next.push({ status: 500 }, { status: 502, body: '<html>' }, { status: 503 })
    expect(await client.discord.send(CHANNEL, 'hello')).toMatchObject({ ok: true })
    expect(client.waits).toEqual([1000, 2000, 4000])

    fake.rest.trouble.next.push({ status: 500 }, { status: 500 }, { status: 500 }, { status: 504 })
    expect(await client.discord.send(CHANNEL, 'hello')).toEqual({
      ok: false,
      message: `channel ${CHANNEL}: Discord answers 504 (after 4 attempts)`,
    })
  })

  test('an answer that got lost is asked for again, and the message is there once', async () => {
    using fake = startDiscord()
    await using client = await connected(fake)
    fake.rest.trouble.next.push({ status: 504, stage: 'after' }, { status: 200, body: 'no JSON', stage: 'after' })
    expect(await client.discord.send(CHANNEL, 'once')).toMatchObject({ ok: true })
    expect(fake.rest.seen.posts.length).toBe(3)
    expect(fake.rest.seen.messages.map((message) => message.content)).toEqual(['once'])
  })

  test('an answer that stops half way says how much was sent', async () => {
    using fake = startDiscord()
    await using client = await connected(fake)
    fake.rest.trouble.next.push({ status: 200, body: { id: '1' } }, ...thrice(403, { code: 50_013, message: 'Missing Permissions' }))
    const sent = await client.discord.send(CHANNEL, lines(200))
    expect(sent).toMatchObject({ ok: false, message: expect.stringMatching(/403 Missing Permissions; .*\(1 of 3 parts were sent\)$/) })
    expect(fake.rest.seen.posts.length).toBe(4)
  })

  test('a server that is gone is tried, and told', async () => {
    using fake = startDiscord()
    await using client = await connected(fake)
    fake.stop()
    const sent = await client.discord.send(CHANNEL, 'hello')
    expect(sent).toMatchObject({ ok: false, message: expect.stringMatching(/Discord cannot be reached: .*\(after 4 attempts\)$/) })
  })
})

describe('rate limits', () => {
  test('an empty bucket is waited for before asking, and nothing is lost', async () => {
    using fake = startDiscord({ bucket: { limit: 3, windowMs: 60 } })
    await using client = await connected(fake, patient)
    const sent = await client.discord.send(CHANNEL, lines(500))
    expect(sent.ok).toBe(true)
    expect(fake.rest.seen.messages.map((message) => message.content).join('')).toBe(lines(500))
    expect(fake.rest.seen.posts.length).toBe(fake.rest.seen.messages.length)
    expect(client.lines.some((line) => line.event === 'discord asks to wait')).toBe(true)
  })

  test('a 429 for one channel holds up that channel alone, for as long as it says', async () => {
    using fake = startDiscord()
    const waiting = Promise.withResolvers<number>()
    const over = Promise.withResolvers<void>()
    const sleep = (ms: number) => {
      waiting.resolve(ms)
      return over.promise
    }
    await using client = await connected(fake, { ...both, sleep })
    fake.rest.trouble.next.push({
      status: 429,
      headers: { 'retry-after': '7' },
      body: { message: 'slow', retry_after: 6.2, global: false },
    })
    const slow = client.discord.send(CHANNEL, 'slow')
    expect(await waiting.promise).toBe(7050)
    expect(await client.discord.send(OTHER_CHANNEL, 'quick')).toMatchObject({ ok: true })
    over.resolve()
    expect(await slow).toMatchObject({ ok: true })
    expect(fake.rest.seen.messages.map((message) => message.content)).toEqual(['quick', 'slow'])
  })

  test('a 429 for all holds up every channel', async () => {
    using fake = startDiscord()
    await using client = await connected(fake, { ...both, ...patient })
    fake.rest.limitAll(40)
    const first = client.discord.send(CHANNEL, 'first')
    await until(() => client.lines.some((line) => line.event === 'discord asks to wait'))
    const second = client.discord.send(OTHER_CHANNEL, 'second')
    expect((await Promise.all([first, second])).map((one) => one.ok)).toEqual([true, true])
    expect(fake.rest.seen.posts.length).toBe(3)
    expect(client.lines.filter((line) => line.event === 'discord asks to wait')).toHaveLength(1)
  })

  test('while Discord wants silence nobody is shown as typing, then or later, and the library is not asked to', async () => {
    using fake = startDiscord()
    const { options, lines } = optionsFor(fake)
    const { log, fetch } = options
    const over = Promise.withResolvers<void>()
    const asked = mock(createApi({ api: fake.api, token: TOKEN, fetch }))
    const sleep = (ms: number) => over.promise.then(() => Bun.sleep(ms))
    const outbox = createOutbox({ api: asked, sleep, log, signal: new AbortController().signal })
    fake.rest.limitAll(40)
    const sent = outbox.send(CHANNEL, 'hello')
    await until(() => lines.some((line) => line.event === 'discord asks to wait'))
    const silent = outbox.typing(OTHER_CHANNEL)
    expect(asked).toHaveBeenCalledTimes(1)
    over.resolve()
    expect(await sent).toMatchObject({ ok: true })
    await silent
    expect(fake.rest.seen.typing).toEqual([])
    await outbox.typing(OTHER_CHANNEL)
    expect(fake.rest.seen.typing).toEqual([OTHER_CHANNEL])
  })

  test('a 429 that does not say for how long waits a second; one for an hour is not waited for', async () => {
    using fake = startDiscord()
    await using client = await connected(fake)
    fake.rest.trouble.next.push({ status: 429, body: 'busy', headers: { 'retry-after': 'soon' } })
    expect(await client.discord.send(CHANNEL, 'hello')).toMatchObject({ ok: true })
    expect(client.waits).toEqual([1000])
    fake.rest.trouble.next.push({ status: 429, headers: { 'retry-after': '3600' } })
    expect(await client.discord.send(CHANNEL, 'hello')).toEqual({
      ok: false,
      message: `channel ${CHANNEL}: Discord wants 3601 s without requests (429)`,
    })
  })

  test('closing ends a request under way, and nobody calls that a failure of Discord', async () => {
    using fake = startDiscord()
    const { discord, lines: log } = await connected(fake)
    fake.rest.trouble.next.push({ status: 200, stage: 'never' })
    const sending = discord.send(CHANNEL, 'hello')
    await until(() => fake.rest.seen.posts.length === 1)
    await discord.close()
    expect(await sending).toEqual({ ok: false, message: 'the connection to Discord was closed before this was sent' })
    expect(log.map((line) => line.event)).toEqual(['discord connected'])
  })

  test('closing ends the waiting', async () => {
    using fake = startDiscord()
    const sleep = (_: number, signal: AbortSignal) =>
      new Promise<void>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
    const { discord, lines: log } = await connected(fake, { sleep })
    fake.rest.trouble.next.push({ status: 429, headers: { 'retry-after': '60' } })
    const sending = discord.send(CHANNEL, lines(200))
    await until(() => log.some((line) => line.event === 'discord asks to wait'))
    await discord.close()
    expect(await sending).toEqual({
      ok: false,
      message: 'the connection to Discord was closed before this was sent (0 of 3 parts were sent)',
    })
  })
})
