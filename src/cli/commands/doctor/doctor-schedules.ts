/** Checks for `doctor` the schedules: whether a process runs them, which were paused after failures, and where their answers go. */

import { existsSync } from 'node:fs'
import { channelKinds } from '../../../channels/list.ts'
import type { CliSetup } from '../../../channels/terminal/context.ts'
import { channelSettings } from '../../../config/config.ts'
import type { Schedule, Schedules } from '../../../host/contract/schedules-api.ts'
import { overdueNames } from '../../../host/schedules/overdue.ts'
import { createSchedules } from '../../../host/schedules/schedules.ts'
import { count } from '../../../kit/count.ts'
import type { Memory } from '../../../memory/memory.ts'
import type { Finding } from './doctor-finding.ts'

const what = 'schedules'

export async function scheduleFindings(setup: CliSetup, memory: Memory): Promise<Finding[]> {
  const schedules = createSchedules({ setup, store: await memory.schedules(), now: Date.now })
  const all = schedules.list()
  if (all.length === 0) return []
  return [
    ...servedFindings(schedules, all),
    ...all.flatMap((each) => [...pausedFindings(each), ...channelFindings(setup, each), ...folderFindings(each)]),
  ]
}

function servedFindings(schedules: Schedules, all: readonly Schedule[]): Finding[] {
  const active = all.filter(({ state }) => state === 'active').length
  const says = `${count(all.length, 'schedule')}, ${active} active`
  if (active === 0) return [{ what, state: 'ok', says }]
  if (schedules.isServed()) return [{ what, state: 'ok', says: `${says}; a process runs them` }]
  const remedy = ['keep a server running: braidclaw service install, then braidclaw service start', 'or in this terminal: braidclaw serve']
  const late = overdueNames(schedules.store.schedules.list(), Date.now())
  if (late.length === 0) return [{ what, state: 'note', says: `${says}; no process runs them now`, remedy }]
  return [{ what, state: 'bad', says: `overdue, and no process runs them: ${late.join(', ')}`, remedy }]
}

function pausedFindings({ name, state, failures, why }: Schedule): Finding[] {
  if (state !== 'paused' || failures === 0) return []
  return [
    {
      what,
      state: 'bad',
      says: `"${name}" is paused: ${why}`,
      remedy: [`see why: braidclaw schedule show ${name}`, `then: braidclaw schedule resume ${name}`],
    },
  ]
}

function channelFindings({ config }: CliSetup, { name, state, channel }: Schedule): Finding[] {
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
  return [{ what, state: 'bad', says: `"${name}" sends its answers to the channel "${channel}", which ${problem}`, remedy }]
}

function folderFindings({ name, state, workspace }: Schedule): Finding[] {
  if (state === 'done' || existsSync(workspace)) return []
  return [{ what, state: 'bad', says: `"${name}" works in ${workspace}, which does not exist`, remedy: [`mkdir -p ${workspace}`] }]
}
