/** The channels that the daemon listens to, each of which its settings switch on. */

import type { ChannelKind } from '../host/api.ts'
import { discord } from './discord/channel.ts'
import { fifo } from './fifo/channel.ts'

export const channelKinds: readonly ChannelKind[] = [
  // One line a channel (docs/channels.md).
  fifo,
  discord,
]
