import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { canonical } from '../../kit/json.ts'
import { sha256 } from '../../kit/sha256.ts'
import type { Change } from '../../runtime/changes.ts'
import { changesDigest } from './review-changes.ts'

const text = fc.string({ unit: 'binary' }).map((each) => each.toWellFormed())
const state = fc.record(
  { kind: fc.constantFrom('file', 'folder', 'link', 'other'), mode: fc.nat(0o7777), size: fc.nat(), sha256: text, target: text },
  { requiredKeys: ['kind', 'mode'] },
)
const changes: fc.Arbitrary<readonly Change[]> = fc.uniqueArray(
  fc.record({ path: text, bytes: text, before: state, after: state }, { requiredKeys: ['path'] }),
  { selector: ({ path }) => path },
)

test('is the hash of the canonical JSON, sorted by path, whatever the order of the list', () => {
  fc.assert(
    fc.property(changes, (list) => {
      const sorted = list.toSorted((a, b) => (a.path < b.path ? -1 : 1))
      expect(changesDigest(list)).toBe(sha256(canonical(sorted)))
      expect(changesDigest(list.toReversed())).toBe(changesDigest(list))
    }),
    { numRuns: 300 },
  )
})

test('differs when any part of any change differs', () => {
  const base: Change = {
    path: 'a',
    before: { kind: 'file', mode: 0o644, size: 1, sha256: 'x' },
    after: { kind: 'link', mode: 0o777, target: 't' },
  }
  const others: readonly Change[] = [
    { ...base, path: 'b' },
    { ...base, bytes: 'YQ==' },
    { path: 'a', after: base.before, before: base.after },
    { ...base, after: { kind: 'link', mode: 0o776, target: 't' } },
    { ...base, after: { kind: 'link', mode: 0o777, target: 'u' } },
    { ...base, before: { kind: 'file', mode: 0o644, size: 2, sha256: 'x' } },
    { ...base, before: { kind: 'file', mode: 0o644, size: 1, sha256: 'y' } },
  ]
  const digests = [[base], [], ...others.map((each) => [each])].map((list) => changesDigest(list))
  expect(new Set(digests).size).toBe(digests.length)
})
