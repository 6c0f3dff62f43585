/** Lists the channels that the daemon can listen to, each enabled by its settings, and all channels with a configuration section. */

import { channelSettings } from '../config/config.ts'
import type { ChannelRows } from '../config/table.ts'
import { rowsOf } from '../host/access/channel-profile.ts'
import type { Setup } from '../host/api.ts'
import { FailureError } from '../host/failure.ts'
import type { Rows } from '../kit/settings.ts'
import { discord } from './discord/kind.ts'
import { fifo } from './fifo/kind.ts'
import { http } from './http/kind.ts'
import type { ChannelKind } from './inbox/channel-api.ts'
import { plugins } from './plugins/kind.ts'
import { telegram } from './telegram/kind.ts'

/** Defines the settings of [channels.cli], the command line. */
const settings = {
  enabled: { type: 'boolean', default: true, project: 'free', init: 'written', about: 'Whether `braidclaw agent` may be used.' },
  tools_allow: {
    type: 'words',
    form: 'tool',
    project: 'stricter',
    absent: 'every built-in tool',
    example: ['file_read', 'file_list', 'time', 'memory_search', 'shell'],
    about: 'The tools offered to the model on the command line.',
  },
} as const satisfies Rows

export const cliChannel = { name: 'cli', settings } as const

/** @throws FailureError `error` when the configuration switches the command line off */
export function assertCommandLine({ config }: Pick<Setup, 'config'>): void {
  if (!channelSettings(config, cliChannel).enabled)
    throw new FailureError('error', '[channels.cli] enabled = false; this channel is switched off')
}

export const channelKinds: readonly ChannelKind[] = [
  // One line per channel.
  fifo,
  discord,
  telegram,
  http,
  plugins,
]

/** The configuration loader knows no channel by itself; callers pass these rows to it. */
export const channelRows: readonly ChannelRows[] = [
  cliChannel,
  ...channelKinds.map((kind) => ({ name: kind.name, settings: rowsOf(kind) })),
]
