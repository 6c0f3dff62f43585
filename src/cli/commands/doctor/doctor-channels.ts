/** Reports for `doctor` who may talk to the daemon on each channel that is on, and what they may do there. */

import { fifoFolder } from '../../../channels/fifo/fifo-folder.ts'
import { channelKinds } from '../../../channels/list.ts'
import type { CliSetup } from '../../../channels/terminal/context.ts'
import { channelSettings } from '../../../config/config.ts'
import { type ChannelProfile, channelProfileOf, everyone, profileProblem } from '../../../host/access/channel-profile.ts'
import { narrowSetup } from '../../../host/access/narrow-setup.ts'
import { visionProblem } from '../../../host/setup/vision-provider.ts'
import { problemWith } from '../../../service/fifo/create-fifos.ts'
import type { Finding } from './doctor-finding.ts'

export function channelFindings(setup: CliSetup): Finding[] {
  const on = channelKinds.filter((kind) => kind.isOn(channelSettings(setup.config, kind)))
  const rights = on.map((kind): Finding => {
    const what = `channel`
    const profile = channelProfileOf(setup.config, kind)
    const problem = profileProblem(profile, kind)
    if (problem !== undefined) return { what, state: 'bad', says: problem }
    const folder = kind.name === 'fifo' ? fifoProblem(setup) : undefined
    if (folder !== undefined) return { what, state: 'note', says: folder }
    const says = `${kind.name}: ${kind.people?.byToken ? 'whoever has a token (braidclaw token list)' : peopleOf(profile, kind.people?.profile === 'operator')}; ${rightsOf(setup, profile)}`
    if (profile.users.length + profile.approvers.length > 0) return { what, state: 'ok', says }
    return {
      what,
      state: 'note',
      says,
      remedy: [`${kind.name}: nobody is listed, so everybody is refused; put ids of people into channels.${kind.name}.users`],
    }
  })
  return [...rights, ...(on.some(({ name }) => name === 'telegram') ? visionFinding(setup) : [])]
}

/** Whose pictures are read, and by which model: they leave the machine for it. */
function visionFinding(setup: CliSetup): Finding[] {
  const { provider, model, maxImages } = setup.config.vision
  if (provider === undefined) return []
  const problem = visionProblem(setup)
  if (problem !== undefined) return [{ what: 'vision', state: 'bad', says: problem }]
  return [{ what: 'vision', state: 'ok', says: `pictures are sent to ${provider} (${model}), at most ${maxImages} of a message` }]
}

/**
 * The owner of the folder counts as the operator, so nobody else may be able to open the FIFOs; the daemon refuses such a folder. It may
 * belong to another user's daemon, so this is not a fault of the installation.
 */
function fifoProblem({ context }: CliSetup): string | undefined {
  const wrong = problemWith(fifoFolder(context, undefined), true)
  return wrong === undefined ? undefined : `fifo: ${wrong}`
}

/** `closed`: only the operator can reach the channel. */
function peopleOf({ users, approvers }: ChannelProfile, closed: boolean): string {
  const asked = approvers.length === 0 ? '' : `, of whom ${people(approvers.length)} may approve`
  if (users.includes(everyone)) return `${closed ? 'you, because its folder is yours alone' : 'everyone who can reach it'}${asked}`
  return `${people(new Set([...users, ...approvers]).size)} listed${asked}`
}

function rightsOf(setup: CliSetup, profile: ChannelProfile): string {
  const { autonomy } = narrowSetup(setup, profile).config.security
  const tools = profile.tools === undefined ? 'the tools of the terminal' : `tools ${profile.tools.join(', ') || 'none'}`
  const memory = profile.memory === 'own' ? 'a memory of their own' : 'all memory'
  return `profile ${profile.profile}: ${autonomy}, ${tools}, ${memory}`
}

function people(number: number): string {
  return number === 0 ? 'nobody' : number === 1 ? '1 person' : `${number} people`
}
