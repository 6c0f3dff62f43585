import { afterAll, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { isDeep } from '../../test/support/tier.ts'
import type { ReceiptDraft } from './contract.ts'
import { type Home, required } from './fixture.ts'
import { headLine } from './form/anchor.ts'
import type { Receipt } from './form/receipt.ts'
import { readReceipt } from './form/receipt.ts'
import { anchorAt, edit, homes, lines, recompute, testBoth } from './tampering.fixture.ts'

const { empty, removeAll } = homes()
afterAll(removeAll)

const digest = '5e'.repeat(32)
const kinds: readonly ReceiptDraft['changes'][] = [digest, 'dropped', 'pending', 'direct', 'none', undefined]
const another = (): Home => {
  const home = empty()
  home.fill(6, (number) => ({ tool: 'shell', sandbox: 'bubblewrap', changes: kinds[number] }))
  return home
}

/** Seals the receipts again with the key, as another program would have written them, and updates the witnesses. */
function reseal(home: Home, change: (receipt: Receipt) => Receipt) {
  recompute(home, 1, { key: home.key(), change })
  const checkpoint = anchorAt(home, 6)
  writeFileSync(home.paths.head, `${headLine(checkpoint)}\n`)
  return { checkpoint }
}

const older = ({ changes: _, ...receipt }: Receipt): Receipt => ({ ...receipt, v: 2 })
const swap = (number: number, from: string, to: string) => ({
  do: ({ home }: { home: Home }) => edit(home, number, (line) => line.replace(from, to)),
})

testBoth(
  [
    { name: 'receipts that say what became of the changes', do: () => {}, record: undefined },
    { name: 'the digest of other changes', ...swap(1, digest, '5f'.repeat(32)), record: 1, kind: 'hash' },
    { name: 'dropped changes said to be none', ...swap(2, '"dropped"', '"none"'), record: 2, kind: 'hash' },
    { name: 'dropped changes said to be applied', ...swap(2, '"dropped"', `"${digest}"`), record: 2, kind: 'hash' },
    { name: 'the changes taken out', ...swap(2, '"changes":"dropped",', ''), record: 2, kind: 'hash' },
    { name: 'changes slipped in', ...swap(6, '"conversation_id"', '"changes":"none","conversation_id"'), record: 6, kind: 'hash' },
    { name: 'a word that nobody knows', ...swap(3, '"pending"', '"later"'), record: 3, kind: 'form' },
    { name: 'a digest that is too short', ...swap(1, `"${digest}"`, `"${digest.slice(2)}"`), record: 1, kind: 'form' },
    { name: 'a digest in capitals', ...swap(1, digest, digest.toUpperCase()), record: 1, kind: 'form' },
    { name: 'changes written twice', ...swap(5, '"changes"', '"changes":"none","changes"'), record: 5, kind: 'form' },
    { name: 'the version set back', ...swap(1, '"v":3', '"v":2'), record: 1, kind: 'form' },
    { name: 'receipts of version 2', do: ({ home }) => reseal(home, older), record: undefined },
    {
      name: 'receipts of version 2 with newer ones after them',
      do: ({ home }) => reseal(home, (receipt) => (receipt.seq < 4 ? older(receipt) : receipt)),
      record: undefined,
    },
    {
      name: 'a receipt of version 2 that speaks of changes, sealed with the key',
      do: ({ home }) => reseal(home, (receipt) => (receipt.seq === 2 ? { ...receipt, v: 2 } : receipt)),
      record: 2,
      kind: 'form',
    },
  ],
  { another, isDeep },
)

test('a receipt names the digest of what was applied', () => {
  expect(lines(another()).map((line) => required(readReceipt(line)).changes)).toEqual([...kinds])
})
