/** Lists the channels that the daemon can listen to, each enabled by its settings, and all channels with a configuration section. */

import type { ChannelRows } from '../config/table.ts'
import { rowsOf } from '../host/access/channel-profile.ts'
import { discord } from './discord/kind.ts'
import { fifo } from './fifo/kind.ts'
import { http } from './http/kind.ts'
import type { ChannelKind } from './inbox/channel-api.ts'
import { telegram } from './telegram/kind.ts'
import { cliChannel } from './terminal/settings.ts'

export const channelKinds: readonly ChannelKind[] = [
  // One line per channel.
  fifo,
  discord,
  telegram,
  http,
]

/** The configuration loader knows no channel by itself; callers pass these rows to it. */
export const channelRows: readonly ChannelRows[] = [
  cliChannel,
  ...channelKinds.map((kind) => ({ name: kind.name, settings: rowsOf(kind) })),
]
