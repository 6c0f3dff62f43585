/** Shows a channel that does not reach its service wherever an operator looks, through the real executable. */

import { expect, test } from 'bun:test'
import { CHANNEL, TOKEN as DISCORD_TOKEN, startDiscord } from '../support/discord/fake.ts'
import { gateway } from '../support/gateway.ts'
import { ADA, startTelegram, TOKEN } from '../support/telegram/fake.ts'
import { home, scripted } from '../support/turns.ts'
import { until } from '../support/until.ts'

test('a proxy that answers in place of Telegram and Discord shows in /health, /status, /metrics and doctor, and the channels go on when it lets them', async () => {
  using fake = startTelegram()
  using discord = startDiscord()
  using at = home(
    `[channels.telegram]\nenabled = true\napi = "${fake.api}"\nusers = ["${ADA.id}"]\n[channels.discord]\nenabled = true\napi = "${discord.api}"\nusers = ["1500000000000000001"]\n`,
  )
  const denied = { status: 403, body: '<html>Access denied by Example Proxy</html>' }
  fake.trouble.getMe = Array(100).fill(denied)
  const env = {
    TELEGRAM_BOT_TOKEN: TOKEN,
    DISCORD_BOT_TOKEN: DISCORD_TOKEN,
    DISCORD_CHANNEL_ID: CHANNEL,
    ...scripted(at, [{ text: 'here' }]).env,
  }
  await using server = await gateway(at, [], { env })
  await until(async () => (await server.ask('/health')).body.status === 'degraded')
  const health = await server.ask('/health', undefined, { headers: {} })
  const why = 'getMe: something other than Telegram answers 403 "Access denied by Example Proxy"'
  expect([health.status, health.body]).toEqual([
    200,
    { ok: true, version: expect.any(String), status: 'degraded', problems: [expect.stringContaining(why)] },
  ])
  expect((await server.ask('/status')).body.troubles).toMatchObject([
    { channel: 'telegram', state: 'out of reach', why: expect.stringContaining('check the network, a proxy or portal') },
  ])
  const metrics = await (await fetch(`${server.url}/metrics`, { headers: { authorization: `Bearer ${server.token}` } })).text()
  expect(metrics).toContain('braidclaw_channel_up{channel="telegram"} 0')
  expect(metrics).toContain('braidclaw_channel_up{channel="discord"} 1')
  const doctor = await at.run(['doctor'], { env })
  expect(doctor.stdout).toMatch(/✗ channel +telegram: out of reach since .*Access denied by Example Proxy/)
  fake.trouble.getMe = []
  fake.say('Hello')
  await until(() => fake.texts().includes('here'))
  expect((await server.ask('/health')).body.status).toBeUndefined()
  expect((await at.run(['doctor'], { env })).stdout).not.toContain('out of reach')
}, 60_000)
