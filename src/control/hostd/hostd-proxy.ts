/** Carries out `POST /api/controlplane/hostd` and `GET hostd/ops`: asks for approvals, uses them once, calls hostd, and keeps a note of it. */

import { z } from 'zod'
import { createRateLimit } from '../../http/callers.ts'
import type { JsonObject } from '../../kit/json.ts'
import { approvalId } from '../contract/activity-shapes.ts'
import { type Caller, signatureOf } from '../contract/caller.ts'
import type { Plane } from '../contract/plane.ts'
import { PlaneRefusal } from '../contract/plane-refusal.ts'
import { jsonObject } from '../contract/task-shapes.ts'
import type { callHostd, listOps } from './client.ts'
import type { ApprovalProof, HostdReply, OperationRow } from './hostd-wire.ts'
import { approvalFor, mayCall } from './may-call.ts'

/** Ignores unknown fields, as the seed does. */
export const hostdBody = z.object({
  op: z.string().min(1).max(64),
  params: z.optional(jsonObject),
  approval_id: z.optional(approvalId),
  reasoning: z.string().max(8_192).default(''),
})
export type HostdBody = z.infer<typeof hostdBody>

/** The seed's three keys come first, in its order. */
export type HostdAnswer = Readonly<Omit<HostdReply, 'id' | 'receipt'>>

export type HostdProxyOptions = {
  /** Absent: this control plane has no hostd. */
  readonly socket?: string
  readonly plane: Pick<Plane, 'activity' | 'approvals' | 'noteHostd'>
  readonly call: typeof callHostd
  readonly list: typeof listOps
  readonly now: () => number
}

export type HostdProxy = {
  /** @throws PlaneRefusal `too_many`, `approval_required` with the id of the approval that was asked for, and what `approvals.use` refuses */
  call(caller: Caller, body: HostdBody): Promise<HostdAnswer>
  operations(caller: Caller): Promise<readonly OperationRow[]>
}

/** Limits how long hostd may take to answer, besides the time limit of the operation itself. */
const answerMs = 15_000

/** Limits each caller, because hostd counts the control plane as one user and limits its requests in a minute. */
const calls = { perSecond: 3, burst: 60 }

