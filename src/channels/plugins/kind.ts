/** Defines the channels that plugins bring, for the list of channels; what runs them loads only when one is enabled. */

import type { Rows } from '../../kit/settings.ts'
import type { ChannelKind } from '../inbox/channel-api.ts'

const rows = {
  enabled: { type: 'boolean', default: false, about: 'Whether the daemon also listens on the channels of plugins (docs/plugins.md).' },
  names: {
    type: 'words',
    form: 'plugin',
    default: [],
    about: 'The approved plugins with the capability "channel"; their people are called NAME/PERSON.',
  },
} as const satisfies Rows

export const plugins = {
  name: 'plugins',
  settings: rows,
  isOn: ({ enabled }) => enabled,
  create: async ({ setup, settings }) => (await import('./channel.ts')).openPluginChannel(setup, settings.names),
} as const satisfies ChannelKind<typeof rows>
