import { expect, test } from 'bun:test'
import { connected, optionsFor, until } from '../../../test/support/discord/client.ts'
import { startDiscord, TOKEN } from '../../../test/support/discord/fake.ts'
import { startWire } from '../../../test/support/discord/wire.ts'
import { connectDiscord } from './connect.ts'

const texts = (heard: readonly { readonly text: string }[]) => heard.map((one) => one.text)

test('it says who it is and what it wants to hear', async () => {
  using fake = startDiscord()
  await using _ = await connected(fake)
  expect(fake.gateway.seen.identifies).toEqual([
    expect.objectContaining({ token: TOKEN, intents: 33_280, properties: { os: 'linux', browser: 'braidclaw', device: 'braidclaw' } }),
  ])
})

test('it beats with the last number it saw, at its pace and when asked', async () => {
  using fake = startDiscord({ heartbeatMs: 25 })
  await using client = await connected(fake)
  fake.say('one')
  await until(() => client.heard.length > 0)
  fake.gateway.seen.heartbeats.length = 0
  await until(() => fake.gateway.seen.heartbeats.length > 2)
  expect(new Set(fake.gateway.seen.heartbeats)).toEqual(new Set([2]))
  expect(client.waits).toEqual([])

  using calm = startDiscord()
  await using _ = await connected(calm)
  calm.gateway.ask(1)
  await until(() => calm.gateway.seen.heartbeats.length === 1)
})

test.each([undefined, 1000, 1001, 4000, 4001, 4008])('after a connection that ends with %p nothing is heard twice', async (code) => {
  using fake = startDiscord()
  await using client = await connected(fake)
  fake.say('before')
  await until(() => client.heard.length === 1)
  fake.gateway.drop(code)
  await until(() => fake.gateway.seen.open() === 0)
  await until(() => client.lines.some((line) => /connected|resumed/.test(line.event) && client.lines.indexOf(line) > 1))
  fake.say('after')
  await until(() => client.heard.length > 1)
  expect(texts(client.heard)).toEqual(['before', 'after'])
  expect(client.waits).toEqual([5000])
})

test('what is written while it is away is heard when it resumes, once', async () => {
  using fake = startDiscord()
  await using client = await connected(fake)
  for (const round of [1, 2, 3]) {
    fake.say(`before ${round}`)
    fake.gateway.drop(4000)
    fake.say(`away ${round}`)
    fake.say(`still away ${round}`)
    await until(() => fake.gateway.seen.resumes.length === round && fake.gateway.seen.open() === 1)
    await until(() => texts(client.heard).includes(`still away ${round}`))
  }
  fake.say('last')
  await until(() => texts(client.heard).includes('last'))
  const rounds = [1, 2, 3].flatMap((round) => [`before ${round}`, `away ${round}`, `still away ${round}`])
  expect(texts(client.heard)).toEqual([...rounds, 'last'])
  expect(fake.gateway.seen.identifies).toHaveLength(1)
  expect(fake.gateway.seen.resumes.every((one) => one.token === TOKEN)).toBe(true)
})

test('it comes back when it is asked to, at once if the connection was good', async () => {
  using fake = startDiscord({ heartbeatMs: 15 })
  await using client = await connected(fake)
  await until(() => fake.gateway.seen.heartbeats.length > 2)
  fake.gateway.ask(7)
  fake.say('meanwhile')
  await until(() => client.heard.length > 0)
  expect(fake.gateway.seen.resumes).toHaveLength(1)
  expect(fake.gateway.seen.closes).toContain(4200)
  expect(client.waits).toEqual([])
})

test('a server that asks for it again and again is not hurried after', async () => {
  using fake = startDiscord()
  await using client = await connected(fake)
  fake.gateway.ask(7)
  await until(() => fake.gateway.seen.resumes.length === 1)
  expect(client.waits).toEqual([5000])
})

test('a session that may be resumed is, one that may not begins anew, and the log says what that costs', async () => {
  using fake = startDiscord()
  await using client = await connected(fake)
  fake.gateway.invalidate(true)
  await until(() => fake.gateway.seen.resumes.length === 1)
  expect(fake.gateway.seen.connections).toBe(1)
  expect(client.lines.map((line) => line.event)).not.toContain('discord session lost')

  fake.gateway.invalidate(false)
  await until(() => fake.gateway.seen.identifies.length === 2)
  fake.say('anew')
  await until(() => client.heard.length > 0)
  expect(client.waits).toEqual([5000])
  expect(client.lines.map((line) => line.event)).toContain('discord session lost')
  // The gateway is requested before each identify, because Discord limits identifies per day.
  expect(fake.rest.seen.paths).toEqual(['GET /api/v10/gateway/bot', 'GET /api/v10/gateway/bot'])
})

test('a session that ran out while it was away begins anew', async () => {
  using fake = startDiscord()
  await using client = await connected(fake)
  fake.gateway.forget()
  fake.gateway.drop(4000)
  await until(() => fake.gateway.seen.identifies.length === 2)
  expect(fake.gateway.seen.resumes).toHaveLength(1)
  expect(client.waits).toEqual([5000, 5000])
})

