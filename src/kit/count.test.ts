import { expect, test } from 'bun:test'
import { count, grouped } from './text.ts'

test('numbers are grouped by thousands', () => {
  expect([0, 999, 1_000, 123_456, 50_000_000].map(grouped)).toEqual(['0', '999', '1,000', '123,456', '50,000,000'])
})

test('only one is one', () => {
  expect([0, 1, 2, 3000].map((number) => count(number, 'receipt'))).toEqual(['0 receipts', '1 receipt', '2 receipts', '3,000 receipts'])
})
