/** Resolves the profile of a channel when it starts, and refuses one that cannot be meant. */

import { statSync } from 'node:fs'
import { type ChannelProfile, channelProfileOf, profileProblem } from '../../host/access/channel-profile.ts'
import type { Setup } from '../../host/api.ts'
import { FailureError } from '../../host/failure.ts'
import type { ChannelKind } from './channel-api.ts'

/** @throws FailureError `error` when the profile would give everyone the rights of the operator, or its folder does not exist */
export function usableProfile({ config, log }: Pick<Setup, 'config' | 'log'>, kind: Pick<ChannelKind, 'name' | 'people'>): ChannelProfile {
  const profile = channelProfileOf(config, kind)
  const problem = profileProblem(profile, kind)
  if (problem !== undefined) throw new FailureError('error', problem)
  const { channel, users, approvers, folder } = profile
  if (folder !== undefined && !statSync(folder, { throwIfNoEntry: false })?.isDirectory())
    throw new FailureError('error', `channels.${channel}.folder: ${JSON.stringify(folder)} is no folder; create it or name another one`)
  if (users.length + approvers.length === 0)
    log('warn', 'nobody may talk', {
      channel,
      why: `channels.${channel}.users is empty, so everybody there is refused; list the ids of people`,
    })
  return profile
}
