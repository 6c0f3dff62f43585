import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { createId } from './sha256.ts'

test.each(['', 'Run', '1run', 'run_', 'r/n', 'rün'])('the prefix "%s" is refused', (prefix) => {
  expect(() => createId(prefix, new Uint8Array(8))).toThrow('lower-case')
})

test('too few bytes to be unique are refused', () => {
  expect(() => createId('run', new Uint8Array(7))).toThrow('7 random bytes')
})

test('an id is the prefix and the bytes, five bits a character', () => {
  expect(createId('run', new Uint8Array(10))).toBe('run_0000000000000000')
  expect(createId('gate', new Uint8Array(8).fill(255))).toBe('gate_zzzzzzzzzzzzy')
  expect(createId('t2', Uint8Array.from([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]))).toBe('t2_000g40r40m30e209')
})

test('different bytes give different ids, safe in paths and shells', () => {
  const bytes = fc.uint8Array({ minLength: 8, maxLength: 20 })
  fc.assert(
    fc.property(bytes, bytes, (a, b) => {
      const [first, second] = [createId('run', a), createId('run', b)]
      expect(first).toMatch(/^run_[0-9a-hjkmnp-tv-z]+$/)
      if (a.length === b.length) expect(first === second).toBe(Buffer.from(a).equals(b))
    }),
  )
})
