import { expect, test } from 'bun:test'
import { openSession, sealSession } from './callers.ts'

const digest = 'a'.repeat(64)
const sealed = sealSession({ id: 'one', expires: 1_000, digest, nonce: 'n' })
const digestOf = (id: string) => (id === 'one' ? digest : id === 'two' ? 'b'.repeat(64) : undefined)

test('a session opens with its own token alone, unchanged, and before it ends', () => {
  expect(openSession(sealed, () => undefined, 0)).toBeUndefined()
  expect(openSession(sealed, () => 'b'.repeat(64), 0)).toBeUndefined()
  expect(openSession(sealed, digestOf, 1_000)).toBeUndefined()
  for (const other of [
    sealed.replace('one', 'two'),
    sealed.replace('.n.', '.m.'),
    sealed.replace('.rs.', '.rt.'),
    `${sealed}0`,
    `${sealed}.x`,
    sealed.slice(0, -1),
    '',
  ])
    expect([other, openSession(other, digestOf, 0)]).toEqual([other, undefined])
  expect(openSession(sealed, digestOf, 999)).toEqual({ id: 'one', expires: 1_000, nonce: 'n' })
})
