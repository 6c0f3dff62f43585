/** Tests, by counting bytes, that only the requested part of a long log is read, wherever it is. */

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { readFileSync, statSync } from 'node:fs'
import type { JournalledAttempt } from './contract.ts'
import { createHome, draft, mustAppend, required } from './fixture.ts'
import { latestReceipts, listReceipts, showReceipt } from './list-receipts.ts'
import { rotate } from './rotate.ts'
import { filesOf } from './segments.ts'
import { deepVerify, judgeSome } from './verify/deep.ts'

const home = createHome()
const { log } = home.paths
const count = 6000
const state = { logId: '' }
const idOf = (seq: number) => `receipt-${state.logId.slice(0, 8)}-${seq}`

/** Two closed segments and the log, with one line longer than the first read. */
beforeAll(() => {
  let checkpoint = home.fill(1)
  for (let seq = 2; seq <= count; ) {
    if (seq === 2001 || seq === 4001) {
      const rotated = rotate({ paths: home.paths, checkpoint, draft: draft(seq, { tool: 'receipts.rotate' }) })
      if (!rotated.ok) throw new Error(rotated.failure.message)
      checkpoint = required(rotated.checkpoint)
      seq += 1
    }
    const drafts = Array.from({ length: Math.min(count, seq < 2001 ? 2000 : seq < 4001 ? 4000 : count) - seq + 1 }, (_, at) =>
      number(seq + at),
    )
    checkpoint = mustAppend(home.append, drafts, checkpoint)
    seq += drafts.length
  }
  state.logId = checkpoint.logId
  expect(checkpoint.count).toBe(count)
})
afterAll(() => home.remove())

const number = (seq: number) => draft(seq, seq % 700 === 0 ? { conversationId: 'c'.repeat(30_000) } : {})

/** Returns how many bytes this process read during the step, by the kernel's count. */
function bytesRead<T>(step: () => T): { readonly value: T; readonly bytes: number } {
  const now = () => Number(/rchar: (\d+)/.exec(readFileSync('/proc/self/io', 'utf8'))?.[1])
  const before = now()
  const value = step()
  return { value, bytes: now() - before }
}

const whole = () => filesOf(log).reduce((sum, path) => sum + statSync(path).size, 0)

test.each([1, 2, 700, 701, 1999, 2000, 2001, 2002, 3333, 4000, 4001, 4200, 5999, 6000])(
  'receipt %d is found by its number and by its id',
  (seq) => {
    for (const wanted of [String(seq), idOf(seq)]) {
      const { value, bytes } = bytesRead(() => showReceipt(log, wanted))
      expect(value?.seq).toBe(seq)
      expect(bytes).toBeLessThan(400_000)
    }
  },
)

test('a receipt that is not there costs no more', () => {
  expect(whole()).toBeGreaterThan(3_500_000)
  for (const wanted of ['6001', '0', 'x', '', idOf(123_456)]) {
    const { value, bytes } = bytesRead(() => showReceipt(log, wanted))
    expect(value).toBeUndefined()
    expect(bytes).toBeLessThan(400_000)
  }
})

test('the newest are read from the end, across segments', () => {
  const { value, bytes } = bytesRead(() => listReceipts({ path: log, limit: 20 }))
  expect(value.ok && value.receipts.map(({ seq }) => seq)).toEqual(Array.from({ length: 20 }, (_, at) => count - 19 + at))
  expect(bytes).toBeLessThan(200_000)
  const more = listReceipts({ path: log, limit: 2500 })
  expect(more.ok && more.receipts.map(({ seq }) => seq)).toEqual(Array.from({ length: 2500 }, (_, at) => 3501 + at))
  expect(bytesRead(() => latestReceipts(home.paths, count - 3)).bytes).toBeLessThan(200_000)
  expect(latestReceipts(home.paths, 3990).map(({ seq }) => seq)).toEqual(Array.from({ length: 2010 }, (_, at) => 3991 + at))
})

test('a few attempts are held against their own receipts alone', () => {
  const attempt = (seq: number, own: Partial<JournalledAttempt> = {}): JournalledAttempt => {
    const { conversationId, tool, argsHash, resultHash, status } = number(seq)
    const known = { runId: 'r', callId: `c${seq}`, conversationId, tool, argsHash, resultHash, status, receiptId: idOf(seq) }
    return { ...known, pending: false, unfinished: false, ...own }
  }
  const attempts = [attempt(7), attempt(1400), attempt(5000)]
  const { value, bytes } = bytesRead(() => judgeSome(home.paths, attempts))
  expect(value).toMatchObject({ ok: true, attempts: 3, problems: [] })
  expect(bytes).toBeLessThan(700_000)
  const wrong = [attempt(7, { tool: 'shell' }), attempt(8, { receiptId: idOf(9999) }), attempt(9), attempt(9, { callId: 'again' })]
  expect(judgeSome(home.paths, wrong).problems.map(({ kind }) => kind)).toEqual(['differs', 'no_receipt', 'shared'])
  expect(deepVerify(log, wrong).problems).toEqual([...judgeSome(home.paths, wrong).problems])
})
