import { afterEach, beforeEach, expect, test } from 'bun:test'
import { readdirSync, rmSync } from 'node:fs'
import type { Checkpoint } from './contract.ts'
import { createHome, draft, type Home, mustAppend, required } from './fixture.ts'
import { latestReceipts } from './list-receipts.ts'
import { rotate } from './rotate.ts'

let home: Home
beforeEach(() => {
  home = createHome()
})
afterEach(() => home.remove())

const numbers = (after: number) => latestReceipts(home.paths, after).map(({ seq }) => seq)

/** About 350 KiB each, so that reading takes several reads. */
const long = (count: number) => home.fill(count, () => ({ status: 'failed', error: 'ü'.repeat(300) }))

function turnOver(checkpoint: Checkpoint): Checkpoint {
  const rotated = rotate({ paths: home.paths, checkpoint, draft: draft(99, { tool: 'receipts.rotate' }) })
  if (!rotated.ok) throw new Error(rotated.failure.message)
  return required(rotated.checkpoint)
}

test('those after a number, oldest first: none, some, and all of a log that is read in several pieces', () => {
  long(300)
  expect(numbers(300)).toEqual([])
  expect(numbers(297)).toEqual([298, 299, 300])
  expect(numbers(0)).toEqual(Array.from({ length: 300 }, (_, at) => at + 1))
  expect(numbers(20)).toHaveLength(280)
})

test('they are told in the words of what was written', () => {
  home.fill(1, () => ({ status: 'denied', error: 'no', approval: 'ann', sandbox: 'none', risk: 'high', tool: 'shell' }))
  const { at: _, ...wanted } = draft(0, { status: 'denied', error: 'no', approval: 'ann', sandbox: 'none', risk: 'high', tool: 'shell' })
  expect(latestReceipts(home.paths, 0)).toEqual([{ ...wanted, seq: 1, id: expect.stringMatching(/^receipt-[0-9a-f]{8}-1$/) }])
})

test('closed segments are read as far as they are needed', () => {
  const checkpoint = turnOver(turnOver(home.fill(3)))
  mustAppend(home.append, [draft(6)], checkpoint)
  expect(numbers(0)).toEqual([1, 2, 3, 4, 5, 6])
  expect(numbers(3)).toEqual([4, 5, 6])
  const [oldest] = readdirSync(home.folder).filter((name) => name.endsWith('.1.log'))
  rmSync(`${home.folder}/${oldest}`)
  expect(numbers(3)).toEqual([4, 5, 6])
})

test('a line that was altered ends the search: nothing before it counts, nor it', () => {
  home.fill(5)
  const lines = home.log().split('\n')
  home.setLog(lines.map((line, at) => (at === 2 ? line.replace('"allowed"', '"denied"') : line)).join('\n'))
  expect(numbers(0)).toEqual([4, 5])
  home.setLog(lines.map((line, at) => (at === 2 ? line.replace(/"mac":"./, '"mac":"g') : line)).join('\n'))
  expect(numbers(0)).toEqual([4, 5])
  home.setLog(lines.map((line, at) => (at === 2 ? line.replace(/"mac":"[0-9a-f]{4}/, '"mac":"0000') : line)).join('\n'))
  expect(numbers(0)).toEqual([4, 5])
})

test('without a log, or without its key, there are none', () => {
  expect(numbers(0)).toEqual([])
  home.fill(2)
  rmSync(home.paths.key)
  expect(numbers(0)).toEqual([])
})
