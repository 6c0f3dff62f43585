/** Gives the anchor of the receipts as they are now, after a check: to anchor a broken chain is useless. */

import type { Memory } from '../../../memory/memory.ts'
import type { Anchor } from '../../../receipts/form/anchor.ts'
import type { Setup } from '../../api.ts'
import { FailureError } from '../../failure.ts'
import { brokenChain, checkChain } from './receipt-check.ts'

/** @throws FailureError `error` when there are no receipts yet, `integrity` when the chain is broken */
export function anchorNow(setup: Pick<Setup, 'config' | 'paths'>, memory: Memory): Anchor {
  const checkpoint = memory.checkpoint.get()
  if (!checkpoint) throw new FailureError('error', 'there are no receipts to anchor yet')
  const { ok, problems } = checkChain({ setup, memory, deep: false }).found
  if (!ok) throw new FailureError('integrity', `not anchored: ${problems.slice(0, 1).map(brokenChain)}`)
  return checkpoint
}
