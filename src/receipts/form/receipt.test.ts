import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { canonical } from '../../kit/json.ts'
import { required } from '../fixture.ts'
import { genesis, lineOf, macOf, type Receipt, readLink, readReceipt, sealed } from './receipt.ts'

const key = new Uint8Array(32).fill(7)
const hex = (size: number) => fc.string({ unit: fc.constantFrom(...'0123456789abcdef'), minLength: size, maxLength: size })
const text = () => fc.string({ unit: 'binary' }).map((value) => value.toWellFormed())

const receipts: fc.Arbitrary<Receipt> = fc
  .record(
    {
      v: fc.constant(3 as const),
      seq: fc.integer({ min: 1, max: 999_999_999_999_999 }),
      log_id: hex(32),
      id: text(),
      timestamp: fc
        .date({ min: new Date(0), max: new Date('9999-12-31T23:59:59.999Z'), noInvalidDate: true })
        .map((date) => date.toISOString()),
      conversation_id: text(),
      tool: text(),
      args_hash: hex(64),
      result_hash: hex(64),
      status: fc.constantFrom('allowed' as const, 'denied' as const, 'failed' as const),
      risk: fc.constantFrom('low' as const, 'medium' as const, 'high' as const),
      approval: text(),
      error: text(),
      changes: fc.oneof(hex(64), fc.constantFrom('none', 'direct', 'dropped', 'pending')),
      previous_hash: hex(64),
    },
    {
      requiredKeys: [
        'v',
        'seq',
        'log_id',
        'id',
        'timestamp',
        'conversation_id',
        'tool',
        'args_hash',
        'result_hash',
        'status',
        'risk',
        'previous_hash',
      ],
    },
  )
  .map((body) => sealed(body, key))

test('a receipt is spelled as canonical JSON and hashed without receipt_hash and mac', () => {
  fc.assert(
    fc.property(receipts, (receipt) => {
      const { receipt_hash, mac, ...body } = receipt
      expect(lineOf(receipt)).toBe(canonical(receipt))
      expect(receipt_hash).toBe(Bun.SHA256.hash(canonical(body), 'hex'))
      expect(mac).toBe(macOf(key, receipt_hash))
    }),
  )
})

test('what is written is read back, with the hash of its content', () => {
  fc.assert(
    fc.property(receipts, (receipt) => {
      expect(readReceipt(lineOf(receipt))).toEqual(receipt)
      expect(readLink(lineOf(receipt))).toEqual({
        logId: receipt.log_id,
        seq: receipt.seq,
        previous: receipt.previous_hash,
        own: receipt.receipt_hash,
        mac: receipt.mac,
        content: receipt.receipt_hash,
      })
    }),
  )
})

test('a line with any one character changed is refused, or has another hash or another seal', () => {
  fc.assert(
    fc.property(receipts, fc.nat(), fc.string({ unit: 'binary', minLength: 0, maxLength: 2 }), (receipt, where, put) => {
      const line = lineOf(receipt)
      const at = where % line.length
      const changed = `${line.slice(0, at)}${put}${line.slice(at + 1)}`.toWellFormed()
      fc.pre(changed !== line)
      const link = readLink(changed)
      expect(link === undefined || link.content !== link.own || macOf(key, link.own) !== link.mac).toBe(true)
    }),
    { numRuns: 500 },
  )
})

test('whatever the grammar accepts is canonical', () => {
  fc.assert(
    fc.property(
      receipts,
      fc.nat(),
      fc.constantFrom(' ', '\\u0041', '\\/', '\\n', '0', '-', '+', 'e0', '"', ',', '}', '\\ud800', '\\u000a'),
      (receipt, where, put) => {
        const line = lineOf(receipt)
        const changed = `${line.slice(0, where % line.length)}${put}${line.slice(where % line.length)}`.toWellFormed()
        const read = readReceipt(changed)
        if (read) expect(canonical(read)).toBe(changed)
      },
    ),
    { numRuns: 500 },
  )
})

test('the mac is HMAC-SHA256 as RFC 4231 has it', () => {
  expect(macOf(new Uint8Array(20).fill(0x0b), 'Hi There')).toBe('b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7')
})

test('a receipt has a fixed spelling that old logs depend on', () => {
  const receipt = sealed(
    {
      v: 1,
      seq: 1,
      log_id: '0123456789abcdef0123456789abcdef',
      id: 'receipt-01234567-1',
      timestamp: '2026-05-12T14:00:00.000Z',
      conversation_id: 'c',
      tool: 'time',
      args_hash: 'a'.repeat(64),
      result_hash: 'b'.repeat(64),
      status: 'allowed',
      risk: 'low',
      previous_hash: genesis,
    },
    key,
  )
  expect(receipt.receipt_hash).toBe('2678daffa4ae95bd8af084e99b97b9364583778ef5aa068002c197bc7ec2eef0')
  expect(required(readReceipt(lineOf(receipt))).mac).toBe('3d1c9a0fe4209af467de938dabe5eb5a650c29c59a4aa529749d3d544dcfe2e5')
})
