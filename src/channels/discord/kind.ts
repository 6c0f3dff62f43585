/** Defines Discord for the list of channels; the connection loads only when it is enabled. */

import type { ChannelKind } from '../inbox/channel-api.ts'
import { discordRows } from './settings.ts'

export const discord = {
  name: 'discord',
  settings: discordRows,
  people: { form: 'snowflake' },
  isOn: ({ enabled }) => enabled,
  create: async ({ setup, settings }) => (await import('./channel.ts')).openDiscordChannel(setup, settings),
} as const satisfies ChannelKind<typeof discordRows>
