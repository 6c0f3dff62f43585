/** Decides who may talk to the agent on a channel: people who are not listed get one line, now and then, and nothing else happens. */

import { statSync } from 'node:fs'
import { type ChannelProfile, channelProfileOf, everyone, isLimited, profileProblem } from '../../host/access/channel-profile.ts'
import type { Setup } from '../../host/api.ts'
import { FailureError } from '../../host/failure.ts'
import { cut, visible } from '../../kit/text.ts'
import type { Clock, Log } from '../../runtime/port.ts'
import type { ChannelKind, InboundMessage } from './channel-api.ts'

/** A message that may be answered, with what its channel permits. */
export type AdmittedMessage = InboundMessage & {
  readonly access: ChannelProfile
  /** The author, when that person may answer questions. */
  readonly approver?: string
  /** True when a person who may answer questions reads this channel. */
  readonly asks: boolean
}

export type Admission = {
  /** Returns undefined when the author may not talk there; the refusal is then on its way. */
  admit(access: ChannelProfile, message: InboundMessage): AdmittedMessage | undefined
}

/** How long a refused person gets no further line, how many people get one in that time, and how many refused people are remembered. */
const quietMs = 600_000
const mostNotified = 20
const remembered = 1_000

export function createAdmission({ log, now }: { readonly log: Log; readonly now: Clock }): Admission {
  /** The refused people: when the last line went to them, and how many of their messages were refused since. */
  const refused = new Map<string, { readonly at: number; count: number }>()

  function refuse({ channel: kind }: ChannelProfile, { person, channel, answer }: InboundMessage): void {
    const key = JSON.stringify([kind, person ?? ''])
    const at = now()
    const last = refused.get(key)
    if (last && at - last.at < quietMs) {
      last.count += 1
      return
    }
    const notified = [...refused.values()].filter((each) => at - each.at < quietMs).length
    refused.delete(key)
    refused.set(key, { at, count: 1 })
    for (const oldest of refused.keys()) if (refused.size > remembered) refused.delete(oldest)
    log('warn', 'person refused', {
      channel: kind,
      place: channel,
      person: person ?? 'unknown',
      messages: last?.count ?? 1,
      how: howTo(kind),
    })
    if (notified < mostNotified) void answer(refusalLine(person))
  }

  return {
    admit(access, message) {
      const { users, approvers } = access
      const { person, channel } = message
      const mayApprove = person !== undefined && approvers.includes(person)
      const mayTalk = mayApprove || users.includes(everyone) || (person !== undefined && users.includes(person))
      // A place with the name of a person is read by that person alone.
      const asks = mayApprove || (approvers.length > 0 && person !== channel)
      if (mayTalk) return { ...message, ...placed(access, message), access, asks, ...(mayApprove ? { approver: person } : {}) }
      refuse(access, message)
      return undefined
    },
  }
}

/**
 * Names the conversation. With a memory of their own each person has one in each place, so that the words of one person never reach another through
 * the agent. The agent's own conversation has the operator's rights, so a channel with limits never shares it.
 */
function placed(
  access: ChannelProfile,
  { channel, place = channel, person = '', conversation, topic }: InboundMessage,
): Pick<InboundMessage, 'conversation'> {
  const more = topic === undefined ? [] : [topic]
  if (access.memory === 'own') return { conversation: nameOf([access.channel, place, person, ...more]) }
  if (conversation !== undefined) return { conversation: [conversation, ...more].join(' ') }
  return isLimited(access) ? { conversation: nameOf([access.channel, place, ...more]) } : {}
}

function nameOf(parts: readonly string[]): string {
  return parts.map((part) => encodeURIComponent(part.toWellFormed())).join(' ')
}

/** Never repeats what the person wrote, and does not say who may talk. */
function refusalLine(person: string | undefined): string {
  const id = person === undefined ? '' : ` (your id: ${cut(visible(person), 60)})`
  return `Sorry, I only talk with people whom my operator has listed${id}.`
}

function howTo(kind: string): string {
  return `list the id in channels.${kind}.users to let this person talk`
}

/** @throws FailureError `error` when the profile would give everyone the rights of the operator, or its folder does not exist */
export function usableProfile({ config, log }: Pick<Setup, 'config' | 'log'>, kind: Pick<ChannelKind, 'name' | 'people'>): ChannelProfile {
  const profile = channelProfileOf(config, kind)
  const problem = profileProblem(profile, kind)
  if (problem !== undefined) throw new FailureError('error', problem)
  const { channel, users, approvers, folder } = profile
  if (folder !== undefined && !statSync(folder, { throwIfNoEntry: false })?.isDirectory())
    throw new FailureError('error', `channels.${channel}.folder: ${JSON.stringify(folder)} is not a folder; create it or name another one`)
  if (users.length + approvers.length === 0)
    log('warn', 'nobody may talk', {
      channel,
      why: `channels.${channel}.users is empty, so everybody there is refused; list the ids of people`,
    })
  return profile
}
