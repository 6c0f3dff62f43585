/** Reads receipts page by page, and checks the whole chain. */

import { statSync } from 'node:fs'
import { quote } from '../../kit/text.ts'
import { findLine } from '../../receipts/find-receipt.ts'
import { type Anchor, anchorLine, parseAnchor } from '../../receipts/form/anchor.ts'
import { readReceipt } from '../../receipts/form/grammar.ts'
import type { Receipt } from '../../receipts/form/receipt.ts'
import { listReceipts } from '../../receipts/list-receipts.ts'
import { filesOf } from '../../receipts/segments.ts'
import type { HostRecords, ReceiptPage } from '../contract/records-api.ts'
import { FailureError } from '../failure.ts'
import { anchorNow } from './integrity/anchor-now.ts'
import { brokenChain, checkChain } from './integrity/receipt-check.ts'
import { limited, type RecordsBase } from './records-base.ts'

export function receiptRecords({ setup, memory }: RecordsBase): HostRecords['receipts'] {
  const path = setup.config.receipts.path

  function newest(limit: number): ReceiptPage {
    const found = listReceipts({ path, limit })
    if (!found.ok) throw new FailureError('error', found.failure.message)
    return { receipts: found.receipts, unreadable: found.unreadable }
  }

  /** Each receipt is found by its number, so a page costs the same wherever it is. */
  function following(after: number, limit: number): ReceiptPage {
    const last = memory.checkpoint.get()?.count ?? 0
    const through = Math.min(last, after + limit)
    const receipts: Receipt[] = []
    for (let seq = after + 1; seq <= through; seq += 1) {
      const line = findLine(path, seq)
      const receipt = line === undefined ? undefined : readReceipt(line)
      if (receipt) receipts.push(receipt)
    }
    const unreadable = Math.max(0, through - after - receipts.length)
    return { receipts, unreadable, ...(through < last ? { next: through } : {}) }
  }

  return {
    page: ({ after, limit } = {}) => (after === undefined ? newest(limited(limit, 50)) : following(Math.max(0, after), limited(limit, 50))),
    anchor() {
      const anchor = anchorNow(setup, memory)
      return { line: anchorLine(anchor), count: anchor.count, head: anchor.head }
    },
    async verify({ deep = false, against } = {}) {
      if (against !== undefined) anchorIn(against)
      if (bytesOf(path) > longLog) {
        const { verifyInChild } = await import('./integrity/verify-in-child.ts')
        return verifyInChild(setup, { deep, ...(against === undefined ? {} : { against }) })
      }
      const anchor = against === undefined ? undefined : anchorIn(against)
      const { found, joined, unfinished, older } = checkChain({ setup, memory, deep, ...(anchor ? { anchor } : {}) })
      const { count, completeness } = found
      const problems = [...found.problems.map(brokenChain), ...joined.map(({ message }) => message)]
      const warnings = [...found.warnings.map(({ message }) => message), ...older.map((message) => `of an older version: ${message}`)]
      return { ok: found.ok && joined.length === 0, deep, count, completeness, problems, warnings, unfinished }
    },
  }
}

/** Beyond this size, about 4,000 receipts, a check would hold up the turns of this process for too long. */
const longLog = 2_000_000

function bytesOf(path: string): number {
  return filesOf(path).reduce((sum, file) => sum + (statSync(file, { throwIfNoEntry: false })?.size ?? 0), 0)
}

function anchorIn(line: string): Anchor {
  const anchor = parseAnchor(line)
  if (anchor) return anchor
  throw new FailureError('usage', `${quote(line.slice(0, 80))} is no anchor line; one begins with bc1: and has about 130 characters`)
}
