/** Discord beside the FIFOs, when the configuration switches it on. */

import type { Heard } from '../../channels/heard.ts'
import { createProviderFetch } from '../../workspace/net/provider.ts'
import { CliExit, exitCodes } from '../exit.ts'
import type { Setup } from '../world.ts'

/** None when it is off. A connection that ends for good is said, and the other channels go on. @throws CliExit 1 when it cannot be made */
export async function openDiscord(setup: Setup, signal: AbortSignal): Promise<readonly AsyncIterable<Heard>[]> {
  const { discord } = setup.config.channels
  if (!discord.enabled) return []
  const [{ DISCORD_API }, { discordMessages }] = await Promise.all([
    import('../../channels/discord/options.ts'),
    import('../../channels/discord/messages.ts'),
  ])
  const connected = await connectTo(setup, { restApi: discord.api ?? DISCORD_API, signal })
  void connected.ended.then((ended) => {
    if (!ended.ok) setup.log('error', 'channel failed', { from: 'discord', why: ended.message })
  })
  return [discordMessages(connected, setup.log)]
}

export async function connectTo(
  { config, context, log, redactor }: Setup,
  { restApi, signal }: { readonly restApi: string; readonly signal: AbortSignal },
) {
  const { tokenEnv, channelIds } = config.channels.discord
  const token = context.env[tokenEnv] ?? ''
  if (token !== '') redactor.register(token, tokenEnv)
  const { connectDiscord } = await import('../../channels/discord/connect.ts')
  const connected = await connectDiscord({ token, channelIds, fetch: createProviderFetch({ baseUrl: restApi }), log, signal, restApi })
  if (!connected.ok) throw new CliExit(exitCodes.error, `error: ${connected.message}`)
  return connected
}
