/** A host for a channel where somebody is: opened for it, and closed when it has ended. */

import type { AttendedChannel, Setup } from '../host/api.ts'
import { openHost } from '../host/open-host.ts'

/** @throws what opening the host throws, and what ended the channel */
export async function attend(setup: Setup, channel: AttendedChannel): Promise<void> {
  const host = openHost(setup)
  try {
    await channel.start(host, new AbortController().signal)
  } finally {
    await host.close()
  }
}
