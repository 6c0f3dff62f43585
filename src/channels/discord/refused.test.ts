import { afterAll, describe, expect, test } from 'bun:test'
import { connected, optionsFor, until } from '../../../test/support/discord/client.ts'
import { CHANNEL, startDiscord, TOKEN } from '../../../test/support/discord/fake.ts'
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
    expect(waits).toEqual([])
    expect(fake.gateway.seen.open()).toBe(0)
  })

  test('intents that were not granted say which switch to turn, and how to do without', async () => {
    using fake = startDiscord({ disallowed: 32_768 })
    const { options, waits } = optionsFor(fake)
    expect(await connectDiscord(options)).toMatchObject({ ok: false, message: expect.stringContaining('"Message Content Intent"') })
    expect(waits).toEqual([])
    const granted = await connectDiscord({ ...options, intents: 512 })
    expect(granted.ok && (await granted.close())).toBeUndefined()
  })

  test.each([4004, 4010, 4011, 4012, 4013, 4014])('a connection that was good and is closed with %i is not tried again', async (code) => {
    using fake = startDiscord()
    const { discord, waits } = await connected(fake)
    fake.gateway.drop(code)
    expect(await discord.ended).toMatchObject({ ok: false, message: expect.stringContaining(`${code}`) })
    expect(await discord.messages[Symbol.asyncIterator]().next()).toEqual({ done: true, value: undefined })
    expect(waits).toEqual([])
    expect(fake.gateway.seen.connections).toBe(1)
    expect(await discord.send(CHANNEL, 'too late')).toMatchObject({ ok: false, message: expect.stringContaining('closed before') })
  })

  test('a gateway that is none is not told the token', async () => {
    using fake = startDiscord()
    const body = {
      url: 'file:///etc/passwd',
      shards: 1,
      session_start_limit: { total: 1, remaining: 1, reset_after: 0, max_concurrency: 1 },
    }
    fake.rest.trouble.gateway.push({ status: 200, body })
    fake.rest.trouble.gateway.push({ status: 200, body: { ...body, url: `http://127.0.0.1/${TOKEN}` } })
    for (const url of ['file:///etc/passwd', 'http://127.0.0.1/[redacted:discord]'])
      expect(await connectDiscord(optionsFor(fake).options)).toEqual({
        ok: false,
        message: `refusing to send the bot token to "${url}": not a secure gateway address`,
      })
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