export function createHostdProxy({ socket, plane, call, list, now }: HostdProxyOptions): HostdProxy {
  const rate = createRateLimit({ ...calls, now })

  function slowDown(caller: Caller): void {
    const wait = caller.kind === 'operator' ? undefined : rate.take(caller.id)
    if (wait === undefined) return
    throw new PlaneRefusal('too_many', `${signatureOf(caller)} asks hostd too often; try again in ${wait} s`, {
      retry_after_ms: wait * 1_000,
    })
  }

  const listing = async () => {
    const listed = await list(requireSocket(socket))
    if (listed.ok) return listed.operations
    throw new PlaneRefusal('unavailable', listed.error.message, { reason: listed.error.code })
  }

  async function carryOut(
    caller: Caller,
    { op, params = {} }: HostdBody,
    { row, approval }: { readonly row: OperationRow; readonly approval?: ApprovalProof },
  ): Promise<HostdAnswer> {
    const request = { op, params, caller: signatureOf(caller), approval }
    const reply = await call(requireSocket(socket), request, row.timeout_s * 1_000 + answerMs)
    const { id: _id, receipt: _receipt, ok, output, exitCode, ...more } = reply
    await plane.noteHostd(caller, { op, params, ok, exitCode, output })
    return { ok, output, exitCode, ...more }
  }

  /**
   * Returns hostd's own refusal, of which it keeps a receipt. An operation that has become available since the list was read is not carried out,
   * because nothing has checked who may call it.
   */
  async function callUnavailable(caller: Caller, body: HostdBody): Promise<HostdAnswer> {
    const refusal = await checkedRefusal(caller, body)
    if (!refusal) throw new PlaneRefusal('unavailable', `"${body.op}" has become available just now; repeat the call`)
    await plane.noteHostd(caller, { op: body.op, params: body.params ?? {}, ...refusal })
    return refusal
  }

  /** Asks hostd first, so that an operator does not decide about a call that hostd refuses anyway. @returns that refusal */
  async function checkedRefusal(caller: Caller, { op, params = {} }: HostdBody): Promise<HostdAnswer | undefined> {
    const question = { op, params, check: true, caller: signatureOf(caller) } as const
    const { ok, output, exitCode, error } = await call(requireSocket(socket), question, answerMs)
    return ok ? undefined : { ok, output, exitCode, error }
  }

  /** Uses the approval up, even when the operation then fails: a half-done operation must be examined, not repeated. */
  async function useApproval(caller: Caller, id: string, { op, params }: HostdBody): Promise<ApprovalProof> {
    const { digest } = approvalFor(op, asJson(params))
    const approved = await plane.approvals.use(caller, id, digest)
    // A caller that may use an approval may still not be allowed to read it.
    const decided = await plane.approvals.get(caller, id).catch(() => undefined)
    if (approved.digest !== digest) throw new PlaneRefusal('conflict', `${id} covers another operation than "${op}" with these parameters`)
    return { approval_id: id, digest, approved_by: decided?.decided_by ?? 'an operator', used_at: new Date(now()).toISOString() }
  }

  return {
    async operations(caller) {
      slowDown(caller)
      return await listing()
    },
    async call(caller, body) {
      if (caller.kind === 'run' && caller.hasEnded)
        throw new PlaneRefusal('lease_lost', `${caller.runId} has ended, so it may not call hostd any more`)
      slowDown(caller)
      const row = (await listing()).find(({ op }) => op === body.op)
      if (!row?.available) return callUnavailable(caller, body)
      if (body.approval_id !== undefined)
        return carryOut(caller, body, { row, approval: await useApproval(caller, body.approval_id, body) })
      const verdict = mayCall(row, caller.kind, false)
      if (!verdict.may) return (await checkedRefusal(caller, body)) ?? ask(plane, { caller, body, reason: verdict.reason })
      const isOwn = caller.kind === 'operator' && row.approval
      return carryOut(caller, body, isOwn ? { row, approval: ownDecision(caller, body, now()) } : { row })
    },
  }
}

function requireSocket(socket: string | undefined): string {
  if (socket !== undefined) return socket
  throw new PlaneRefusal('unavailable', 'this control plane has no hostd; start "braidclaw hostd" and set CONTROLPLANE_HOSTD_SOCKET')
}

function ownDecision(caller: Caller, { op, params }: HostdBody, at: number): ApprovalProof {
  const { digest } = approvalFor(op, asJson(params))
  return { approval_id: 'direct', digest, approved_by: signatureOf(caller), used_at: new Date(at).toISOString() }
}

/** Asks an operator. The shared secret identifies no agent, so it can neither ask for an approval nor use one. */
async function ask(
  plane: HostdProxyOptions['plane'],
  { caller, body, reason }: { readonly caller: Caller; readonly body: HostdBody; readonly reason: string },
): Promise<never> {
  if (caller.kind === 'seed')
    throw new PlaneRefusal('forbidden', `${reason}; the shared secret cannot ask for one: use the key of an agent, or the token of a run`)
  const { operation, details } = approvalFor(body.op, asJson(body.params))
  const { approval_id } = await plane.activity(caller, {
    event_type: 'approval_request',
    agent_id: caller.id,
    operation,
    reasoning: body.reasoning,
    estimated_tokens: 0,
    details: { ...details },
  })
  const next = `${approval_id} asks an operator: repeat the call with it as "approval_id" once it is approved`
  throw new PlaneRefusal('approval_required', `${reason}; ${next}`, { approval_id })
}

/** Returns the parameters as the JSON that they came from. */
function asJson(params: HostdBody['params'] = {}): JsonObject {
  return JSON.parse(JSON.stringify(params))
}
