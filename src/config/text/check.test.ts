import { expect, test } from 'bun:test'
import { nearest } from '../../kit/text.ts'
import { expand, expandPath } from './check.ts'

const around = { home: '/h', userHome: '/home/ann', env: { A: 'x', B: '$A', EMPTY: '', constructor: undefined } }
const path = (text: string) => {
  const result = expandPath(text, around)
  return result.ok ? result.text : `! ${result.why}`
}

test('a variable that is not set, or is empty, is an error and not nothing', () => {
  for (const text of ['$NOPE', '/a/$EMPTY/b', '$toString', '$constructor']) expect(path(text)).toStartWith('! the environment variable')
})

test('shell forms beyond a plain name are refused', () => {
  for (const inner of ['A:-x', '', 'A B', '!A', '1']) expect(path(`/$\{${inner}}`)).toContain("only a variable's name")
  expect(path('/${A')).toContain('never closed')
})

test('all that is missing is named at once', () => {
  expect(path('/$N1/$N2')).toMatch(/N1.*N2/)
})

test('names, braces, dollars; nothing is expanded twice', () => {
  expect(path(`/$A/$\{A}b/$$A/$5/a$`)).toBe('/x/xb/$A/$5/a$')
  expect(path('/$B')).toBe('/$A')
  expect(expand('~/x', around)).toEqual({ ok: true, text: '~/x' })
})

test('a tilde means something only at the start, and only alone', () => {
  expect([path('~'), path('~/a'), path('/~/a'), path('a~')]).toEqual(['/home/ann', '/home/ann/a', '/~/a', 'a~'])
  expect(path('~root/x')).toContain('not supported')
})

test('a tilde that comes out of a variable is only a sign', () => {
  expect(expandPath('$T/x', { ...around, env: { T: '~' } })).toEqual({ ok: true, text: '~/x' })
})

test('~/.braidclaw is our home wherever that is, and nothing that only begins like it', () => {
  expect([path('~/.braidclaw'), path('~/.braidclaw/m'), path('~/.braidclaws')]).toEqual(['/h', '/h/m', '/home/ann/.braidclaws'])
})

test('a suggestion comes only for words that are near', () => {
  const known = ['autonomy', 'workspace_only', 'model']
  expect(['autonmy', 'atuonomy', 'WorkspaceOnly', 'workspace-only', 'modl', 'x', 'zebra', ''].map((word) => nearest(word, known))).toEqual([
    'autonomy',
    'autonomy',
    'workspace_only',
    'workspace_only',
    'model',
    undefined,
    undefined,
    undefined,
  ])
  expect(nearest('a'.repeat(1_000_000), known)).toBeUndefined()
})
