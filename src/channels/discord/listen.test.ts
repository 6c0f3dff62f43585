import { expect, test } from 'bun:test'
import { connected, until } from '../../../test/support/discord/client.ts'
import { BOT, CHANNEL, OTHER_CHANNEL, startDiscord } from '../../../test/support/discord/fake.ts'

const texts = (heard: readonly { readonly text: string }[]) => heard.map((one) => one.text)

test('not to bots, webhooks, itself, other channels, or to what Discord says', async () => {
  using fake = startDiscord()
  await using client = await connected(fake)
  fake.say({ content: 'a bot', author: { id: '1600000000000000001', bot: true } })
  fake.say({ content: 'a webhook', rest: { webhook_id: '1600000000000000002' } })
  fake.say({ content: 'ourselves', author: { id: BOT.id } })
  fake.say({ content: 'elsewhere', channel: OTHER_CHANNEL })
  fake.say({ content: 'nearly here', channel: `${CHANNEL}0` })
  fake.say({ content: 'Ada joined', rest: { type: 7 } })
  fake.say({ content: 'a reply', rest: { type: 19 } })
  await until(() => client.heard.length > 0)
  expect(texts(client.heard)).toEqual(['a reply'])
})

test('a message without text is ignored, and the log says why', async () => {
  using fake = startDiscord()
  await using client = await connected(fake)
  const photo = fake.say({ rest: { attachments: [{ id: '1', filename: 'cat.png', url: 'https://cdn.invalid/cat.png' }] } })
  const nothing = fake.say({ content: ' \n' })
  fake.say('words')
  await until(() => client.heard.length > 0)
  expect(texts(client.heard)).toEqual(['words'])
  const ignored = client.lines.filter((line) => line.event === 'discord message ignored')
  expect(ignored.map(({ fields }) => fields.messageId)).toEqual([photo, nothing])
  expect(ignored.map(({ fields }) => String(fields.reason))).toEqual([
    expect.stringContaining('attachments, stickers and polls are not supported'),
    expect.stringContaining('turn on "Message Content Intent"'),
  ])
})

test('without the intent for texts the log says so', async () => {
  using fake = startDiscord()
  await using client = await connected(fake, { intents: 512 })
  fake.say('unreadable')
  await until(() => client.lines.some((line) => line.event === 'discord message ignored'))
  expect(client.heard).toEqual([])
  expect(fake.gateway.seen.identifies[0]?.intents).toBe(512)
})

test('a message says where, who and what, in the order of the writing', async () => {
  using fake = startDiscord()
  await using client = await connected(fake, { channelIds: [CHANNEL, OTHER_CHANNEL] })
  const first = fake.say({ content: 'Hello\n\tyou 👋', author: { id: '1500000000000000009' } })
  fake.say({ content: 'second', channel: OTHER_CHANNEL })
  await until(() => client.heard.length === 2)
  expect(client.heard[0]).toEqual({ channel: CHANNEL, text: 'Hello\n\tyou 👋', authorId: '1500000000000000009', messageId: first })
  expect(client.heard[1]).toMatchObject({ channel: OTHER_CHANNEL, text: 'second' })
  expect(client.discord.userId).toBe(BOT.id)
})
