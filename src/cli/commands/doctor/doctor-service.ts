/** Checks for `doctor` the service: whether it is installed, runs, and runs this program. */

import { existsSync } from 'node:fs'
import { fifoFolder } from '../../../channels/fifo/daemon-folder.ts'
import { troubleLines } from '../../../channels/inbox/channel-api.ts'
import { channelKinds } from '../../../channels/list.ts'
import type { CliSetup } from '../../../channels/terminal/context.ts'
import { channelSettings } from '../../../config/config.ts'
import { type ChannelProfile, channelProfileOf, everyone, narrowSetup, profileProblem } from '../../../host/access/channel-profile.ts'
import type { Schedule, Schedules } from '../../../host/contract/schedules-api.ts'
import { tryCollector } from '../../../host/events/telemetry/exporter.ts'
import { enabledVersions } from '../../../host/records/sop-records.ts'
import { overdueNames } from '../../../host/schedules/schedule-view.ts'
import { openSchedules } from '../../../host/schedules/schedules.ts'
import { visionProblem } from '../../../host/setup/vision-provider.ts'
import { errorText } from '../../../kit/errors.ts'
import { count } from '../../../kit/text.ts'
import { createSopStore } from '../../../memory/journal/sop-store.ts'
import type { Memory } from '../../../memory/memory.ts'
import { createChannelStore } from '../../../memory/recovery/channel-store.ts'
import { problemWith } from '../../../service/fifo/fifo-folder.ts'
import { ownProgram } from '../../../service/own-program.ts'
import type { ServiceManager, ServiceState } from '../../../service/unit/service-run.ts'
import { findSops, sopTools } from '../../../sop/find-sops.ts'
import { triggerState } from '../../../sop/triggers.ts'
import { bad, type Finding, note, ok } from './doctor-home.ts'

const what = 'service'

export async function serviceFindings(manager: ServiceManager): Promise<Finding[]> {
  if (!existsSync(manager.file))
    return [note(what, 'not installed', 'to keep a server running: braidclaw service install (docs/service.md)')]
  try {
    const [state, hints = []] = [await manager.state(), await manager.hints?.()]
    return [running(manager, state), ...program(manager), ...hints.map(({ says, remedy }) => note(what, says, remedy))]
  } catch (error) {
    return [bad(what, errorText(error), 'braidclaw service status')]
  }
}

function running({ kind, file }: ServiceManager, { running, problem, restarts = 0 }: ServiceState): Finding {
  const again = restarts > 0 ? `, started again ${restarts} times` : ''
  if (running) return ok(what, `runs (${kind})${again}: ${file}`)
  const why = problem === undefined ? '' : `: ${problem}`
  return bad(what, `installed (${kind}) and not running${why}`, 'braidclaw service start', 'braidclaw service logs')
}

function program(manager: ServiceManager): Finding[] {
  const [installed] = manager.argv() ?? []
  if (installed === undefined || installed === ownProgram()) return []
  const gone = existsSync(installed) ? '' : ', which does not exist'
  const says = `the service runs ${installed}${gone}; this program is ${ownProgram()}`
  return [bad(what, says, 'braidclaw service install, with the flags you want, then braidclaw service restart')]
}

/** Checks for `doctor` the schedules: whether a process runs them, which were paused after failures, and where their answers go. */
const topic = 'schedules'

export async function scheduleFindings(setup: CliSetup, memory: Memory): Promise<Finding[]> {
  const schedules = openSchedules(setup, memory)
  const all = schedules.list()
  if (all.length === 0) return []
  return [
    ...servedFindings(schedules, all),
    ...all.flatMap((each) => [...pausedFindings(each), ...scheduleChannelFindings(setup, each), ...folderFindings(each)]),
  ]
}

/** Counts the procedures, and names those that are wrong and the runs that wait for a person. */
export async function sopFindings(setup: CliSetup, memory: Memory): Promise<Finding[]> {
  const files = await findSops(setup, await sopTools(setup))
  const waiting = createSopStore(memory.store, Date.now).open()
  if (files.length + waiting.length === 0) return []
  const wrong = files.filter(({ problems }) => problems.length > 0)
  const sops = { enabled: (path?: string) => enabledVersions(memory.approvals, path).map(({ digest }) => digest) }
  const changed = files.filter((file) => triggerState({ setup, sops }, file) === 'changed')
  return [
    {
      what: 'procedures',
      state: wrong.length > 0 ? 'bad' : waiting.length + changed.length > 0 ? 'note' : 'ok',
      says: `${count(files.length, 'procedure')}, ${wrong.length} with errors; ${count(waiting.length, 'run')} not ended`,
      remedy: [
        ...wrong.map(({ name }) => `braidclaw sop validate ${name}`),
        ...changed.map(({ name }) => `${name} has changed, so its triggers have stopped: braidclaw sop enable ${name}`),
        ...waiting.slice(0, 5).map(({ id }) => `braidclaw sop status ${id}`),
      ],
    },
  ]
}

