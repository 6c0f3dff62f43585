import { afterAll, expect, test } from 'bun:test'
import {
  appendFileSync,
  chmodSync,
  existsSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import type { AppendResult, Checkpoint } from './contract.ts'
import { createHome, draft, type Home, mustAppend, required } from './fixture.ts'
import { headLine, sealAnchor } from './form/anchor.ts'
import { genesis, type Receipt, readReceipt } from './form/receipt.ts'
import { readKey } from './key.ts'
import { createReceiptLog } from './ledger.ts'
import { verifyReceipts } from './verify/verify-chain.ts'

const homes: Home[] = []
afterAll(() => {
  for (const home of homes) home.remove()
})

function fresh(count = 0): Home & { checkpoint: Checkpoint } {
  const home = createHome()
  homes.push(home)
  const none = { logId: '', count: 0, head: '', mac: '', size: 0 }
  return { ...home, checkpoint: count > 0 ? home.fill(count) : none }
}

function receiptsOf(home: Home): Receipt[] {
  return home
    .log()
    .trimEnd()
    .split('\n')
    .map((line) => required(readReceipt(line)))
}

function failed(appended: AppendResult): string {
  return appended.ok ? 'it was appended' : `${appended.failure.code}: ${appended.failure.message}`
}

function valid(home: Home, checkpoint: Checkpoint): boolean {
  return verifyReceipts({ path: home.paths.log, headPath: home.paths.head, key: readKey(home.paths.key), checkpoint }).ok
}

test('a log that lost its end, its last receipt or its beginning is refused and left as it is', () => {
  const damages: readonly ((home: Home) => void)[] = [
    ({ paths }) => truncateSync(paths.log, statSync(paths.log).size - 10),
    ({ paths }) => truncateSync(paths.log, 0),
    ({ setLog, log }) => setLog(log().replace(/"low"(?=[^\n]*\n$)/, '"hig"')),
    ({ setLog, log }) => setLog(log().replace(/.*\n/, '')),
    ({ setLog, log }) => setLog(`${log()}{"foreign":true}\n`),
    ({ setLog, log }) => setLog(`${log() + (log().split('\n')[2] ?? '')}\n`),
  ]
  for (const damage of damages) {
    const home = fresh(3)
    damage(home)
    const before = home.log()
    expect(failed(home.append([draft(9)], home.checkpoint))).toStartWith('altered: ')
    expect(failed(home.append([], home.checkpoint))).toStartWith('altered: ')
    expect(home.log()).toBe(before)
  }
})

test('a log that was cut is refused with both sizes', () => {
  const home = fresh(3)
  truncateSync(home.paths.log, 100)
  expect(failed(home.append([draft(9)], home.checkpoint))).toContain(`it has 100 bytes, but ${home.checkpoint.size} are known`)
})

test('a removed log is not begun again', () => {
  const home = fresh(3)
  rmSync(home.paths.log)
  expect(failed(home.append([draft(9)], home.checkpoint))).toContain('missing or empty, but 3 receipts are known')
  expect(failed(home.append([], home.checkpoint))).toContain('missing or empty, but 3 receipts are known')
  expect(failed(home.append([draft(9)], undefined))).toContain('the head file knows 3 receipts')
  expect(existsSync(home.paths.log)).toBe(false)
  writeFileSync(home.paths.head, 'nonsense')
  expect(failed(home.append([draft(9)], undefined))).toContain('there is a damaged head file')
})

test('without its key, or with one that others can read, nothing is appended', () => {
  const home = fresh(2)
  chmodSync(home.paths.key, 0o644)
  expect(failed(home.append([draft(9)], home.checkpoint))).toStartWith('key: ')
  rmSync(home.paths.key)
  expect(failed(home.append([draft(9)], home.checkpoint))).toStartWith('key: ')
  expect(existsSync(home.paths.key)).toBe(false)
})

test('a checkpoint that was not sealed with the key is refused', () => {
  const home = fresh(2)
  expect(failed(home.append([draft(9)], { ...home.checkpoint, mac: '0'.repeat(64) }))).toContain('was not sealed with the receipt key')
  const forged = sealAnchor(home.key(), { ...home.checkpoint, head: '1'.repeat(64) })
  expect(failed(home.append([draft(9)], { ...forged, size: home.checkpoint.size }))).toContain('receipt 2 is not the one')
})

test('a link in the place of the log is not followed', () => {
  const home = fresh(1)
  const other = join(home.folder, 'elsewhere')
  writeFileSync(other, home.log())
  rmSync(home.paths.log)
  symlinkSync(other, home.paths.log)
  expect(failed(home.append([draft(9)], home.checkpoint))).toStartWith('unreadable: ')
})

test('the first receipt makes key, log and head file, all for the owner alone', () => {
  const home = fresh()
  const appended = home.append([draft(0)], undefined)
  expect(appended).toMatchObject({ ok: true, adopted: 0, tornBytes: 0, checkpoint: { count: 1 } })
  expect(readdirSync(home.folder).sort()).toEqual(['receipt.key', 'receipts.head', 'tool_receipts.log'])
  for (const path of [home.paths.log, home.paths.head, home.paths.key]) expect(statSync(path).mode & 0o777).toBe(0o600)
})

test('a receipt holds what the seed asks for, and its place in the chain', () => {
  const home = fresh()
  const first = mustAppend(home.append, [draft(0)], undefined)
  const second = home.append([draft(1, { status: 'denied', error: 'x'.repeat(1000), approval: 'user', risk: 'medium' }), draft(2)], first)
  const [one, two, three] = receiptsOf(home)
  expect(one).toEqual({
    v: 3,
    seq: 1,
    log_id: first.logId,
    id: `receipt-${first.logId.slice(0, 8)}-1`,
    timestamp: '2026-05-12T14:00:00.000Z',
    conversation_id: 'conversation-1',
    tool: 'file_read',
    args_hash: draft(0).argsHash,
    result_hash: draft(0).resultHash,
    status: 'allowed',
    risk: 'low',
    previous_hash: genesis,
    receipt_hash: first.head,
    mac: required(one).mac,
  })
  expect(two).toMatchObject({ seq: 2, status: 'denied', risk: 'medium', approval: 'user', previous_hash: first.head })
  expect(two?.error).toHaveLength(300)
  expect(three).toMatchObject({ seq: 3, previous_hash: required(two).receipt_hash })
  expect(second).toMatchObject({ ok: true, receiptIds: [required(two).id, required(three).id] })
  expect(second.ok && second.checkpoint).toMatchObject({
    count: 3,
    head: required(three).receipt_hash,
    size: statSync(home.paths.log).size,
  })
})

test('text with lone surrogates is cleaned, not refused', () => {
  const home = fresh()
  const checkpoint = mustAppend(
    home.append,
    [draft(0, { tool: 'a\ud800', conversationId: '\udc00', error: `${'x'.repeat(298)}🦆🦆` })],
    undefined,
  )
  expect(receiptsOf(home)[0]).toMatchObject({ tool: 'a\ufffd', conversation_id: '\ufffd' })
  expect(valid(home, checkpoint)).toBe(true)
})

test('settling without drafts touches nothing where there is nothing', () => {
  const home = fresh()
  expect(home.append([], undefined)).toEqual({ ok: true, receiptIds: [], checkpoint: undefined, adopted: 0, tornBytes: 0 })
  expect(readdirSync(home.folder)).toEqual([])
})

test('a torn line is cut off and reported, then the log goes on', () => {
  const home = fresh(3)
  home.setLog(`${home.log()}{"args_hash":"0`)
  const settled = home.append([], home.checkpoint)
  expect(settled).toMatchObject({ ok: true, tornBytes: 15, adopted: 0, checkpoint: { count: 3 } })
  home.setLog(`${home.log()}{`)
  const appended = home.append([draft(3)], home.checkpoint)
  expect(appended).toMatchObject({ ok: true, tornBytes: 1, checkpoint: { count: 4 } })
  expect(valid(home, required(appended.ok ? appended.checkpoint : undefined))).toBe(true)
})

test('receipts that a crash left beyond the checkpoint are adopted, also with a torn line behind them', () => {
  const home = fresh(3)
  mustAppend(home.append, [draft(3), draft(4)], home.checkpoint)
  writeFileSync(home.paths.head, `${headLine(home.checkpoint)}\n`)
  home.setLog(`${home.log()}{"torn`)
  const settled = home.append([], home.checkpoint)
  expect(settled).toMatchObject({ ok: true, adopted: 2, tornBytes: 6, receiptIds: [], checkpoint: { count: 6 } })
  expect(valid(home, required(settled.ok ? settled.checkpoint : undefined))).toBe(true)
  expect(readFileSync(home.paths.head, 'utf8')).toContain(':6:')
})

test('without a checkpoint nothing is adopted that the head file does not confirm', () => {
  const home = fresh(4)
  home.setLog(
    home
      .log()
      .split('\n')
      .slice(0, 3)
      .map((line) => `${line}\n`)
      .join(''),
  )
  expect(failed(home.append([draft(9)], undefined))).toContain('invalid chain at receipt 4')
  rmSync(home.paths.head)
  expect(failed(home.append([draft(9)], undefined))).toContain('head file')
})

test('a crash during the very first append is recovered from', () => {
  for (const left of ['', '{"args', 'whole']) {
    const home = fresh()
    const dying = createReceiptLog({
      paths: home.paths,
      sync: () => {
        throw new Error('killed')
      },
    })
    expect(() => dying([draft(0)], undefined)).toThrow('killed')
    if (left !== 'whole') home.setLog(left)
    const checkpoint = mustAppend(home.append, [draft(1)], undefined)
    expect(checkpoint.count).toBe(left === 'whole' ? 3 : 1)
    expect(valid(home, checkpoint)).toBe(true)
  }
})

test('a crash between making the first head file and writing it is recovered from', () => {
  const home = fresh()
  home.setLog('')
  writeFileSync(home.paths.head, '')
  const checkpoint = mustAppend(home.append, [draft(0)], undefined)
  expect(valid(home, checkpoint)).toBe(true)
})

test('a receipt longer than what is first read back is still found', () => {
  const home = fresh()
  let checkpoint = mustAppend(home.append, [draft(0), draft(1, { conversationId: 'c'.repeat(50_000) })], undefined)
  checkpoint = mustAppend(home.append, [draft(2)], checkpoint)
  expect(valid(home, checkpoint)).toBe(true)
})

test('if the disk does not take the bytes, the receipt is withdrawn', () => {
  const home = fresh(2)
  const broken = createReceiptLog({
    paths: home.paths,
    sync: () => {
      throw Object.assign(new Error('EIO: i/o error, fdatasync'), { code: 'EIO', errno: -5 })
    },
  })
  const before = home.log()
  expect(failed(broken([draft(9)], home.checkpoint))).toStartWith('unreadable: ')
  expect(home.log()).toBe(before)
  expect(valid(home, home.checkpoint)).toBe(true)
})

test('a second writer that keeps no lock is noticed', () => {
  const home = fresh(2)
  const crowded = createReceiptLog({ paths: home.paths, sync: () => appendFileSync(home.paths.log, 'x') })
  expect(failed(crowded([draft(4)], home.checkpoint))).toContain('another program wrote')
})

test('a checkpoint that fell behind is caught up by the next append', () => {
  const home = fresh(2)
  mustAppend(home.append, [draft(3)], home.checkpoint)
  expect(home.append([draft(4)], home.checkpoint)).toMatchObject({ ok: true, adopted: 1, checkpoint: { count: 5 } })
  expect(receiptsOf(home).map(({ tool }) => tool)).toEqual(['file_read', 'file_read', 'file_read', 'receipts.adopted', 'file_read'])
})
