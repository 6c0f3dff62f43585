import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { statFields } from './proc.ts'

test('fields are counted behind the name, whatever it holds', () => {
  const field = statFields('7 (a) R 9 (b) S 1 7 7 34816 7\n')
  expect([3, 4, 7].map(field)).toEqual(['S', '1', '34816'])
  expect(field(60)).toBe('')
})

test("this process's own parent is its fourth", () => {
  expect(Number(statFields(readFileSync('/proc/self/stat', 'latin1'))(4))).toBe(process.ppid)
})
