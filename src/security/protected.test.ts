import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { folded } from './protected.ts'

/** What folding does to one name, spelled out. */
function foldedName(name: string): string {
  const plain = name.normalize('NFKC').toLowerCase()
  const bare = plain.replace(/\p{Default_Ignorable_Code_Point}/gu, '').replaceAll('/', '')
  return /[^. ]/.test(bare) ? bare.replace(/[. ]+$/, '') : bare
}

test('the short way for ordinary paths folds as the long one does', () => {
  const path = fc.oneof(fc.string(), fc.string({ unit: 'binary' }), fc.stringMatching(/^[a-zA-Z./ ~_-]*$/))
  fc.assert(
    fc.property(path, (text) => folded(text) === text.split('/').map(foldedName).join('/')),
    { numRuns: 5000 },
  )
})

test.each([
  ['/A/.GIT/Hooks', '/a/.git/hooks'],
  ['/a/.git./x', '/a/.git/x'],
  ['/a/.git /x', '/a/.git/x'],
  ['/a/.g\u200cit', '/a/.git'],
  ['/a/ｇit', '/a/git'],
  ['/a/../b', '/a/../b'],
])('%s folds to %s', (path, expected) => {
  expect(folded(path)).toBe(expected)
})
