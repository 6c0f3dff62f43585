/** Defines HTTP for the list of channels; the server loads only when it is enabled. */

import type { ChannelKind } from '../inbox/channel-api.ts'
import { httpPeople, httpRows } from './settings.ts'

export const http = {
  name: 'http',
  settings: httpRows,
  people: httpPeople,
  isOn: ({ enabled }) => enabled,
  create: async ({ setup, settings }) => (await import('./channel.ts')).createHttpChannel(setup, settings),
} as const satisfies ChannelKind<typeof httpRows>
