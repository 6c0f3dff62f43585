import { afterAll, describe, expect, test } from 'bun:test'
import { connected, optionsFor, until } from '../../../test/support/discord/client.ts'
import { BOT, CHANNEL, startDiscord, TOKEN } from '../../../test/support/discord/fake.ts'
import { connectDiscord, gatewayRule } from './connect.ts'

const everyLine: unknown[] = []

afterAll(() => expect(JSON.stringify(everyLine)).not.toContain(TOKEN))

describe('what ends for good', () => {
  test.each([
    ['a wrong token', { token: 'wrong.token.here' }, 'gateway: 401 Unauthorized; the bot token is wrong or was replaced'],
    ['a token with blanks in it', { token: 'Bot abc' }, 'DISCORD_BOT_TOKEN: contains blanks'],
    ['no token', { token: '' }, 'DISCORD_BOT_TOKEN: is empty'],
    ['no channel', { channelIds: [] }, 'DISCORD_CHANNEL_ID: is empty'],
    ['a channel that is none', { channelIds: ['1200000000000000001/../../users/@me'] }, 'is not a channel id'],
    ['intents that are none', { intents: -1 }, 'intents: -1 is not a set of intents'],
    ['intents that Discord does not know', { intents: 2 ** 30 }, 'intents: 1073741824 is not a set of intents that Discord knows (4013)'],
    ['an address that is none', { restApi: 'discord.com' }, 'restApi: "discord.com" is not an http(s) URL'],
  ])('%s', async (_, over, message) => {
    using fake = startDiscord()
    const { options, lines, waits } = optionsFor(fake, over)
    const result = await connectDiscord(options)
    expect(result).toMatchObject({ ok: false, message: expect.stringContaining(message) })
    everyLine.push(result, lines)
    // What Discord itself says is believed when it has said it three times.
    const isAsked = /gateway: 401|\(4013\)/.test(message)
    expect(waits).toEqual(isAsked ? [5_000, 10_000] : [])
    expect(fake.gateway.seen.open()).toBe(0)
  })

  test('intents that were not granted say which switch to turn, and how to do without', async () => {
    using fake = startDiscord({ disallowed: 32_768 })
    const { options, waits } = optionsFor(fake)
    expect(await connectDiscord(options)).toMatchObject({ ok: false, message: expect.stringContaining('"Message Content Intent"') })
    expect(waits).toEqual([5_000, 10_000])
    const granted = await connectDiscord({ ...options, intents: 512 })
    expect(granted.ok && (await granted.close())).toBeUndefined()
  })

  test.each([4004, 4010, 4011, 4012, 4013, 4014])(
    'a connection that is closed with %i three times in a row is not tried again',
    async (code) => {
      using fake = startDiscord()
      const { discord, waits } = await connected(fake)
      fake.gateway.trouble.refuse.push(code, code)
      fake.gateway.drop(code)
      expect(await discord.ended).toMatchObject({ ok: false, message: expect.stringContaining(`${code}`) })
      expect(await discord.messages[Symbol.asyncIterator]().next()).toEqual({ done: true, value: undefined })
      expect(waits).toEqual([5_000, 5_000])
      expect(fake.gateway.seen.connections).toBe(3)
      expect(await discord.send(CHANNEL, 'too late')).toMatchObject({ ok: false, message: expect.stringContaining('closed before') })
    },
  )

  test('a gateway that is none is not told the token, and Discord is asked again', async () => {
    using fake = startDiscord()
    const body = {
      url: 'file:///etc/passwd',
      shards: 1,
      session_start_limit: { total: 1, remaining: 1, reset_after: 0, max_concurrency: 1 },
    }
    const portal = { status: 200, body: '<html><head><title>x</title></head><h1>Log in</h1> to the network</html>' }
    const later = { status: 200, headers: { 'content-type': 'application/json' }, body: '{"please":"log in"}' }
    fake.rest.trouble.gateway.push(
      { status: 200, body },
      { status: 200, body: { ...body, url: `http://127.0.0.1/${TOKEN}` } },
      portal,
      later,
    )
    await using client = await connected(fake)
    everyLine.push(client.lines)
    const said = client.lines.filter(({ event }) => event === 'discord out of reach').map(({ fields }) => String(fields.reason))
    expect(said).toEqual([
      'not a secure gateway address: "file:///etc/passwd"; the bot token is not sent there',
      expect.stringContaining('not a secure gateway address'),
      'gateway: something other than Discord answers 200 "Log in to the network"; check the network, a proxy or portal on the way, and channels.discord.api',
      expect.stringContaining('not a secure gateway address'),
    ])
  })

  test.each([
    ['one momentary 401 of Discord', [{ status: 401, body: { message: '401: Unauthorized', code: 0 } }]],
    ['HTML of a proxy', Array(5).fill({ status: 401, body: '<html>Sign in</html>' })],
    ['JSON of a proxy', Array(5).fill({ status: 401, body: { message: 'no', code: 401 } })],
    ['a refusal without words', Array(5).fill({ status: 403, body: '' })],
    [
      'refusals of Discord with a failure between them',
      [401, 401, 502, 401, 401].map((status) => ({ status, body: { message: 'x', code: 0 } })),
    ],
  ])('%s passes', async (_, answers) => {
    using fake = startDiscord()
    fake.rest.trouble.gateway.push(...answers)
    await using client = await connected(fake)
    expect(client.waits).toHaveLength(answers.length)
    expect(client.discord.userId).toBe(BOT.id)
  })
})

describe('where the token goes', () => {
  test.each(['ws://gateway.invalid', 'http://gateway.invalid', 'nonsense'])(
    'never to %s, if Discord itself is spoken to under TLS',
    (url) => {
      expect(gatewayRule('https://discord.com/api')(url)).toBe(false)
      expect(gatewayRule('https://discord.com/api')('wss://gateway.discord.gg')).toBe(true)
    },
  )

  test('a place to resume that is none is passed over', async () => {
    using fake = startDiscord()
    fake.gateway.trouble.resumeUrl = 'file:///etc/passwd'
    await using _ = await connected(fake)
    fake.gateway.drop(4000)
    await until(() => fake.gateway.seen.resumes.length === 1)
  })
})
