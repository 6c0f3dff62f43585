/** Opens the schedules of a home for commands that start no run, and completes their names. */

import type { CliContext, CliSetup } from '../../../channels/terminal/context.ts'
import type { Schedules } from '../../../host/contract/schedules-api.ts'
import { withMemory } from '../../../host/open/open-records.ts'
import { createSchedules } from '../../../host/schedules/schedules.ts'
import { loadSetup } from '../../../host/setup/setup.ts'
import type { Arguments, Complete } from '../../args/command.ts'

export function withSchedules<T>(setup: CliSetup, use: (schedules: Schedules) => T | Promise<T>): Promise<T> {
  return withMemory(setup, async (memory) => use(createSchedules({ setup, store: await memory.schedules(), now: Date.now })))
}

const complete: Complete = (context, partial) =>
  withSchedules(loadSetup(context), (schedules) => schedules.list().flatMap(({ name }) => (name.startsWith(partial) ? [name] : [])))

export const scheduleArgs = { name: { type: 'text', about: 'Name of the schedule', complete } } as const satisfies Arguments

/** Warns when nothing would start what is due. */
export function sayUnserved({ process: { stderr } }: CliContext, schedules: Schedules): void {
  if (schedules.isServed()) return
  stderr.write('note: no process runs schedules now; "braidclaw daemon" and "braidclaw serve" do while they are up\n')
}
