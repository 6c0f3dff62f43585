/** Connects our side of the fake Discord through the guarded fetch; it records and shortens waits, and keeps the log. */

import { connectDiscord, type Discord, type DiscordOptions } from '../../../src/channels/discord/connect.ts'
import type { DiscordMessage } from '../../../src/channels/discord/gateway.ts'
import type { Log } from '../../../src/runtime/port.ts'
import { createProviderFetch } from '../../../src/workspace/net/provider-fetch.ts'
import { CHANNEL, type FakeDiscord, TOKEN } from './fake.ts'

export type LogLine = { readonly level: string; readonly event: string; readonly fields: Record<string, unknown> }

/** The longest real wait. */
const SHORT_MS = 20

export function optionsFor(fake: Pick<FakeDiscord, 'api'>, over: Partial<DiscordOptions> = {}) {
  const lines: LogLine[] = []
  const waits: number[] = []
  const log: Log = (level, event, fields = {}) => void lines.push({ level, event, fields: { ...fields } })
  const sleep = (ms: number, signal: AbortSignal) => {
    waits.push(ms)
    return signal.aborted ? Promise.reject(signal.reason) : Bun.sleep(Math.min(ms, SHORT_MS))
  }
  const fetch = createProviderFetch({ baseUrl: fake.api })
  const options: DiscordOptions = { token: TOKEN, channelIds: CHANNEL, fetch, restApi: fake.api, log, sleep, ...over }
  return { options, lines, waits }
}

/** @throws when there is no connection */
export async function connected(fake: FakeDiscord, over: Partial<DiscordOptions> = {}) {
  const { options, lines, waits } = optionsFor(fake, over)
  const discord = await connectDiscord(options)
  if (!discord.ok) throw new Error(discord.message)
  return { discord, lines, waits, heard: collect(discord), [Symbol.asyncDispose]: () => discord.close() }
}

/** Returns an array that collects the messages as they arrive. */
export function collect(discord: Discord): DiscordMessage[] {
  const heard: DiscordMessage[] = []
  void (async () => {
    for await (const message of discord.messages) heard.push(message)
  })()
  return heard
}

/** Waits until the condition is true; only the test's own time limit ends the wait. */
export async function until(done: () => boolean): Promise<void> {
  while (!done()) await Bun.sleep(2)
}
