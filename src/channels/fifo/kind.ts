/** Defines the FIFO channel for the list: it has only the settings that every channel has. */

import type { ChannelKind } from '../inbox/channel-api.ts'

/** Only the owner of the folder can open the FIFOs, so a writer there is the operator, unless the settings say that it is a chat. */
export const fifo = {
  name: 'fifo',
  settings: {},
  people: { profile: 'operator', users: ['*'] },
  vital: true,
  isOn: () => true,
  create: async ({ dir }) => (await import('./channel.ts')).createFifoChannel(dir),
} as const satisfies ChannelKind
