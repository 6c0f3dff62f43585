/** Refuses reports of more tokens than one run can have spent: such a number would end the day's budget of a whole fleet. */

import { type Caller, signatureOf } from '../../contract/caller.ts'
import { PlaneRefusal } from '../../contract/plane-refusal.ts'
import type { Command } from '../../contract/store-port.ts'
import { numberOf, type PlaneContext } from '../context.ts'
import { recordEvent } from '../events/record-event.ts'
import { amount, first } from '../row.ts'

export const usualMostReported = 100_000_000

export type Report = {
  readonly caller: Caller
  readonly agentId: string
  readonly tokens: number
  /** What is settled: as much as was reserved is believed, because a budget had granted it. */
  readonly reservation?: string
}

/** The operator hears of it, and nothing is counted. For use before the command that counts. @throws PlaneRefusal bad_request */
export async function assertBelievable(context: PlaneContext, report: Report): Promise<void> {
  const most = context.options.mostTokensOfReport ?? usualMostReported
  if (report.tokens <= most || report.tokens <= (await grantedTo(context, report))) return
  await context.store.write(() => tellOperator(context, report, most))
  const why = `no run can report more than ${most} tokens (CONTROLPLANE_REPORT_TOKENS), and this report says ${report.tokens}`
  throw new PlaneRefusal('bad_request', `${why}; nothing was counted: report what was spent, or have an operator raise the setting`, {
    most,
    reported: report.tokens,
  })
}

async function grantedTo({ store }: PlaneContext, { reservation }: Report): Promise<number> {
  if (reservation === undefined) return 0
  return await store.read(() => amount('SELECT tokens AS value FROM reservations WHERE id = ?', [numberOf(reservation)]))
}

const type = 'budget.report_refused'
/** An agent that goes on lying makes no flood of events. */
const againMs = 600_000

function* tellOperator(context: PlaneContext, { caller, agentId, tokens }: Report, most: number): Command<void> {
  const since = context.now() - againMs
  const told = yield* first('SELECT id FROM events WHERE type = ? AND at > ? AND agent_id = ? ORDER BY id DESC LIMIT 1', [
    type,
    since,
    agentId,
  ])
  if (told) return
  const run = caller.kind === 'run' ? { taskId: numberOf(caller.taskId), runId: numberOf(caller.runId), role: caller.role } : {}
  yield* recordEvent(context, { type, actor: signatureOf(caller), agentId, ...run, data: { reported: tokens, most } })
}
