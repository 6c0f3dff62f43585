/** Defines the settings of [channels.telegram]: the bot's token, and how photos are kept. */

import type { Rows, Values } from '../../kit/settings.ts'

export const telegramRows = {
  enabled: { type: 'boolean', default: false, about: 'Whether the daemon also listens on Telegram (docs/telegram.md).' },
  token_env: {
    type: 'text',
    form: 'variable',
    default: 'TELEGRAM_BOT_TOKEN',
    about: "The NAME of the variable that holds the bot's token.",
  },
  api: {
    type: 'url',
    absent: 'https://api.telegram.org',
    example: 'https://api.telegram.org',
    about: 'Where the Bot API is, for a server of your own or a test.',
  },
  tmp_dir: {
    type: 'path',
    absent: 'TMP_DIR of the environment, or else tmp in the home',
    example: '~/braidclaw-tmp',
    about: 'Photos are saved below it, in telegram/photos/CHAT.',
  },
  photo_max_mb: {
    type: 'whole',
    min: 1,
    max: 20,
    unit: 'MiB',
    default: 10,
    about: 'A larger photo is not fetched; the model gets a note instead.',
  },
  photos_keep: {
    type: 'whole',
    min: 1,
    max: 100_000,
    unit: 'photos',
    default: 200,
    about: 'How many photos to keep; the oldest are removed first.',
  },
  photos_keep_mb: {
    type: 'whole',
    min: 1,
    max: 100_000,
    unit: 'MiB',
    default: 200,
    about: 'How much space the photos may take; the oldest are removed first.',
  },
} as const satisfies Rows

export type TelegramSettings = Values<typeof telegramRows>
