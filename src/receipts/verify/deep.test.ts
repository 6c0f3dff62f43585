import { afterAll, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import type { JournalledAttempt } from '../contract.ts'
import { createHome, draft, required } from '../fixture.ts'
import { listReceipts, showReceipt } from '../list-receipts.ts'
import { deepVerify } from './deep.ts'
import { verifyReceipts } from './verify-chain.ts'

const home = createHome()
const checkpoint = home.fill(4)
afterAll(() => home.remove())
const idOf = (seq: number) => `receipt-${checkpoint.logId.slice(0, 8)}-${seq}`

function attempt(number: number, own: Partial<JournalledAttempt> = {}): JournalledAttempt {
  const { conversationId, tool, argsHash, resultHash, status } = draft(number)
  const known = {
    runId: 'run-1',
    callId: `call-${number}`,
    conversationId,
    tool,
    argsHash,
    resultHash,
    status,
    pending: false,
    unfinished: false,
  }
  return { ...known, receiptId: idOf(number + 1), ...own }
}

test('an attempt without a receipt, with a foreign one or with a used one is a problem', () => {
  const kinds = (...attempts: JournalledAttempt[]) => deepVerify(home.paths.log, attempts).problems.map(({ kind }) => kind)
  expect(kinds(attempt(0, { receiptId: undefined }))).toEqual(['no_receipt'])
  expect(kinds(attempt(0, { receiptId: idOf(9) }))).toEqual(['no_receipt'])
  expect(kinds(attempt(0), attempt(0, { callId: 'call-x' }))).toEqual(['shared'])
  expect(kinds(attempt(0, { status: undefined, receiptId: undefined }))).toEqual(['no_result'])
})

test('an attempt that the journal tells differently is named with what differs', () => {
  const wrong = attempt(0, { tool: 'shell', argsHash: 'x', status: 'denied', resultHash: 'y', conversationId: 'z' })
  const [problem] = deepVerify(home.paths.log, [wrong]).problems
  expect(problem).toMatchObject({ kind: 'differs', id: idOf(1), callId: 'call-0' })
  expect(problem?.message).toEndWith('differ in conversation, tool, arguments, status, result')
  expect(deepVerify(home.paths.log, [attempt(1, { resultHash: 'y' })]).problems[0]?.message).toEndWith('differ in result')
})

test('a call that a crash left without a result is unfinished, and no problem', () => {
  const cut = attempt(7, { status: undefined, receiptId: undefined, unfinished: true })
  expect(deepVerify(home.paths.log, [attempt(0), cut])).toMatchObject({
    ok: true,
    problems: [],
    unfinished: [`call call-7 (${cut.tool}) of run run-1 began before its process died; the next start gives it a result`],
  })
})

test('a sandbox that the journal tells and the receipt does not is named', () => {
  expect(deepVerify(home.paths.log, [attempt(0, { sandbox: 'bubblewrap' })]).problems[0]?.message).toEndWith('differ in sandbox')
})

test('what became of changes must be the same in journal and receipt, also where only one of them knows of any', () => {
  const changing = createHome()
  const { logId } = changing.fill(2, (number) => (number === 0 ? { changes: 'dropped' } : {}))
  const told = (number: number, changes: string | undefined) =>
    deepVerify(changing.paths.log, [attempt(number, { changes, receiptId: `receipt-${logId.slice(0, 8)}-${number + 1}` })]).problems.map(
      ({ message }) => message.replace(/.* differ/, 'differ'),
    )
  expect([told(0, 'dropped'), told(0, 'none'), told(0, undefined)]).toEqual([[], ['differ in changes'], ['differ in changes']])
  expect([told(1, undefined), told(1, 'dropped')]).toEqual([[], ['differ in changes']])
  changing.remove()
})

test('a journal that contradicts itself about a call is a problem, whatever the receipt says', () => {
  expect(deepVerify(home.paths.log, [attempt(0, { contradiction: 'it applied other changes than it made' })]).problems).toMatchObject([
    { kind: 'contradiction', message: expect.stringContaining('it applied other changes than it made') },
  ])
})

test('attempts that agree, and one still under way, are fine; the receipts left over are counted', () => {
  const running = attempt(7, { status: undefined, receiptId: undefined, pending: true })
  expect(deepVerify(home.paths.log, [attempt(0), attempt(2), running])).toEqual({
    ok: true,
    attempts: 3,
    pending: 1,
    unfinished: [],
    withoutAttempt: 2,
    problems: [],
  })
})

test('a list shows the newest, tells of lines it could not read, and outlives a torn one', () => {
  expect(listReceipts({ path: `${home.paths.log}.none`, limit: 3 })).toEqual({ ok: true, receipts: [], unreadable: 0, torn: false })
  expect(listReceipts({ path: home.folder, limit: 3 })).toMatchObject({ ok: false, failure: { code: 'unreadable' } })
  const lines = home.log().split('\n')
  const path = `${home.paths.log}.odd`
  writeFileSync(path, [lines[0], 'garbage', lines[1], lines[2], '{"torn'].join('\n'))
  expect(listReceipts({ path, limit: 2 })).toMatchObject({ ok: true, receipts: [{ seq: 2 }, { seq: 3 }], unreadable: 0, torn: true })
  expect(listReceipts({ path, limit: 3 })).toMatchObject({ receipts: [{ seq: 1 }, { seq: 2 }, { seq: 3 }], unreadable: 1 })
  expect(listReceipts({ path, limit: 0 })).toMatchObject({ receipts: [] })
})

test('one receipt is shown by its id or its number', () => {
  expect(required(showReceipt(home.paths.log, idOf(3))).seq).toBe(3)
  expect(required(showReceipt(home.paths.log, '2')).id).toBe(idOf(2))
  expect(showReceipt(home.paths.log, '5')).toBeUndefined()
})

test('a log of many pieces is listed and verified whole', () => {
  const many = createHome()
  try {
    const appended = many.append(
      Array.from({ length: 3000 }, (_, number) => draft(number)),
      undefined,
    )
    const listed = listReceipts({ path: many.paths.log, limit: 5 })
    expect(listed.ok && listed.receipts.map(({ seq }) => seq)).toEqual([2996, 2997, 2998, 2999, 3000])
    const verified = verifyReceipts({
      path: many.paths.log,
      headPath: many.paths.head,
      key: { ok: true, key: many.key() },
      checkpoint: appended.ok ? appended.checkpoint : undefined,
    })
    expect(verified).toMatchObject({ ok: true, count: 3000, size: Buffer.byteLength(many.log()), completeness: 'proved by checkpoint' })
  } finally {
    many.remove()
  }
})
