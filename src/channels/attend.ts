/** Runs an attended channel: it opens a host for the channel and closes the host when the channel has ended. */

import type { Setup } from '../host/api.ts'
import { openHost } from '../host/open/open-host.ts'
import type { AttendedChannel } from './inbox/channel-api.ts'

/** @throws what opening the host throws, and the error that ended the channel */
export async function attend(setup: Setup, channel: AttendedChannel): Promise<void> {
  const host = openHost(setup)
  try {
    await channel.start(host, new AbortController().signal)
  } finally {
    await host.close()
  }
}
