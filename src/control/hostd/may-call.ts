/** Decides which callers of the control plane may call an operation without an approval, and what exactly an approval covers. */

import { digest } from '../../kit/digest.ts'
import type { JsonObject } from '../../kit/json.ts'
import type { Caller } from '../contract/caller.ts'
import type { OperationRow } from './hostd-wire.ts'

export type MayCall = { readonly may: true } | { readonly may: false; readonly reason: string }

/** An operator's call is itself the decision of an operator. Everybody else calls operations of low risk alone, and others with an approval. */
export function mayCall(
  { op, risk, approval }: Pick<OperationRow, 'op' | 'risk' | 'approval'>,
  kind: Caller['kind'],
  approved: boolean,
): MayCall {
  if (approved || kind === 'operator') return { may: true }
  if (approval) return { may: false, reason: `the catalogue asks for an approval of each call of "${op}"` }
  if (risk !== 'low')
    return { may: false, reason: `"${op}" has ${risk} risk; without an approval only operations of low risk may be called` }
  return { may: true }
}

/** What an approval of a call says. `details` holds all that decides; hostd computes the digest itself. */
export function approvalFor(
  op: string,
  params: JsonObject,
): { readonly operation: string; readonly details: JsonObject; readonly digest: string } {
  const asked = { operation: `hostd ${op}`, details: { op, params } }
  return { ...asked, digest: digest(asked) }
}
