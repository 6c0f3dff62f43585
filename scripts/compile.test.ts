import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { withoutDoors } from './compile.ts'

const file = (...names: readonly string[]) => Buffer.from(['first', ...names, 'last'].join('\0'))
const named = (...names: readonly string[]) => withoutDoors(file(...names))
const others = ['BUN_OPTIONS', 'BUN_INSPECT', 'BUN_INSPECT_PRELOAD']

test.each([
  ['never', [], 'BUN_BE_BUN must occur exactly once to be renamed, but occurs 0 times'],
  ['twice', ['BUN_BE_BUN', 'BUN_BE_BUN'], 'BUN_BE_BUN must occur exactly once to be renamed, but occurs 2 times'],
])('an executable that has the word %s is not built', (_, words, message) => {
  expect(named(...words, ...others)).toEqual({ ok: false, message })
})

test('one without the other two words is not built either', () => {
  expect(named('BUN_BE_BUN', 'BUN_INSPECT')).toEqual({
    ok: false,
    message: 'BUN_OPTIONS must occur at least once to be renamed, but occurs 0 times',
  })
})

test('once: the words get other names of the same length, the same ones for the same bytes, and nothing else changes', () => {
  const once = (...more: readonly string[]) => {
    const renamed = named('BUN_BE_BUN', ...others, 'BUN_OPTIONS', ...more)
    if (!renamed.ok) throw new Error(renamed.message)
    return renamed.bytes.toString().split('\0')
  }
  const [first, be = '', options, inspect = '', preload, again, last] = once()
  expect([first, last, again]).toEqual(['first', 'last', options ?? ''])
  expect([be, options, inspect]).toEqual([/^[A-Z]{10}$/, /^[A-Z]{11}$/, /^[A-Z]{11}$/].map((each) => expect.stringMatching(each)))
  expect(preload).toBe(`${inspect}_PRELOAD`)
  expect(once()[1]).toBe(be)
  expect(once('another release')[1]).not.toBe(be)
})

test('the launcher unsets every variable that the executable has under another name', () => {
  const launcher = readFileSync(join(import.meta.dir, '../bin/braidclaw'), 'utf8')
  const unset = /^unset (.*)$/m.exec(launcher)?.[1]?.split(' ') ?? []
  for (const name of ['BUN_BE_BUN', 'BUN_OPTIONS', 'BUN_INSPECT', 'BUN_INSPECT_PRELOAD', 'BUN_INSPECT_CONNECT_TO', 'BUN_INSPECT_NOTIFY'])
    expect(unset).toContain(name)
})
