/** Takes the seed's three posts: a completion ends a task, an approval request asks an operator, an error escalates. */

import type { ActivityPost, ActivityReply } from '../../contract/activity-shapes.ts'
import { type Caller, signatureOf } from '../../contract/caller.ts'
import type { Plane } from '../../contract/plane.ts'
import { PlaneRefusal } from '../../contract/plane-refusal.ts'
import type { Command } from '../../contract/store-port.ts'
import { assertBelievable } from '../budget/believable.ts'
import type { PlaneContext } from '../context.ts'
import { besideRuns } from '../tasks/lease.ts'
import { postApprovalRequest } from './post-approval-request.ts'
import { postCompletion } from './post-completion.ts'
import { postError } from './post-error.ts'

/** Each post is one transaction: it happens wholly or not at all. */
export function createActivity(context: PlaneContext): Plane['activity'] {
  return async (caller, post) => {
    assertOwnName(caller, post.agent_id)
    await assertBelievable(context, { caller, agentId: post.agent_id, tokens: tokensOf(post) })
    const beside = post.event_type === 'task_completed' ? besideRuns(caller) : undefined
    return await context.store.write(() => handle(context, { caller, post }), beside)
  }
}

/** The tokens that an approval request estimates are counted nowhere. */
function tokensOf(post: ActivityPost): number {
  if (post.event_type === 'task_completed') return post.result.tokens_used
  return post.event_type === 'error' ? post.tokens_used : 0
}

function* handle(
  context: PlaneContext,
  { caller, post }: { readonly caller: Caller; readonly post: ActivityPost },
): Command<ActivityReply> {
  if (post.event_type === 'task_completed') return yield* postCompletion(context, { caller, post })
  if (post.event_type === 'approval_request') return yield* postApprovalRequest(context, { caller, post })
  return yield* postError(context, { caller, post })
}

/** Only the shared secret and operators may speak for any agent. @throws PlaneRefusal forbidden */
function assertOwnName(caller: Caller, agentId: string): void {
  if (caller.kind === 'seed' || caller.kind === 'operator' || caller.id === agentId) return
  throw new PlaneRefusal('forbidden', `${signatureOf(caller)} cannot post activity as agent ${agentId}`)
}
