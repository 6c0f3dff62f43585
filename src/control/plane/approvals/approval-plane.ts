/** Serves approvals: operators read and decide them, runs use them. */

import type { ApprovalQuery } from '../../contract/approval-shapes.ts'
import type { Caller } from '../../contract/caller.ts'
import type { ApprovalPlane } from '../../contract/plane.ts'
import { PlaneRefusal } from '../../contract/plane-refusal.ts'
import { assertSelf, onlyOperator } from '../../contract/rights.ts'
import type { Command, Param } from '../../contract/store-port.ts'
import { numberOf, type PlaneContext } from '../context.ts'
import { decideApproval } from './answer-approval.ts'
import { approvalOf, readApproval } from './approval-row.ts'
import { useApproval } from './use-approval.ts'

export function createApprovalPlane(context: PlaneContext): ApprovalPlane {
  const { store } = context
  return {
    async get(caller, id) {
      const found = approvalOf(await store.read(() => readApproval(id)))
      assertSelf(caller, found.agent_id, `read ${id}`)
      return found
    },
    list: async (caller, query) => await store.read(() => listApprovals(caller, query)),
    async decide(caller, id, request) {
      onlyOperator(caller, 'decide approvals')
      const decided = await store.write(() => decideApproval(context, { caller, id, request }))
      if (decided instanceof PlaneRefusal) throw decided
      return decided
    },
    async use(caller, id, digest) {
      if (caller.kind !== 'run' && caller.kind !== 'agent')
        throw new PlaneRefusal('forbidden', 'only the run or the agent that asked for an approval may use it')
      return await store.write(() => useApproval(context, { caller, id, digest }))
    },
  }
}

type Listed = Awaited<ReturnType<ApprovalPlane['list']>>

/** Newest first. An agent and its runs see their own. */
function* listApprovals(caller: Caller, { state, agent_id, task_id, limit, after }: ApprovalQuery): Command<Listed> {
  if (caller.kind === 'seed') throw new PlaneRefusal('forbidden', 'the shared secret reads approvals only by GET approvals?agent_id=')
  const agentId = caller.kind === 'operator' ? agent_id : caller.id
  if (agent_id !== undefined) assertSelf(caller, agent_id, 'list its approvals')
  const conditions: readonly (readonly [string, Param | undefined])[] = [
    ['state = ?', state],
    ['agent_id = ?', agentId],
    ['task_id = ?', task_id === undefined ? undefined : numberOf(task_id)],
    ['id < ?', after === undefined ? undefined : numberOf(after)],
  ]
  const given = conditions.flatMap(([text, value]) => (value === undefined ? [] : [[text, value] as const]))
  const where = given.length === 0 ? '' : `WHERE ${given.map(([text]) => text).join(' AND ')}`
  const rows = yield [`SELECT * FROM approvals ${where} ORDER BY id DESC LIMIT ?`, [...given.map(([, value]) => value), limit + 1]]
  const approvals = rows.slice(0, limit).map(approvalOf)
  return { approvals, next: rows.length > limit ? (approvals.at(-1)?.approval_id ?? null) : null }
}
