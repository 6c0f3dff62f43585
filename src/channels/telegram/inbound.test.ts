import { describe, expect, test } from 'bun:test'
import { ADA, BOT, photoOf } from '../../../test/support/telegram/fake.ts'
import { type InboundUpdate, joinAlbums, parseUpdate, type TelegramMessage } from './inbound.ts'

const self = { id: BOT.id, username: 'Braid_Test_Bot' }
const group = { id: -100_123, type: 'supergroup' }

type Fields = Record<string, unknown>

function heard(message: Fields): InboundUpdate {
  return parseUpdate({ update_id: 7, message: { message_id: 3, from: ADA, chat: { id: ADA.id, type: 'private' }, ...message } }, self)
}

function taken(message: Fields): TelegramMessage {
  const found = heard(message)
  if (found.kind !== 'message') throw new Error(found.kind)
  return found.message
}

const named = (text: string, type = 'mention') => ({ text, entities: [{ type, offset: 0, length: text.split(' ')[0]?.length ?? 0 }] })

describe('what is not heard', () => {
  test.each([
    ['a bot', { from: { ...ADA, is_bot: true }, text: 'x' }],
    ['somebody of whom it is not said that it is no bot', { from: { id: 1 }, text: 'x' }],
    ['an id that is no number', { from: { id: '5', is_bot: false }, text: 'x' }],
    ['a person behind a channel', { sender_chat: { id: -1 }, text: 'x' }],
    ['the answer of another bot that a person passed on', { via_bot: BOT, text: 'x' }],
    ['a channel', { chat: { id: -1, type: 'channel' }, text: 'x' }],
    ['a group that does not address the bot', { chat: group, text: 'x' }],
    ['a group that addresses another one', { chat: group, ...named('@braid_test_bot2 hello') }],
    ['a name without an entity, which Telegram did not recognise', { chat: group, text: '@braid_test_bot hello' }],
    ['an answer to a person', { chat: group, text: 'x', reply_to_message: { from: ADA } }],
    ['a command that any bot may take', { chat: group, ...named('/new', 'bot_command') }],
  ])('%s', (_, message: Fields) => {
    expect(heard(message).kind).toBe('not for us')
  })

  test('what is no update', () => {
    for (const update of [undefined, null, 'x', [], {}, { update_id: 1 }, { update_id: 1, message: 'x' }])
      expect(parseUpdate(update, self).kind).toBe('not for us')
  })

  test('what has no text says what it is', () => {
    expect(heard({ voice: { file_id: 'v' } })).toEqual({
      kind: 'no text',
      chat: String(ADA.id),
      messageId: 3,
      why: 'voice messages are not supported',
    })
    expect(heard({ document: { file_id: 'd', mime_type: 'application/pdf' } })).toMatchObject({
      why: 'document messages are not supported',
    })
  })
})

test('a group is heard when it names the bot, links to it, answers it, or gives it a command; the name is not part of the text', () => {
  expect(taken({ chat: group, ...named('@BRAID_test_bot what is this?') })).toMatchObject({
    chat: '-100123',
    isGroup: true,
    text: 'what is this?',
  })
  expect(
    taken({ chat: group, text: 'Braid, hi', entities: [{ type: 'text_mention', offset: 0, length: 5, user: { id: BOT.id } }] }).text,
  ).toBe(', hi')
  expect(taken({ chat: group, text: 'why?', reply_to_message: { from: BOT } }).text).toBe('why?')
  expect(taken({ chat: group, ...named('/new@braid_test_bot', 'bot_command') })).toMatchObject({ command: 'new', text: '/new' })
  expect(
    taken({
      chat: group,
      caption: 'see 😀 @braid_test_bot',
      caption_entities: [{ type: 'mention', offset: 7, length: 15 }],
      photo: photoOf('p'),
    }),
  ).toMatchObject({ text: 'see 😀', photos: [{ fileId: 'p', messageId: 3, bytes: 90_000 }] })
})

test('a command is one only as the first word, and only /start, /stop and /new', () => {
  expect(taken(named('/STOP', 'bot_command')).command).toBe('stop')
  expect(taken(named('/start abc', 'bot_command')).command).toBe('start')
  expect(taken({ text: 'use /stop', entities: [{ type: 'bot_command', offset: 4, length: 5 }] }).command).toBeUndefined()
  expect(taken(named('/stop@other_bot', 'bot_command')).command).toBeUndefined()
  expect([taken(named('/help', 'bot_command')).command, taken({ text: '/stop' }).command]).toEqual([undefined, undefined])
})

test('the largest size of a photo counts, a picture sent as a file too; forwarded text and topics are known as such', () => {
  expect(taken({ photo: photoOf('p').toReversed() }).photos).toEqual([{ fileId: 'p', messageId: 3, bytes: 90_000 }])
  expect(taken({ document: { file_id: 'd', mime_type: 'image/png', file_size: 5 } }).photos).toEqual([
    { fileId: 'd', messageId: 3, bytes: 5 },
  ])
  expect([taken({ text: 'x' }).isForwarded, taken({ text: 'x', forward_origin: { type: 'hidden_user' } }).isForwarded]).toEqual([
    false,
    true,
  ])
  expect([
    taken({ text: 'x', message_thread_id: 9 }).thread,
    taken({ text: 'x', message_thread_id: 9, is_topic_message: true }).thread,
  ]).toEqual([undefined, 9])
})

test('an album is one message; those of others, and other albums, stay apart', () => {
  const part = (messageId: number, album: string, text = '') =>
    taken({ message_id: messageId, photo: photoOf(`p${messageId}`), media_group_id: album, caption: text })
  const joined = joinAlbums([
    part(1, 'a', 'two of them'),
    part(2, 'a'),
    part(3, 'b'),
    { ...part(4, 'a'), person: '9' },
    taken({ text: 'x' }),
  ])
  expect(joined.map(({ text, photos }) => [text, photos.map(({ messageId }) => messageId)])).toEqual([
    ['two of them', [1, 2]],
    ['', [3]],
    ['', [4]],
    ['x', []],
  ])
})

test('a group that becomes a supergroup says so in both', () => {
  expect(heard({ chat: { id: -5, type: 'group' }, migrate_to_chat_id: -1005 })).toEqual({ kind: 'moved', from: '-5', to: '-1005' })
  const inNew = { chat: { id: -1005, type: 'supergroup' }, sender_chat: { id: -1005 }, migrate_from_chat_id: -5 }
  expect(heard(inNew)).toEqual({ kind: 'moved', from: '-5', to: '-1005' })
  expect(heard({ chat: { id: 'x' }, migrate_to_chat_id: -1005, text: 'x' }).kind).toBe('not for us')
})
