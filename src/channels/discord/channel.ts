/** Discord beside the FIFOs, when the configuration switches it on. */

import { channelSettings } from '../../config/config.ts'
import type { Setup } from '../../host/api.ts'
import { FailureError } from '../../host/failure.ts'
import { createProviderFetch } from '../../workspace/net/provider-fetch.ts'
import type { Heard } from '../inbound-message.ts'
import { discordChannel } from './settings.ts'

type Connecting = {
  readonly setup: Setup
  /** Aborted: closes the connection, whatever is still to be sent. */
  readonly signal: AbortSignal
}

/**
 * None when it is off. Discord may be out of reach for long: the other channels do not wait for it, and go on when it ends for good.
 * @throws FailureError error for what is wrong before anything is tried
 */
export async function openDiscord(connecting: Connecting): Promise<readonly AsyncIterable<Heard>[]> {
  const { setup, signal } = connecting
  if (!channelSettings(setup.config, discordChannel).enabled) return []
  const options = await optionsFor(connecting)
  return [messages()]

  async function* messages(): AsyncGenerator<Heard> {
    const [{ connectDiscord }, { discordMessages }] = await Promise.all([import('./connect.ts'), import('./messages.ts')])
    const discord = await connectDiscord(options)
    if (discord.ok) {
      setup.log('info', 'channel started', { channel: 'discord', user: discord.userId })
      yield* discordMessages(discord, setup.log)
    }
    const ended = discord.ok ? await discord.ended : discord
    if (!ended.ok && !signal.aborted) setup.log('error', 'channel failed', { channel: 'discord', why: ended.message })
  }
}

/** Undefined when it was told to stop before it was connected. @throws FailureError error for what is wrong before anything is tried, or for good */
export async function connectTo(connecting: Connecting) {
  const options = await optionsFor(connecting)
  const connected = await (await import('./connect.ts')).connectDiscord(options)
  if (connected.ok) return connected
  if (connecting.signal.aborted) return undefined
  throw new FailureError('error', `${connected.message}`)
}

async function optionsFor({ setup, signal }: Connecting) {
  const { config, context, log, redactor } = setup
  const { tokenEnv, channelIds, api } = channelSettings(config, discordChannel)
  const token = context.env[tokenEnv] ?? ''
  if (token !== '') redactor.register(token, tokenEnv)
  const { DISCORD_API, faultOf, settle } = await import('./connection-options.ts')
  const restApi = api ?? DISCORD_API
  const options = { token, channelIds, fetch: createProviderFetch({ baseUrl: restApi }), log, signal, restApi }
  const fault = faultOf(settle(options))
  if (fault !== undefined) throw new FailureError('error', `${fault}`)
  return options
}
