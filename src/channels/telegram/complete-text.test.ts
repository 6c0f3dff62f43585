import { afterAll, expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { place } from '../../../test/support/host.ts'
import { startTelegram, TOKEN } from '../../../test/support/telegram/fake.ts'
import { channelSettings } from '../../config/config.ts'
import { createProviderFetch } from '../../workspace/net/provider-fetch.ts'
import { createBotApi } from './bot-api.ts'
import { type CompletionContext, completeText } from './complete-text.ts'
import type { TelegramMessage } from './inbound.ts'
import { telegram } from './kind.ts'

const fake = startTelegram()
afterAll(() => fake[Symbol.dispose]())
fake.files.set('p', { path: 'photos/1.jpg', bytes: Uint8Array.from([0xff, 0xd8, 0xff, 0xe0]) })
const api = createBotApi({ api: fake.api, token: TOKEN, fetch: createProviderFetch({ baseUrl: fake.api }) })
const plain = { updateId: 1, messageId: 4, chat: '5', person: '5', text: 'look', photos: [], isGroup: false, isForwarded: false }

async function completed(
  given: Partial<TelegramMessage>,
  { config = '', env = {}, more = {} }: { config?: string; env?: object; more?: Partial<CompletionContext> },
) {
  using at = place(config)
  const loaded = at.setup()
  const setup = { ...loaded, context: { ...loaded.context, env: { ...loaded.context.env, ...env } } }
  const marked: string[] = []
  const conversation: CompletionContext['conversation'] = {
    readPictures: async (pictures) => pictures.slice(0, 1).map(() => ({ ok: true, text: 'words' })),
    readsUntrusted: async () => void marked.push('untrusted'),
  }
  const settings = channelSettings(setup.config, telegram)
  const signal = new AbortController().signal
  const text = await completeText(
    { ...plain, ...given },
    { conversation, access: { profile: 'chat' }, setup, settings, api, signal, ...more },
  )
  return { text, marked, home: at.home, isSaved: existsSync(join(at.home, 'tmp/telegram/photos/5/4.jpg')) }
}

const photo = { fileId: 'p', messageId: 4 }

test('a photo that is too large by its own word is not asked for, and the message goes on', async () => {
  const { text } = await completed(
    { photos: [{ ...photo, bytes: 2_000_000 }] },
    { config: '[channels.telegram]\nphoto_max_mb = 1\n', more: { access: { profile: 'operator' } } },
  )
  expect(text).toBe('look\n[Photo not saved: it has 2 MiB; channels.telegram.photo_max_mb permits 1]')
  expect(fake.seen.calls).toEqual([])
})

test('people in a chat do not learn where the folder is, nor why a photo was not saved', async () => {
  const saved = await completed({ photos: [photo] }, {})
  expect(saved.text).toStartWith('look\n[Photo saved: TMP_DIR/telegram/photos/5/4.jpg]\n')
  expect([saved.text.includes(saved.home), saved.isSaved]).toEqual([false, true])
  const relative = await completed({ photos: [photo] }, { env: { TMP_DIR: 'tmp' } })
  expect(relative.text).toBe('look\n[Photo not saved: it could not be fetched or is too large]')
})

test('what was forwarded is marked as content of others; what the person wrote is not', async () => {
  expect((await completed({ isForwarded: true }, {})).marked).toEqual(['untrusted'])
  expect((await completed({}, {})).marked).toEqual([])
})

test('of several photos those that were not read are counted', async () => {
  const { text } = await completed({ photos: [photo, { ...photo, messageId: 5 }, { ...photo, messageId: 6 }] }, {})
  expect(text).toContain('[2 more pictures of this message: not read.]')
  expect(text.match(/\[Photo saved: /g)).toHaveLength(3)
})
