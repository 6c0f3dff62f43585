/** Declares commands of a control plane with the flags and exit codes that they share, and proposes its ids and names for shell completion. */

import type { CliContext } from '../../../../channels/terminal/context.ts'
import { within } from '../../../../kit/abort.ts'
import type { Arguments, Command, Complete, Flags, Given, None, Taken } from '../../../args/command.ts'
import { jsonFlag } from '../../../args/turn-flags.ts'
import { type Connected, type Control, clientOf, controlAddress, knownOperatorToken, withControl } from './with-control.ts'

export const urlFlag = {
  url: {
    type: 'text',
    about:
      'The address of the control plane (default: CONTROLPLANE_API_URL, else CONTROLPLANE_API_PORT of this machine, else http://127.0.0.1:3100)',
  },
} as const satisfies Flags

export const controlFlags = { ...urlFlag, ...jsonFlag } as const satisfies Flags

export const noteFlag = { note: { type: 'text', about: 'Why; it is kept with the change' } } as const satisfies Flags

/** Lists the exit codes for refusals of the control plane, besides 1 and 2. */
export const controlExits = [
  [3, 'the control plane refused the token, or does not allow this'],
  [6, 'a budget does not allow this'],
] as const

type Connection = Connected & { readonly context: CliContext; readonly control: Control; readonly json: boolean }

type ControlRow<F extends Flags, A extends Arguments> = Omit<Command<F, A>, 'run'> & {
  run(at: Connection, given: Given<F>, args: Taken<A>): Promise<void>
}

/** Declares a command that speaks with the control plane; `exits` are those besides `controlExits`. Its first request looks for the token. */
export function controlCommand<const F extends Flags = typeof controlFlags, const A extends Arguments = None>(
  row: ControlRow<F, A>,
): Omit<Command<F, A>, 'flags'> & { readonly flags: Flags } {
  return {
    ...row,
    flags: row.flags ?? controlFlags,
    exits: [...controlExits, ...(row.exits ?? [])],
    run(context, given, args) {
      const { url, json = false }: { readonly url?: string; readonly json?: boolean } = given
      return withControl(context, { url }, (control, connected) => row.run({ context, control, json, ...connected }, given, args))
    },
  }
}

type Present<T> = { [K in keyof T as undefined extends T[K] ? never : K]: T[K] } & {
  [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined>
}

export function present<T extends object>(fields: T): Present<T>
/** Leaves out the undefined fields of an object, which are flags that were not used. */
export function present(fields: object): object {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))
}

/** When the control plane does not answer within this time, nothing is proposed. */
const patienceMs = 1_500

function proposing(find: (control: Control) => Promise<readonly string[]>): Complete {
  return async (context, partial) => {
    try {
      const known = knownOperatorToken(context)
      if (!known) return []
      const names = await within(patienceMs, find(clientOf(controlAddress(undefined, context.env), () => known.token)))
      return (names ?? []).filter((name) => name.startsWith(partial))
    } catch {
      return []
    }
  }
}

export const proposeTasks = proposing(async ({ tasks }) => (await tasks.list({ limit: 200 })).tasks.map((task) => task.task_id))
export const proposeApprovals = proposing(async (control) => {
  const { approvals } = await control.approvals.list({ state: 'pending', limit: 200 })
  return approvals.flatMap(({ approval_id: id, task_id: task }) => (task ? [id, task] : [id]))
})
export const proposeControlAgents = proposing(async ({ fleet }) => (await fleet.list()).map(({ id }) => id))
export const proposeRoles = proposing(async ({ fleet }) => [...new Set((await fleet.list()).map(({ role }) => role))])
export const proposeControlRuns = proposing(async ({ runs }) => (await runs.list({ limit: 200 })).runs.map((run) => run.run_id))
export const proposeControlSchedules = proposing(async ({ schedules }) => (await schedules.list()).map(({ name }) => name))
