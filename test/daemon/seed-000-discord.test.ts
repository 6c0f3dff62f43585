/** Discord beside the FIFOs of the daemon, and as a bridge for another agent, through the real executable against a Discord on loopback. */

import { expect, test } from 'bun:test'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createFifos } from '../../src/service/fifo/fifo-folder.ts'
import { openLines } from '../../src/service/fifo/fifo-reader.ts'
import { openWriter } from '../../src/service/fifo/fifo-writer.ts'
import { type Nest, nest } from '../support/cli.ts'
import { daemon, folderOf, historyOf, launch, person, stopping } from '../support/daemon.ts'
import { until } from '../support/discord/client.ts'
import { ADA, BOT, CHANNEL, type FakeDiscord, OTHER_CHANNEL, startDiscord, TOKEN } from '../support/discord/fake.ts'
import { scripted } from '../support/turns.ts'

const env = { DISCORD_BOT_TOKEN: TOKEN, DISCORD_CHANNEL_ID: CHANNEL }

/** Switched on for this Discord, where the one person who writes is the operator. */
function on(at: Nest, fake: Pick<FakeDiscord, 'api'>): void {
  at.config(`[channels.discord]\nenabled = true\napi = "${fake.api}"\nprofile = "operator"\nusers = ["${ADA}"]\n`)
}

const identified = (fake: FakeDiscord) => until(() => fake.gateway.seen.identifies.length > 0)
const sent = (fake: FakeDiscord) => fake.rest.seen.messages.map(({ channel, content }) => [channel, content])

test('a token or a channel that is missing is said at once, and nothing is started', async () => {
  using at = nest()
  using fake = startDiscord()
  on(at, fake)
  const without = await launch(at).result
  expect([without.code, without.stderr]).toEqual([1, expect.stringContaining('DISCORD_BOT_TOKEN: is empty')])
  const nowhere = await launch(at, [], { env: { DISCORD_BOT_TOKEN: TOKEN } }).result
  expect([nowhere.code, nowhere.stderr]).toEqual([1, expect.stringContaining('DISCORD_CHANNEL_ID: is empty')])
  expect(nowhere.stderr).not.toContain(TOKEN)
  expect(fake.gateway.seen.connections).toBe(0)
})

test('config.env with DISCORD_* alone says in one line what is missing', async () => {
  using at = nest()
  mkdirSync(join(at.home, '.braidclaw'), { recursive: true })
  writeFileSync(join(at.home, '.braidclaw/config.env'), `export DISCORD_BOT_TOKEN="${TOKEN}"\nexport DISCORD_CHANNEL_ID="${CHANNEL}"\n`)
  const { stderr } = await (await daemon(at)).stop()
  const lines = stderr.split('\n').filter((line) => line.includes('channel not started'))
  expect(lines).toHaveLength(1)
  for (const missing of ['[channels.discord]', 'enabled = true', 'users = ', 'config.toml', 'ANTHROPIC_API_KEY'])
    expect(lines[0]).toContain(missing)
  expect(stderr).not.toContain(TOKEN)
  at.config('[channels.discord]\nenabled = true\n')
  expect((await launch(at, [], { env: { DISCORD_CHANNEL_ID: 'wrong' } }).result).stderr).not.toContain('channel not started')
})

test('bots, webhooks and other channels are not answered; people are, in the channel where they asked, in pieces that Discord takes', async () => {
  using at = nest()
  using fake = startDiscord()
  on(at, fake)
  const long = `${'word '.repeat(500)}end`
  const replies = scripted(at, [{ text: 'Hello Ada' }, { text: long }])
  await using agent = stopping(await daemon(at, [], { env: { ...env, ...replies.env } }))
  await agent.says('channel started channel=discord')
  fake.say({ content: 'I am a bot', author: BOT })
  fake.say({ content: 'elsewhere', channel: OTHER_CHANNEL })
  fake.say('Hello')
  await until(() => fake.rest.seen.messages.length === 1)
  fake.say('Tell me more\nwith a second line')
  await until(() => fake.rest.seen.messages.length === 3)
  expect(sent(fake)[0]).toEqual([CHANNEL, 'Hello Ada'])
  expect(fake.rest.seen.messages.slice(1).map(({ content }) => content.length <= 2000)).toEqual([true, true])
  expect(fake.rest.seen.typing).toContain(CHANNEL)
  expect(historyOf(at)).toEqual(['Hello', 'Hello Ada', 'Tell me more\nwith a second line', long])
})