function servedFindings(schedules: Schedules, all: readonly Schedule[]): Finding[] {
  const active = all.filter(({ state }) => state === 'active').length
  const says = `${count(all.length, 'schedule')}, ${active} active`
  if (active === 0) return [ok(topic, says)]
  if (schedules.isServed()) return [ok(topic, `${says}; a process runs them`)]
  const remedy = ['keep a server running: braidclaw service install, then braidclaw service start', 'or in this terminal: braidclaw serve']
  const late = overdueNames(schedules.store.schedules.list(), Date.now())
  if (late.length === 0) return [note(topic, `${says}; no process runs them now`, ...remedy)]
  return [bad(topic, `overdue, and no process runs them: ${late.join(', ')}`, ...remedy)]
}

function pausedFindings({ name, state, failures, why }: Schedule): Finding[] {
  if (state !== 'paused' || failures === 0) return []
  return [bad(topic, `"${name}" is paused: ${why}`, `see why: braidclaw schedule show ${name}`, `then: braidclaw schedule resume ${name}`)]
}

function scheduleChannelFindings({ config }: CliSetup, { name, state, channel, last }: Schedule): Finding[] {
  if (last?.sent?.startsWith('not sent')) {
    const says = `the last answer of "${name}" was ${last.sent}`
    return [bad(topic, says, `then run it again: braidclaw schedule run ${name}`)]
  }
  if (channel === undefined || state === 'done') return []
  const kind = channelKinds.find((each) => each.name === channel)
  if (kind?.isOn(channelSettings(config, kind))) return []
  const problem = kind ? `is off` : 'does not exist'
  const remedy = kind
    ? [`switch it on: [channels.${channel}] enabled = true`]
    : [
        `there are: ${channelKinds.map((each) => each.name).join(', ')}`,
        `remove it, and add it with one of them: braidclaw schedule remove ${name}`,
      ]
  return [bad(topic, `"${name}" sends its answers to the channel "${channel}", which ${problem}`, ...remedy)]
}

function folderFindings({ name, state, workspace }: Schedule): Finding[] {
  if (state === 'done' || existsSync(workspace)) return []
  return [bad(topic, `"${name}" works in ${workspace}, which does not exist`, `mkdir -p ${workspace}`)]
}

/** Reports for `doctor` who may talk to the daemon on each channel that is on, and what they may do there. */
export function channelFindings(setup: CliSetup): Finding[] {
  const on = channelKinds.filter((kind) => kind.isOn(channelSettings(setup.config, kind)))
  const rights = on.map((kind): Finding => {
    const what = `channel`
    const profile = channelProfileOf(setup.config, kind)
    const problem = profileProblem(profile, kind)
    if (problem !== undefined) return bad(what, problem)
    const folder = kind.name === 'fifo' ? fifoProblem(setup) : undefined
    if (folder !== undefined) return note(what, folder)
    const says = `${kind.name}: ${kind.people?.byToken ? 'whoever has a token (braidclaw token list)' : peopleOf(profile, kind.people?.profile === 'operator')}; ${rightsOf(setup, profile)}`
    if (profile.users.length + profile.approvers.length > 0) return ok(what, says)
    return note(what, says, `${kind.name}: nobody is listed, so everybody is refused; put ids of people into channels.${kind.name}.users`)
  })
  return [...rights, ...(on.some(({ name }) => name === 'telegram') ? visionFinding(setup) : [])]
}

/** Reports the channels of running processes that do not work, and the answers that are not delivered. */
export function troubleFindings({ store }: Memory): Finding[] {
  const { troubles, unsent } = createChannelStore(store)
  const remedy = 'it is tried again by itself; the whole story: braidclaw service logs'
  return [
    ...troubleLines(troubles()).map((says) => bad('channel', says, remedy)),
    ...unsent().map(({ channel, address, at, failed, why }): Finding => {
      const state = failed ? 'could not be delivered' : 'waits to be delivered'
      return note('answer', `${channel}: an answer of ${new Date(at).toISOString()} to ${address} ${state}: ${why || 'not tried yet'}`)
    }),
  ]
}

/** Reports which model reads the pictures: they leave the machine for it. */
function visionFinding(setup: CliSetup): Finding[] {
  const { provider, model, maxImages } = setup.config.vision
  if (provider === undefined) return []
  const problem = visionProblem(setup)
  if (problem !== undefined) return [bad('vision', problem)]
  return [ok('vision', `pictures are sent to ${provider} (${model}), at most ${maxImages} of a message`)]
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

/** Checks for `doctor` that traces arrive where the environment sends them. */
export async function traceFindings({ context: { env } }: CliSetup): Promise<Finding[]> {
  const found = await tryCollector(env)
  if (!found) return []
  const { url, problem } = found
  if (problem === undefined) return [ok('traces', `a collector answers at ${url}`)]
  const address = 'the HTTP address of your collector, such as http://127.0.0.1:4318'
  return [bad('traces', `no trace arrives: ${problem}`, `set OTEL_EXPORTER_OTLP_ENDPOINT to ${address}, or unset it`)]
}
