/** Hands a task to the orchestrator: the seed's post of the kind `error`, which says what was done about it. */

import type { ActivityPost } from '../../contract/activity-shapes.ts'
import type { WorkerEnd } from '../worker-options.ts'
import { isLost, persistently } from './asks.ts'
import { logMs, messageOf, noteSession, type Prepared, releaseTask } from './performance.ts'

export const orchestrator = 'orchestrator'

type Escalation = { readonly message: string; readonly tokens: number }

/** While the lease is ours. The control plane makes the linked task for the orchestrator; ours then ends as failed. */
export async function escalate(performance: Prepared, escalation: Escalation): Promise<WorkerEnd> {
  const { options, run, lease, log } = performance
  const error = escalation.message.slice(0, 8_000)
  await log.close(Math.min(logMs, lease.remaining()))
  try {
    await persistently({ while: lease.isHeld, random: options.clock.random }, () => run.activity(postOf(performance, escalation)))
  } catch (trouble) {
    options.say(`${performance.claim.task.task_id}: the escalation did not arrive: ${messageOf(trouble)}`)
    return isLost(trouble) ? 'lost' : releaseTask(performance, { outcome: 'retry', error }, 'failed')
  }
  await noted(performance, escalation)
  return releaseTask(performance, { outcome: 'failed', error, tokens_used: escalation.tokens }, 'escalated')
}

/** For a task that has used up its attempts: nobody has its lease, so the agent itself says so. Its tokens are counted already. */
export async function escalateDead(performance: Prepared, message: string): Promise<WorkerEnd> {
  const { options, claim, gone } = performance
  const escalation = { message, tokens: 0 }
  const until = options.clock.monotonic() + logMs
  const asking = { while: () => options.clock.monotonic() < until && !gone.aborted, random: options.clock.random }
  try {
    await persistently(asking, () => options.port.activity(postOf(performance, escalation)))
  } catch (trouble) {
    options.say(`${claim.task.task_id}: the escalation did not arrive: ${messageOf(trouble)}`)
    return 'failed'
  }
  return 'escalated'
}

function postOf({ options, claim }: Prepared, { message, tokens }: Escalation): ActivityPost {
  return {
    event_type: 'error',
    agent_id: options.agentId,
    task_id: claim.task.task_id,
    error_message: message.slice(0, 8_000),
    action_taken: `Escalated to ${orchestrator}`,
    tokens_used: tokens,
  }
}

async function noted(performance: Prepared, { message, tokens }: Escalation): Promise<void> {
  const { options, claim, skill } = performance
  options.say(`${claim.task.task_id}: escalated: ${message}`)
  await noteSession(performance, { skill: skill?.name ?? 'none', outcome: `escalated: ${message}`, tokens })
}
