/** Lists the channels that the daemon can listen to, each enabled by its settings, and all channels with a configuration section. */

import type { ChannelRows } from '../config/table.ts'
import type { ChannelKind } from '../host/api.ts'
import { discord } from './discord/channel.ts'
import { fifo } from './fifo/channel.ts'
import { cliChannel } from './terminal/settings.ts'

export const channelKinds: readonly ChannelKind[] = [
  // One line per channel.
  fifo,
  discord,
]

/** The configuration loader knows no channel by itself; callers pass these rows to it. */
export const channelRows: readonly ChannelRows[] = [cliChannel, ...channelKinds]