test('a session that timed out is not asked for again', async () => {
  using fake = startDiscord()
  await using _ = await connected(fake)
  fake.gateway.drop(4009)
  await until(() => fake.gateway.seen.identifies.length === 2)
  expect(fake.gateway.seen.resumes).toEqual([])
})

test('heartbeats without an answer end the connection, and nothing is lost', async () => {
  using fake = startDiscord({ heartbeatMs: 20 })
  await using client = await connected(fake)
  await until(() => fake.gateway.seen.heartbeats.length > 1)
  fake.gateway.trouble.mute = true
  await until(() => fake.gateway.seen.resumes.length === 1)
  fake.gateway.trouble.mute = false
  fake.say('alive')
  await until(() => client.heard.length > 0)
})

test('a peer that is gone without a goodbye is left, and does not keep it waiting for one', async () => {
  using fake = startDiscord({ heartbeatMs: 20 })
  using wire = startWire(fake.port)
  fake.moveGateway(wire.port)
  await using client = await connected(fake)
  await until(() => fake.gateway.seen.heartbeats.length > 1)
  wire.freeze()
  fake.say('said into the void')
  await until(() => client.heard.length > 0)
  expect(texts(client.heard)).toEqual(['said into the void'])
  expect(fake.gateway.seen.resumes).toHaveLength(1)
  await until(() => fake.gateway.seen.open() === 1)
})

test('a network that is down for a while costs no message', async () => {
  using fake = startDiscord()
  using wire = startWire(fake.port)
  fake.moveGateway(wire.port)
  await using client = await connected(fake)
  wire.cut()
  fake.say('while it was down')
  await until(() => client.waits.length === 3)
  wire.state.cut = false
  await until(() => client.heard.length > 0)
  expect(client.waits.slice(0, 3)).toEqual([5000, 5000, 10_000])
  expect(fake.gateway.seen.identifies).toHaveLength(1)
})

test('it waits 5, 10, 20, 40, 60 and 60 seconds while nothing works, and 5 again after something did', async () => {
  using fake = startDiscord()
  fake.gateway.trouble.refuse.push(4000, 4000, 1000, 4000, 4008, 4000)
  await using client = await connected(fake)
  expect(client.waits).toEqual([5000, 10_000, 20_000, 40_000, 60_000, 60_000])
  fake.gateway.drop(4000)
  await until(() => fake.gateway.seen.resumes.length === 1)
  expect(client.waits.at(-1)).toBe(5000)
})

test('a gateway that refuses to begin is asked ever more slowly', async () => {
  using fake = startDiscord()
  fake.gateway.trouble.refuseIdentify = 3
  await using client = await connected(fake)
  expect(client.waits).toEqual([5000, 10_000, 20_000])
})

test('a Discord that is unreachable, fails, or asks for a pause is tried again later', async () => {
  using fake = startDiscord()
  fake.rest.trouble.gateway.push({ status: 503 }, { status: 502, body: '<html>' }, { status: 429, headers: { 'retry-after': '7' } })
  await using client = await connected(fake)
  expect(client.waits).toEqual([5000, 10_000, 7050])
  expect(client.lines.filter((line) => line.event === 'discord out of reach').map((line) => line.fields.reason)).toEqual([
    'gateway: Discord answers 503',
    'gateway: Discord answers 502',
    'gateway: Discord wants 8 s without requests (429)',
  ])
})

test('with no connections left for today it waits for tomorrow', async () => {
  using fake = startDiscord()
  fake.rest.trouble.remaining = 0
  const { options, waits, lines } = optionsFor(fake)
  const connecting = connectDiscord(options)
  await until(() => waits.length > 0)
  expect(fake.gateway.seen.connections).toBe(0)
  expect(waits[0]).toBe(86_400_000)
  fake.rest.trouble.remaining = 1
  const discord = await connecting
  expect(lines[0]?.fields.reason).toBe('the daily connection limit of this bot is reached')
  expect(discord.ok && (await discord.close())).toBeUndefined()
})

test.each(['{"op":9}', '{"op":10}', '{"op":0,"t":"READY","s":2,"d":{"session_id":"x"}}', '{"op":0,"t":"MESSAGE_CREATE","s":2}'])(
  'a frame without what must be there, %s, ends the connection and not the process',
  async (frame) => {
    using fake = startDiscord()
    await using client = await connected(fake)
    fake.gateway.babble(frame)
    await until(() => fake.gateway.seen.identifies.length === 2)
    expect(client.lines.at(1)).toMatchObject({
      event: 'discord disconnected',
      fields: { reason: expect.stringContaining('a frame that cannot be read: TypeError') },
    })
  },
)

test('what is no JSON, and events it does not know, pass by', async () => {
  using fake = startDiscord()
  await using client = await connected(fake)
  for (const text of ['', 'nonsense', '[]', '7', 'null', '{"op":99}', '{"op":0,"t":"SOMETHING_NEW","s":2,"d":null}'])
    fake.gateway.babble(text)
  fake.say('still here')
  await until(() => client.heard.length > 0)
  expect(client.waits).toEqual([])
})
