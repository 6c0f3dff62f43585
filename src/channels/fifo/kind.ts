/** Defines the FIFO channel for the list: its settings, and how to create it. */

import type { ChannelKind } from '../../host/api.ts'
import type { Rows } from '../../kit/settings.ts'

const settings = {
  approvers: {
    type: 'words',
    form: 'any',
    default: [],
    about: 'The channels of interact_in whose writers may answer what a call needs a yes for; nobody is asked there when empty.',
  },
} as const satisfies Rows

export const fifo = {
  name: 'fifo',
  settings,
  vital: true,
  isOn: () => true,
  create: async ({ dir, settings: { approvers } }) => (await import('./channel.ts')).createFifoChannel(dir, approvers),
} as const satisfies ChannelKind<typeof settings>
