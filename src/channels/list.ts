/** Every channel with a section of its own, one line each; the order is that of the docs. */

import type { ChannelRows } from '../config/table.ts'
import { discordChannel } from './discord/settings.ts'
import { cliChannel } from './terminal/settings.ts'

export const channelKinds = [cliChannel, discordChannel] as const satisfies readonly ChannelRows[]
