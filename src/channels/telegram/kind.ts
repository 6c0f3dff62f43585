/** Defines Telegram for the list of channels; the connection loads only when it is enabled. */

import type { ChannelKind } from '../inbox/channel-api.ts'
import { telegramRows } from './settings.ts'

export const telegram = {
  name: 'telegram',
  settings: telegramRows,
  people: { form: 'telegram' },
  isOn: ({ enabled }) => enabled,
  create: async ({ setup, settings }) => (await import('./channel.ts')).openTelegramChannel(setup, settings),
} as const satisfies ChannelKind<typeof telegramRows>
