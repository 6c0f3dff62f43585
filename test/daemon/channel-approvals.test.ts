/** Questions put to the people in a channel of the daemon, through the real executable. */

import { expect, test } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { daemon, historyOf, person, stopping } from '../support/daemon.ts'
import { until } from '../support/discord/client.ts'
import { CHANNEL, OTHER_CHANNEL, startDiscord, TOKEN } from '../support/discord/fake.ts'
import { call, home, scripted } from '../support/turns.ts'

const codeIn = (text: string) => /"yes (\w+)"/.exec(text)?.[1] ?? ''
const write = call('file_write', { path: 'a.txt', content: 'x' })

test('on the FIFOs: a stranger is told, a no refuses, a yes writes; another channel is refused as ever', async () => {
  using at = home('[channels.fifo]\napprovers = ["boss"]\n')
  const replies = [write, { text: 'Refused.' }, write, { text: 'Refused too.' }, write, { text: 'Written.' }]
  await using agent = stopping(await daemon(at, [], scripted(at, replies)))
  await using me = await person(agent.dir)
  expect(await me.ask('Write it', 'guest')).toMatch(/^Refused\.\n\n\[approval needed: /)

  const question = await me.ask('Write it', 'boss')
  expect(question).toContain('```diff\nnew a.txt (+1 −0)\n')
  expect(question).toContain('+x')
  const first = codeIn(question)
  expect(await me.ask(`yes ${first}`, 'guest')).toBe(`[not counted: question ${first} was not asked here]`)
  expect(await me.ask(`no ${first}`, 'boss')).toMatch(/^Refused too\.\n\n\[denied: /)
  expect(existsSync(join(at.workspace, 'a.txt'))).toBe(false)

  const second = codeIn(await me.ask('Write it now', 'boss'))
  expect(await me.ask(`yes ${second}`, 'boss')).toBe('Written.')
  expect(readFileSync(join(at.workspace, 'a.txt'), 'utf8')).toBe('x')
  expect(await me.ask(`yes ${second}`, 'boss')).toBe(`[not counted: question ${second} is closed already]`)
  expect(historyOf(at).join('\n')).not.toContain('BraidClaw asks')
  const { stdout } = await at.run(['approvals', 'list', '--all', '--json'])
  const asked: { readonly state: string; readonly decidedBy: string }[] = JSON.parse(stdout)
  expect(asked.map(({ state, decidedBy }) => `${state} ${decidedBy}`).sort()).toEqual(['denied fifo boss', 'open null', 'used fifo boss'])
}, 120_000)

test('asked in the channel, answered by another process: the turn goes on at once', async () => {
  using at = home('[channels.fifo]\napprovers = ["boss"]\n')
  await using agent = stopping(await daemon(at, [], scripted(at, [write, { text: 'Written.' }])))
  await using me = await person(agent.dir)
  const id = /approvals allow (\S+)/.exec(await me.ask('Write it', 'boss'))?.[1] ?? ''
  expect((await at.run(['approvals', 'allow', id])).code).toBe(0)
  expect((await me.hear()).text).toBe('Written.')
})

test('SIGTERM while a question is open: the turn is cancelled and says so within the grace, and nothing was done', async () => {
  using at = home('[channels.fifo]\napprovers = ["boss"]\n')
  const agent = await daemon(at, [], scripted(at, [write, { text: 'Written.' }]))
  await using me = await person(agent.dir)
  await me.ask('Write it', 'boss')
  const ended = agent.stop()
  expect((await me.hear()).text).toMatch(/^\[cancelled: /)
  expect((await ended).code).toBe(0)
  expect(existsSync(join(at.workspace, 'a.txt'))).toBe(false)
})

test('on Discord: only the people listed may answer; two channels are two conversations, and one that waits holds up no other', async () => {
  using at = home()
  using fake = startDiscord()
  const [owner, guest] = ['100000000000000001', '100000000000000002']
  at.config(
    `${readFileSync(join(at.home, '.braidclaw/config.toml'), 'utf8')}[channels.discord]\nenabled = true\napi = "${fake.api}"\nchannel_ids = ["${CHANNEL}", "${OTHER_CHANNEL}"]\napprovers = ["${owner}"]\nusers = ["${guest}"]\nprofile = "operator"\n`,
  )
  const replies = scripted(at, [write, { text: 'Here I am.' }, { text: 'Written.' }])
  await using agent = stopping(await daemon(at, [], { env: { DISCORD_BOT_TOKEN: TOKEN, ...replies.env } }))
  await agent.says('channel started channel=discord')
  const sent = () => fake.rest.seen.messages.map(({ channel, content }) => [channel, content ?? ''] as const)
  fake.say({ content: 'Write it', author: { id: guest } })
  await until(() => sent().length === 1)
  const code = codeIn(sent()[0]?.[1] ?? '')
  fake.say({ content: `yes ${code}`, author: { id: guest } })
  await until(() => sent().length === 2)
  expect(sent()[1]).toEqual([CHANNEL, '[not counted: you may not answer questions here; channels.discord.approvers says who may]'])
  fake.say({ content: 'And you?', channel: OTHER_CHANNEL, author: { id: guest } })
  await until(() => sent().length === 3)
  expect(sent()[2]).toEqual([OTHER_CHANNEL, 'Here I am.'])
  fake.say({ content: `yes ${code}`, author: { id: owner } })
  await until(() => sent().length === 4)
  expect(sent()[3]).toEqual([CHANNEL, 'Written.'])
  expect(historyOf(at)).toEqual(['Write it', 'Written.'])
  const { stdout } = await at.run(['memory', 'list', '--json'])
  expect(JSON.parse(stdout)).toHaveLength(2)
})
