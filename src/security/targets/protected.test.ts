import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { folded } from '../../kit/text.ts'
import { isProtectedName, protectedNames, protectedRows, spelt, watchedNames } from './protected.ts'

/** Folds one name step by step, as a reference for the real function. */
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

test.each(protectedNames.map((name) => [name]))(
  '%s is protected wherever it lies, with all below it, and not what is only named alike',
  (name) => {
    for (const path of [name, `/a/${name}`, `a/${name}/b`, name.toUpperCase()]) expect(isProtectedName(path)).toBe(true)
    for (const path of [`${name}x`, `x${name}`, `a/x${name}/b`])
      expect([path, isProtectedName(path)]).toEqual([path, protectedNames.includes(path)])
    expect(protectedRows(name.split('/')[0]?.toUpperCase() ?? '')).toContainEqual(name.split('/'))
  },
)

test('the list is spelt as it is compared, without doubles, and what is watched is in it', () => {
  expect(protectedNames.map(spelt)).toEqual([...protectedNames])
  expect(new Set(protectedNames).size).toBe(protectedNames.length)
  expect(watchedNames.filter((name) => !protectedNames.includes(name))).toEqual([])
  for (const name of [
    '.husky',
    '.claude',
    '.cursor',
    '.codex',
    '.gemini',
    '.github/workflows',
    '.devcontainer',
    '.ssh',
    '.npmrc',
    '.bashrc',
  ])
    expect(protectedNames).toContain(name)
})

test('all of a .git, however git or a file system would spell it', () => {
  for (const path of ['.git', 'a/.git', '.git/HEAD', '.git/objects/x', 'hooks/.git/refs', '//a//.git//index'])
    expect(isProtectedName(path)).toBe(true)
  for (const name of [
    '.GIT',
    '.git.',
    '.git ',
    '.git . .',
    '.g\u200cit',
    '.gi\ufefft',
    '.git:x',
    '.git::$INDEX_ALLOCATION',
    '.git. :x',
    'git~1',
    'GIT~1',
  ])
    for (const path of [name, `${name}/config`, `a/${name}/HEAD`, `a\\${name}\\HEAD`])
      expect([path, isProtectedName(path)]).toEqual([path, true])
  for (const name of ['gitmod~1', 'GI7EBA~1', '.gitmodules:x']) expect(isProtectedName(name)).toBe(true)
  for (const path of ['hooks', 'git', 'x.git/HEAD', '.github/x', '.gitignore', 'git~2', 'a:.git', 'a~1', ':git'])
    expect([path, isProtectedName(path)]).toEqual([path, false])
})

test('folding leaves no slash that was not there, and drops what cannot be seen', () => {
  expect(folded('A/B')).toBe('a/b')
  expect(folded('a\u200cb/\uff0f c')).toBe('ab/ c')
  expect([folded('x./y'), folded('x. /y'), folded('..'), folded('...')]).toEqual(['x/y', 'x/y', '..', '...'])
})
