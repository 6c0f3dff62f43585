import { afterEach, beforeEach, expect, test } from 'bun:test'
import { appendFileSync, chmodSync, unlinkSync } from 'node:fs'
import { createHome, type Home } from './fixture.ts'
import { isConsistent } from './verify/log-end.ts'

let home: Home
beforeEach(() => {
  home = createHome()
})
afterEach(() => home.remove())

test('after an append log, key and checkpoint are at rest', () => {
  for (let count = 1; count < 5; count += 1) expect(isConsistent(home.paths, home.fill(1))).toBe(true)
})

test('before the first receipt there is nothing to settle, but a log without a checkpoint is', () => {
  expect(isConsistent(home.paths, undefined)).toBe(true)
  home.fill(1)
  expect(isConsistent(home.paths, undefined)).toBe(false)
  unlinkSync(home.paths.log)
  expect(isConsistent(home.paths, undefined)).toBe(false)
})

const known = () => home.fill(3)

test.each([
  ['a line beyond the checkpoint', () => appendFileSync(home.paths.log, '{"torn')],
  ['a log that is gone', () => unlinkSync(home.paths.log)],
  ['a key that is gone', () => unlinkSync(home.paths.key)],
  ['a key that others can read', () => chmodSync(home.paths.key, 0o644)],
  ['a shorter log', () => home.setLog(home.log().split('\n').slice(0, 2).join('\n').concat('\n'))],
  ['another content of the same length', () => home.setLog(home.log().replace(/"allowed"(?=[^\n]*\n$)/, '"refused"'))],
  ['a mac of another length', () => home.setLog(home.log().replace(/"mac":"[0-9a-f]{64}",(?=[^\n]*\n$)/, `"mac":"${'0'.repeat(63)}",`))],
])('%s is not at rest', (_, change) => {
  const checkpoint = known()
  change()
  expect(isConsistent(home.paths, checkpoint)).toBe(false)
})

test('a checkpoint that was not sealed with the key is not at rest', () => {
  const checkpoint = known()
  expect(isConsistent(home.paths, { ...checkpoint, count: 2 })).toBe(false)
  expect(isConsistent(home.paths, { ...checkpoint, mac: '0'.repeat(64) })).toBe(false)
})
