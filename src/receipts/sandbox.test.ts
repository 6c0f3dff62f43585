import { afterAll, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { isDeep } from '../../test/support/tier.ts'
import type { ReceiptDraft } from './contract.ts'
import { type Home, required } from './fixture.ts'
import { headLine } from './form/anchor.ts'
import { lineOf, type Receipt, readReceipt, sealed } from './form/receipt.ts'
import { anchorAt, edit, homes, lines, recompute, testBoth } from './tampering.fixture.ts'

const { empty, removeAll } = homes()
afterAll(removeAll)

const kinds: readonly ReceiptDraft['sandbox'][] = ['bubblewrap', 'none', 'landlock', undefined, 'bubblewrap']
const another = (): Home => {
  const home = empty()
  home.fill(5, (number) => ({ tool: 'shell', sandbox: kinds[number] }))
  return home
}

/** Seals the receipts again with the key, as an older program would have written them, and updates the witnesses. */
function reseal(home: Home, change: (receipt: Receipt) => Receipt) {
  recompute(home, 1, { key: home.key(), change })
  const checkpoint = anchorAt(home, 5)
  writeFileSync(home.paths.head, `${headLine(checkpoint)}\n`)
  return { checkpoint }
}

const older = ({ sandbox: _, ...receipt }: Receipt): Receipt => ({ ...receipt, v: 1 })

testBoth(
  [
    { name: 'receipts that say how commands were confined', do: () => {}, record: undefined },
    {
      name: 'the sandbox of receipt 2 taken out',
      do: ({ home }) => edit(home, 2, (line) => line.replace('"sandbox":"none",', '')),
      record: 2,
      kind: 'hash',
    },
    {
      name: 'the sandbox of receipt 2 changed',
      do: ({ home }) => edit(home, 2, (line) => line.replace('"none"', '"bubblewrap"')),
      record: 2,
      kind: 'hash',
    },
    {
      name: 'a sandbox that nobody knows',
      do: ({ home }) => edit(home, 3, (line) => line.replace('"landlock"', '"jail"')),
      record: 3,
      kind: 'form',
    },
    { name: 'an empty sandbox', do: ({ home }) => edit(home, 3, (line) => line.replace('"landlock"', '""')), record: 3, kind: 'form' },
    {
      name: 'a sandbox slipped in',
      do: ({ home }) => edit(home, 4, (line) => line.replace('"seq"', '"sandbox":"none","seq"')),
      record: 4,
      kind: 'hash',
    },
    {
      name: 'the sandbox written twice',
      do: ({ home }) => edit(home, 1, (line) => line.replace('"seq"', '"sandbox":"bubblewrap","seq"')),
      record: 1,
      kind: 'form',
    },
    {
      name: 'the sandbox in another place',
      do: ({ home }) =>
        edit(home, 1, (line) => line.replace('"sandbox":"bubblewrap",', '').replace('"tool"', '"sandbox":"bubblewrap","tool"')),
      record: 1,
      kind: 'form',
    },
    { name: 'the version set back', do: ({ home }) => edit(home, 4, (line) => line.replace('"v":3', '"v":1')), record: 4, kind: 'hash' },
    {
      name: 'the version of one with a sandbox set back',
      do: ({ home }) => edit(home, 1, (line) => line.replace('"v":3', '"v":1')),
      record: 1,
      kind: 'form',
    },
    { name: 'a version to come', do: ({ home }) => edit(home, 4, (line) => line.replace('"v":3', '"v":4')), record: 4, kind: 'form' },
    { name: 'receipts of version 1', do: ({ home }) => reseal(home, older), record: undefined },
    {
      name: 'receipts of version 1 with newer ones after them',
      do: ({ home }) => reseal(home, (receipt) => (receipt.seq < 4 ? older(receipt) : receipt)),
      record: undefined,
    },
    {
      name: 'a receipt of version 1 that speaks of a sandbox, sealed with the key',
      do: ({ home }) => reseal(home, (receipt) => (receipt.seq === 2 ? { ...receipt, v: 1 } : receipt)),
      record: 2,
      kind: 'form',
    },
  ],
  { another, isDeep },
)

test('a receipt with a sandbox has a fixed spelling as well', () => {
  const body = { ...required(readReceipt(required(lines(another())[1]))), log_id: '0'.repeat(32), timestamp: '2026-05-12T14:00:00.000Z' }
  const { receipt_hash: _, mac: __, ...unsealed } = { ...body, id: 'receipt-00000000-2', previous_hash: 'a'.repeat(64) }
  const line = lineOf(sealed(unsealed, new Uint8Array(32).fill(7)))
  expect(line).toContain('"risk":"low","sandbox":"none","seq":2,')
  expect(line).toEndWith('"tool":"shell","v":3}')
  expect(line).toBe(JSON.stringify(Object.fromEntries(Object.entries(JSON.parse(line)).sort(([a], [b]) => (a < b ? -1 : 1)))))
})
