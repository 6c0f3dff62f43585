import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { differsOnlyIn, setInToml, unsetInToml } from './edit-toml.ts'

const set = (before: string, key: string, value: string) => {
  const after = setInToml(before, key, value)
  return differsOnlyIn(key, { before, after, value }) ? after : undefined
}
const unset = (before: string, key: string) => {
  const after = unsetInToml(before, key)
  return differsOnlyIn(key, { before, after }) ? after : undefined
}

test('what only looks like the place is refused: a comment within a text, a table in braces, a list of tables', () => {
  expect(set('[a]\nt = """\n# k = 1\n"""\n', 'a.k', '2')).toBeUndefined()
  expect(set('a = { x = 1 }\n', 'a.k', '2')).toBeUndefined()
  expect(unset('a = { x = 1, k = 2 }\n', 'a.k')).toBeUndefined()
  expect(set('[[a]]\nx = 1\n', 'a.k', '2')).toBeUndefined()
})

test.each([
  ['', 'a.k', '1', '[a]\nk = 1\n'],
  ['x = 1', 'a.k', '1', 'x = 1\n\n[a]\nk = 1\n'],
  ['x = 1\n', 'k', '"v"', 'k = "v"\nx = 1\n'],
  ['\ufeffx = 1\n', 'k', '2', '\ufeffk = 2\nx = 1\n'],
  ['[a]', 'a.k', '1', '[a]\nk = 1\n'],
  ['[a]\r\n# k = 3\r\nx = 1\r\n', 'a.k', '2', '[a]\r\n# k = 3\r\nk = 2\r\nx = 1\r\n'],
  ['a.x = 1\n[b]\n', 'a.k', '2', 'a.k = 2\na.x = 1\n[b]\n'],
  ['[a]\nk = [ # one\n  1,\n] # end\nx = 1\n', 'a.k', '[2]', '[a]\nk = [2] # end\nx = 1\n'],
  ['a = { k = "}" , x = 1 }\n', 'a.k', '2', 'a = { k = 2 , x = 1 }\n'],
  ['[a]\nx = 1\n[b]\n# k = 1\n', 'a.k', '2', '[a]\nk = 2\nx = 1\n[b]\n# k = 1\n'],
])('%j: %s = %s', (before, key, value, after) => {
  expect(set(before, key, value)).toBe(after)
})

test.each([
  ['[a]\nk = """\n1\n""" # why\nx = 1\n', 'a.k', '[a]\n# why\nx = 1\n'],
  ['x = 1\nk = 2', 'k', 'x = 1\n'],
  ['x = 1\n', 'k', 'x = 1\n'],
])('%j without %s', (before, key, after) => {
  expect(unset(before, key)).toBe(after)
})

test('in any file a set value is read back and all else stays; removed again, the other values are those of before', () => {
  const name = fc.constantFrom('a', 'b', 'c')
  const value = fc.constantFrom('1', '"#"', '[ 1, # c\n 2 ]', "'''\n[x]\n'''", '{ z = 1 }')
  const line = fc.oneof(
    name.map((key) => `# ${key} = 1`),
    fc.tuple(name, value).map(([key, is]) => `${key} = ${is} # why`),
    name.map((key) => `[${key}x]`),
    fc.constant(''),
  )
  fc.assert(
    fc.property(fc.array(line, { maxLength: 12 }), fc.constantFrom('a', 'ax.b', 'bx.c', 'new.a'), (lines, key) => {
      const before = lines.join('\n')
      fc.pre(differsOnlyIn('none', { before, after: before }))
      const after = setInToml(before, key, '42')
      expect(differsOnlyIn(key, { before, after, value: '42' })).toBe(true)
      expect(differsOnlyIn(key, { before, after: unsetInToml(after, key) })).toBe(true)
    }),
  )
})
