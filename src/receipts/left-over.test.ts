/** Tests that only receipts that a crash can leave beyond the checkpoint are adopted; the next start and a check refuse all others. */

import { afterAll, describe, expect, test } from 'bun:test'
import { createHome, draft, type Home, mustAppend, required } from './fixture.ts'
import { readReceipt } from './form/receipt.ts'
import { readKey } from './key.ts'
import { adoptedBy, isAdoption } from './left-over.ts'
import { lines } from './tampering.fixture.ts'
import { type VerifyReceiptsOptions, verifyReceipts } from './verify/verify-chain.ts'

const homes: Home[] = []
afterAll(() => {
  for (const home of homes) home.remove()
})

function fresh(): Home {
  const home = createHome()
  homes.push(home)
  return home
}

const check = ({ paths }: Home, known: Pick<VerifyReceiptsOptions, 'checkpoint' | 'ownLog'>) =>
  verifyReceipts({ path: paths.log, headPath: paths.head, key: readKey(paths.key), ...known })
const receiptsOf = (home: Home) => lines(home).map((line) => required(readReceipt(line)))
const own = 'a'.repeat(32)

test('the receipts of one step bear one time, and the next step another, also when the clock stands still or is turned back', () => {
  const home = fresh()
  const still = (number: number) => draft(number, { at: 1_800_000_000_000 })
  let checkpoint = mustAppend(home.append, [still(0), draft(9), draft(-9)], undefined)
  checkpoint = mustAppend(home.append, [still(1), still(2)], checkpoint)
  mustAppend(home.append, [draft(0, { at: 5 })], checkpoint)
  const times = receiptsOf(home).map(({ timestamp }) => Date.parse(timestamp) - 1_800_000_000_000)
  expect(times).toEqual([0, 0, 0, 1, 1, 5 - 1_800_000_000_000])
})

describe('what the one step left that was cut off', () => {
  test('is adopted with a record of it, whatever its size', () => {
    const home = fresh()
    const before = home.fill(2)
    mustAppend(home.append, [draft(2), draft(3), draft(4)], before)
    expect(check(home, { checkpoint: before })).toMatchObject({ ok: true, warnings: [{ kind: 'ahead' }] })
    const after = home.append([draft(5)], before)
    expect(after).toMatchObject({ ok: true, adopted: 3, receiptIds: [expect.stringMatching(/-7$/)] })
    const record = required(receiptsOf(home)[5])
    expect([isAdoption(record), adoptedBy(record)]).toEqual([true, { first: 3, last: 5 }])
  })

  test('is also what the start after it left, and the one after that', () => {
    const home = fresh()
    const before = home.fill(1)
    for (const number of [1, 2, 3, 4]) {
      expect(check(home, { checkpoint: before }).ok).toBe(true)
      expect(home.append([draft(number)], before).ok).toBe(true)
    }
    expect(receiptsOf(home).filter(isAdoption).map(adoptedBy)).toEqual([
      { first: 2, last: 2 },
      { first: 2, last: 4 },
      { first: 2, last: 6 },
    ])
  })

  test('may be the first there ever was', () => {
    const home = fresh()
    home.append([draft(0), draft(1)], undefined, own)
    expect(check(home, { checkpoint: undefined, ownLog: own })).toMatchObject({ ok: true, logId: own })
    expect(home.append([], undefined, own)).toMatchObject({ ok: true, adopted: 2, checkpoint: { count: 3 } })
  })
})

describe('refused is', () => {
  const refusal = (
    home: Home,
    { checkpoint, ownLog }: Pick<VerifyReceiptsOptions, 'ownLog'> & { checkpoint?: Parameters<Home['append']>[1] },
  ) => {
    const before = home.log()
    const found = check(home, { checkpoint, ...(ownLog === undefined ? {} : { ownLog }) })
    const appended = home.append([draft(9)], checkpoint, ownLog)
    expect(home.log()).toBe(before)
    expect(found.problems).toMatchObject([{ kind: 'database' }])
    expect(found.completeness).toBe('not provable without an anchor')
    expect(appended).toEqual({ ok: false, failure: { code: 'altered', message: required(found.problems[0]).message } })
    return required(found.problems[0]).message
  }

  test('a second step behind the checkpoint', () => {
    const home = fresh()
    const checkpoint = home.fill(2)
    home.fill(2)
    expect(refusal(home, { checkpoint })).toStartWith(
      'the database knows 2 receipts, the log holds 4; numbers 3 to 4 (2026-05-12T14:00:00.000Z to 2026-05-12T14:00:01.000Z) are more than',
    )
  })

  test('a second step that records another one than the first', () => {
    const home = fresh()
    const checkpoint = home.fill(2)
    const later = mustAppend(home.append, [draft(3)], checkpoint)
    mustAppend(home.append, [draft(4)], later)
    expect(home.append([draft(5)], later)).toMatchObject({ ok: true, adopted: 1 })
    expect(refusal(home, { checkpoint })).toContain('are more than a crash can leave')
  })

  test('a log that this database did not begin, be it one receipt', () => {
    const home = fresh()
    home.fill(1)
    expect(refusal(home, { ownLog: own })).toStartWith('the database is new or was replaced: it knows nothing of the 1 receipt in the log')
  })

  test('a log of many steps of which its own database knows nothing any more', () => {
    const home = fresh()
    let checkpoint = mustAppend((drafts, known) => home.append(drafts, known, own), [draft(0)], undefined)
    checkpoint = mustAppend(home.append, [draft(1)], checkpoint)
    expect(refusal(home, { ownLog: own })).toContain('the database knows 0 receipts, the log holds 2')
  })
})
