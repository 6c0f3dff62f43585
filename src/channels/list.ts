/** The channels that the daemon listens to, each of which its settings switch on; and all that have a section of their own. */

import type { ChannelRows } from '../config/table.ts'
import type { ChannelKind } from '../host/api.ts'
import { discord } from './discord/channel.ts'
import { fifo } from './fifo/channel.ts'
import { cliChannel } from './terminal/settings.ts'

export const channelKinds: readonly ChannelKind[] = [
  // One line a channel.
  fifo,
  discord,
]

/** Loading the configuration knows no channel: it is told of these. */
export const channelRows: readonly ChannelRows[] = [cliChannel, ...channelKinds]
