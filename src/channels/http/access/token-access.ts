/** Resolves what a token permits: the limits of the channel, then those of the token; neither widens what the operator's settings say. */

import type { Config } from '../../../config/config.ts'
import { type ChannelProfile, channelProfileOf } from '../../../host/access/channel-profile.ts'
import type { TokenHolder } from '../../../host/access/tokens.ts'
import { autonomyLevels } from '../../../security/settings.ts'
import { httpPeople } from '../settings.ts'

/** Who sent a request, with what is permitted there. */
export type Caller = TokenHolder & { readonly access: ChannelProfile }

/** Whose conversations the caller may see; undefined: all. */
export function ownerOf({ id, access }: Caller): string | undefined {
  return access.memory === 'own' ? id : undefined
}

/** How records name the caller. */
export function signatureOf({ name }: Caller): string {
  return `token ${name}`
}

type Level = (typeof autonomyLevels)[number]

/**
 * A token with the scope admin is the operator's own; every other one is a chat unless [channels.http] or the token itself says more. A
 * level or list that [channels.http] names limits all tokens.
 */
export function accessOf(config: Pick<Config, 'channels'>, { id, scopes, limits }: TokenHolder): ChannelProfile {
  const said = config.channels.http ?? {}
  const isOperator = scopes.includes('admin') || said.profile === 'operator'
  const profile = isOperator ? 'operator' : 'chat'
  const channel = channelProfileOf({ channels: { http: { ...said, profile } } }, { name: 'http', people: httpPeople })
  const isNamed = (key: string) => said[key] !== undefined
  const tools = limits.tools && isNamed('toolsAllow') ? limits.tools.filter((tool) => channel.tools?.includes(tool)) : limits.tools
  const level = limits.autonomy === undefined ? undefined : levelOf(limits.autonomy)
  return {
    ...channel,
    token: id,
    ...(tools ? { tools } : {}),
    ...(level === undefined ? {} : { level: isNamed('autonomy') && channel.level ? lower(level, channel.level) : level }),
    ...(limits.memory ? { memory: limits.memory } : {}),
    ...(limits.folder === undefined ? {} : { folder: limits.folder }),
  }
}

function levelOf(word: string): Level {
  return autonomyLevels.find((level) => level === word) ?? 'readonly'
}

function lower(one: Level, other: Level): Level {
  return autonomyLevels.indexOf(one) <= autonomyLevels.indexOf(other) ? one : other
}