test('the FIFOs do not wait for a Discord that is out of reach, and both share one history', async () => {
  using at = nest()
  using fake = startDiscord()
  on(at, fake)
  fake.rest.trouble.gateway.push({ status: 503 })
  const replies = scripted(at, [{ text: 'by FIFO' }, { text: 'by Discord' }])
  await using agent = stopping(await daemon(at, [], { env: { ...env, ...replies.env } }))
  await using me = await person(agent.dir)
  expect(await me.ask('First')).toBe('by FIFO')
  expect(fake.gateway.seen.identifies).toEqual([])
  await identified(fake)
  fake.say('Second')
  await until(() => fake.rest.seen.messages.length === 1)
  expect(historyOf(at)).toEqual(['First', 'by FIFO', 'Second', 'by Discord'])
}, 120_000)

test('a token that Discord refuses ends Discord, not the daemon', async () => {
  using at = nest()
  using fake = startDiscord()
  on(at, fake)
  await using agent = stopping(
    await daemon(at, [], { env: { ...env, DISCORD_BOT_TOKEN: 'wrong', ...scripted(at, [{ text: 'here' }]).env } }),
  )
  await agent.says('channel failed channel=discord')
  await using me = await person(agent.dir)
  expect(await me.ask('Still there?')).toBe('here')
})

test('SIGTERM while Discord waits for its answer: it still gets it, then the connection is closed', async () => {
  using at = nest()
  using fake = startDiscord()
  on(at, fake)
  const agent = await daemon(at, [], { env: { ...env, ...scripted(at, [{ text: 'in time', delay_ms: 500 }]).env } })
  await agent.says('channel started channel=discord')
  fake.say('Quick')
  await until(() => fake.rest.seen.typing.length > 0)
  fake.say('Too late')
  const { code } = await agent.stop()
  expect(code).toBe(0)
  const answers = sent(fake).map(([, content]) => content)
  expect(answers).toContain('in time')
  expect(answers.filter((text) => text?.startsWith('[not answered'))).toHaveLength(1)
  await until(() => fake.gateway.seen.open() === 0)
})

test('bridge discord carries messages to the FIFOs of another agent and its answers back, escapes and all', async () => {
  using at = nest()
  using fake = startDiscord()
  at.config(`[channels.discord]\napi = "${fake.api}"\nusers = ["${ADA}"]\n`)
  const dir = folderOf(at)
  await createFifos(dir)
  const leaving = new AbortController()
  const asked = openLines(join(dir, 'interact_in'), { signal: leaving.signal })
  const answers = openWriter(join(dir, 'interact_out'))
  const bridge = at.start(['bridge', 'discord', '--fifo-dir', dir], { env, timeoutMs: 25_000 })
  await bridge.says('ready: Discord talks to')
  fake.say({ content: 'from a stranger', author: { id: '1500000000000000666' } })
  fake.say('two\nlines\tand \\ a backslash')
  expect((await asked.next()).value).toEqual({ ok: true, text: `${CHANNEL}\ttwo\\nlines\\tand \\\\ a backslash` })
  await answers.write(`nonsense\n${OTHER_CHANNEL}\tnot there\n${CHANNEL}\tone\\ntwo \\\\ three\n`, { timeoutMs: 1000 })
  await until(() => fake.rest.seen.messages.length === 2)
  expect(sent(fake)).toEqual([
    [CHANNEL, expect.stringMatching(/^Sorry, I only talk with people/)],
    [CHANNEL, 'one\ntwo \\ three'],
  ])
  process.kill(bridge.pid, 'SIGTERM')
  const { code, stderr } = await bridge.result
  expect(code).toBe(0)
  expect(stderr).toContain('a line has no tab')
  expect(stderr).toContain(`channel "${OTHER_CHANNEL}" is not one of ${CHANNEL}`.replaceAll('"', '\\"'))
  leaving.abort()
  answers.close()
})

test('bridge discord with a token that Discord refuses ends with 1 and says so', async () => {
  using at = nest()
  using fake = startDiscord()
  at.config(`[channels.discord]\napi = "${fake.api}"\n`)
  const { code, stderr } = await at.run(['bridge', 'discord', '--fifo-dir', folderOf(at)], { env: { ...env, DISCORD_BOT_TOKEN: 'wrong' } })
  expect([code, stderr]).toEqual([1, expect.stringContaining('DISCORD_BOT_TOKEN')])
})

test('bridge discord that is told to stop while Discord is out of reach ends with 0', async () => {
  using at = nest()
  at.config('[channels.discord]\napi = "http://127.0.0.1:9/api"\n')
  const bridge = at.start(['bridge', 'discord', '--fifo-dir', folderOf(at)], { env })
  await bridge.says('discord out of reach')
  process.kill(bridge.pid, 'SIGTERM')
  expect((await bridge.result).code).toBe(0)
})
