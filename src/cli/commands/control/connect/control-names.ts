/** Proposes ids and names of the control plane for shell completion; when it does not answer at once, nothing is proposed. */

import type { CliContext } from '../../../../channels/terminal/context.ts'
import type { Complete } from '../../../args/command.ts'
import { controlAddress } from './control-address.ts'
import { knownOperatorToken } from './operator-token.ts'
import { type Control, clientOf } from './with-control.ts'

const patienceMs = 1_500

export const proposeTasks: Complete = (context, partial) =>
  proposed(context, partial, async (control) => (await control.tasks.list({ limit: 200 })).tasks.map((task) => task.task_id))

export const proposeApprovals: Complete = (context, partial) =>
  proposed(context, partial, async (control) =>
    (await control.approvals.list({ state: 'pending', limit: 200 })).approvals.flatMap((each) => [
      each.approval_id,
      ...(each.task_id ? [each.task_id] : []),
    ]),
  )

export const proposeControlAgents: Complete = (context, partial) =>
  proposed(context, partial, async (control) => (await control.fleet.list()).map(({ id }) => id))

export const proposeRoles: Complete = (context, partial) =>
  proposed(context, partial, async (control) => [...new Set((await control.fleet.list()).map(({ role }) => role))])

export const proposeControlRuns: Complete = (context, partial) =>
  proposed(context, partial, async (control) => (await control.runs.list({ limit: 200 })).runs.map((run) => run.run_id))

export const proposeControlSchedules: Complete = (context, partial) =>
  proposed(context, partial, async (control) => (await control.schedules.list()).map(({ name }) => name))

async function proposed(
  context: CliContext,
  partial: string,
  find: (control: Control) => Promise<readonly string[]>,
): Promise<readonly string[]> {
  try {
    const token = knownOperatorToken(context)
    if (!token) return []
    const names = await Promise.race([find(clientOf(controlAddress(undefined, context.env), token)), Bun.sleep(patienceMs)])
    return (names ?? []).filter((name) => name.startsWith(partial))
  } catch {
    return []
  }
}
