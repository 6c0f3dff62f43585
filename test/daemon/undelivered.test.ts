/** Answers whose delivery fails, over outages and kill -9, through the real executable. */

import { expect, test } from 'bun:test'
import type { Nest } from '../support/cli.ts'
import { type Daemon, daemon, stopping } from '../support/daemon.ts'
import { CHANNEL, ADA as DISCORD_ADA, TOKEN as DISCORD_TOKEN, startDiscord } from '../support/discord/fake.ts'
import { ADA, startTelegram, TOKEN } from '../support/telegram/fake.ts'
import { call, home, scripted } from '../support/turns.ts'
import { until } from '../support/until.ts'

const down = Array(1_000).fill({ status: 502, body: '<html>Bad Gateway</html>' })

async function started(at: Nest, replies: readonly object[]): Promise<Daemon & AsyncDisposable> {
  const env = { TELEGRAM_BOT_TOKEN: TOKEN, DISCORD_BOT_TOKEN: DISCORD_TOKEN, DISCORD_CHANNEL_ID: CHANNEL, ...scripted(at, replies).env }
  const agent = stopping(await daemon(at, [], { env, timeoutMs: 60_000 }))
  await agent.says(/channel started channel=(telegram|discord)/)
  return agent
}

test('Telegram: answers to two people survive an outage and kill -9, keep their order and arrive once; a blocked bot is a note of doctor', async () => {
  using fake = startTelegram()
  using at = home(`[channels.telegram]\nenabled = true\napi = "${fake.api}"\nusers = ["${ADA.id}", "77"]\n`)
  const first = await started(at, [{ text: 'answer one' }, { text: 'answer two' }])
  fake.trouble.sendMessage = [...down]
  fake.say('One')
  await first.says('answer waits')
  fake.say('Two')
  await until(async () => (await at.run(['doctor'])).stdout.match(/waits to be delivered/g)?.length === 2)
  await first.kill()
  fake.trouble.sendMessage = []
  await using second = await started(at, [{ text: 'never read' }])
  await until(() => fake.texts().length >= 2)
  expect(fake.texts()).toEqual(['answer one', 'answer two'])
  const blocked = { ok: false, error_code: 403, description: 'Forbidden: bot was blocked by the user' }
  fake.trouble.sendMessage = Array(3).fill({ status: 403, body: blocked })
  fake.say({ from: { id: 77, is_bot: false }, text: 'Hi' })
  await second.says('answer not delivered')
  const { stdout } = await at.run(['doctor'])
  expect(stdout).toMatch(
    /· answer +telegram: an answer of \S+ to 77 could not be delivered: .*blocked by the user \(403\); the person has blocked the bot/,
  )
  expect(stdout).not.toContain('waits to be delivered')
  await second.stop()
  expect(fake.texts()).toEqual(['answer one', 'answer two'])
}, 120_000)

test('Discord: an answer whose second piece failed survives kill -9 and is completed, each piece once', async () => {
  using fake = startDiscord()
  using at = home(`[channels.discord]\nenabled = true\napi = "${fake.api}"\nusers = ["${DISCORD_ADA}"]\n`)
  const long = `${'word '.repeat(500)}end`
  const first = await started(at, [{ text: long }])
  fake.rest.trouble.next.push({ status: 502, stage: 'after' }, ...down.slice(0, 4))
  fake.say('Tell me')
  await first.says('answer waits')
  await first.kill()
  fake.rest.trouble.next.length = 0
  await using second = await started(at, [{ text: 'never read' }])
  await until(() => fake.rest.seen.messages.length >= 2)
  await second.stop()
  expect(fake.rest.seen.messages.map(({ content }) => content).join('')).toBe(long)
}, 120_000)

test('a question that is delivered late can still be answered', async () => {
  using fake = startTelegram()
  using at = home(
    `[channels.telegram]\nenabled = true\napi = "${fake.api}"\nusers = ["${ADA.id}"]\nprofile = "operator"\napprovers = ["${ADA.id}"]\n`,
  )
  await using agent = await started(at, [call('file_write', { path: 'a.txt', content: 'x' }), { text: 'Written.' }])
  fake.trouble.sendMessage = down.slice(0, 5)
  fake.say('Write it')
  await agent.says('answer waits')
  await until(() => fake.texts().length === 1)
  fake.say(/"(yes \w+)"/.exec(fake.texts()[0] ?? '')?.[1] ?? '')
  await until(() => fake.texts().includes('Written.'))
}, 120_000)
