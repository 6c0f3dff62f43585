/** Answers whose delivery fails, over outages and kill -9, through the real executable. */

import { expect, test } from 'bun:test'
import type { Nest } from '../support/cli.ts'
import { type Daemon, daemon, stopping } from '../support/daemon.ts'
import { CHANNEL, ADA as DISCORD_ADA, TOKEN as DISCORD_TOKEN, startDiscord } from '../support/discord/fake.ts'
import { ADA, BOT, startTelegram, TOKEN } from '../support/telegram/fake.ts'
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

const group = { id: -55, type: 'group', title: 'Us' }
const moved = {
  status: 400,
  body: {
    ok: false,
    error_code: 400,
    description: 'Bad Request: group chat was upgraded to a supergroup chat',
    parameters: { migrate_to_chat_id: -10055 },
  },
}

test('a group that moved while its answer was written gets it at its new address; its conversation and its schedule follow', async () => {
  using fake = startTelegram()
  using at = home(`[channels.telegram]\nenabled = true\napi = "${fake.api}"\nusers = ["${ADA.id}"]\n`)
  await at.run(['schedule', 'add', 'report', '--every', '1h', '--message', 'Report', '--channel', 'telegram', '--to', '-55'])
  await using agent = await started(at, [{ text: 'first' }, { text: 'second' }, { text: 'the report' }])
  fake.trouble.sendMessage = [moved]
  fake.say({ chat: group, text: `@${BOT.username} one` })
  await until(() => fake.texts().includes('first'))
  fake.say({ chat: { id: -10055, type: 'supergroup' }, text: `@${BOT.username} two` })
  await until(() => fake.texts().includes('second'))
  expect(fake.seen.sent.map(({ chat }) => chat)).toEqual([-10055, -10055])
  const listed = JSON.parse((await at.run(['memory', 'list', '--json'])).stdout)
  expect(listed).toMatchObject([{ title: 'one', turns: 2 }])
  expect(JSON.parse((await at.run(['schedule', 'show', 'report', '--json'])).stdout).to).toBe('-10055')
  await agent.stop()
}, 120_000)

test('a schedule whose chat refuses its answer for good is not counted as good, and doctor says so', async () => {
  using fake = startTelegram()
  using at = home(`[channels.telegram]\nenabled = true\napi = "${fake.api}"\nusers = ["${ADA.id}"]\n`)
  await at.run(['schedule', 'add', 'report', '--at', 'in 1s', '--message', 'Report', '--channel', 'telegram', '--to', '404'])
  await using agent = await started(at, [{ text: 'the report' }])
  await agent.says('answer not delivered')
  await until(async () => {
    const { runs } = JSON.parse((await at.run(['schedule', 'show', 'report', '--json'])).stdout)
    return runs.some(({ state, sent }: { state: string; sent?: string }) => state === 'bad' && sent?.includes('chat not found (400)'))
  })
  expect((await at.run(['doctor'])).stdout).toMatch(/✗ schedules +the last answer of "report" was not sent: .*chat not found/)
}, 120_000)
