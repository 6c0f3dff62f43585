import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { compilePattern } from './operation.ts'

function matches(source: string, text: string): boolean {
  const compiled = compilePattern(source)
  if (!compiled.ok) throw new Error(compiled.message)
  return compiled.pattern.matches(text)
}

describe('a pattern', () => {
  test.each([
    ['^a*$', 'the end of it can be anything but $', 'abc', false],
    ['^[a-c]+$', 'a range', 'abccba', true],
    ['^[^a-c]+$', 'a negated range', 'xyz', true],
    ['^[^a-c]+$', 'a negated range', 'xaz', false],
    ['^a{2,3}$', 'a count', 'aaa', true],
    ['^a{2,3}$', 'a count', 'aaaa', false],
    ['^a{2,}b$', 'an open count', 'aaaaab', true],
    ['^(ab|cd)?e$', 'a choice', 'cde', true],
    ['^(ab|cd)?e$', 'a choice', 'abcde', false],
    ['^a\\.b$', 'an escaped sign', 'axb', false],
    ['^\\d+\\w$', 'classes', '12_', true],
    ['^[\\w.-]+$', 'a class in brackets', 'a-b.c_d', true],
    ['^.$', 'any character', '\u{1f600}', true],
    ['^$', 'nothing', '', true],
    ['^$', 'nothing', 'a', false],
    ['^a|b$', 'alternatives of the whole value', 'ax', false],
    ['^a|b$', 'alternatives of the whole value', 'xb', false],
    ['^a^b$', 'an anchor inside', 'ab', false],
    ['^[]$', 'no character', '', false],
    ['^a+?$', 'as few as possible, and still the whole value', 'aaa', true],
    ['^a{0003}$', 'a count', 'aaa', true],
  ])('%s: %s', (source, _, text, wanted) => expect(matches(source, text)).toBe(wanted))

  test.each([
    ['a+$', 'begins with ^'],
    ['^a+', 'ends with $'],
    ['^a+\\$', 'ends with $'],
    ['^(?=a)b$', 'need backtracking'],
    ['^(?<n>a)$', '(?:…) are not allowed'],
    ['^(a)\\1$', '"\\1" is not allowed'],
    ['^a**$', 'two repeats'],
    ['^[a$', 'ends too early'],
    ['^(a$', 'never closed'],
    ['^a)$', 'closes nothing'],
    ['^*$', 'repeats nothing'],
    ['^[z-a]$', 'lower character to a higher'],
    ['^a)|(b$', 'closes nothing'],
    ['^a{3,2}$', 'wrong way round'],
    ['^a{2000}$', 'at most 1000'],
    ['^a{x}$', 'followed by counts'],
    ['^((a{1000}){1000}){1000}$', 'too large'],
  ])('%s is refused: %s', (source, says) =>
    expect(compilePattern(source)).toMatchObject({ ok: false, message: expect.stringContaining(says) }),
  )

  test.each(['^(a+)+$', '^(a|a)*$', '^(a*)*$', '^(\\w+\\w+)+$', '^((a?){500}){2}$'])('%s takes no exponential time', (source) => {
    const since = performance.now()
    expect(matches(source, `${'a'.repeat(2_000)}!`)).toBe(false)
    expect(performance.now() - since).toBeLessThan(20_000)
  })

  test('property: it agrees with the regular expressions of the engine', () => {
    const leaf = fc.constantFrom('a', 'b', '[ab]', '[^a]', '.', '\\.', '\\d')
    const pattern = fc.letrec<{ node: string }>((tie) => ({
      node: fc.oneof(
        { maxDepth: 3 },
        leaf,
        fc.tuple(tie('node'), tie('node')).map(([one, two]) => one + two),
        fc.tuple(tie('node'), tie('node')).map(([one, two]) => `(${one}|${two})`),
        fc.tuple(tie('node'), fc.constantFrom('*', '+', '?', '{2}', '{1,2}', '{0,}')).map(([one, many]) => `(?:${one})${many}`),
      ),
    })).node
    const text = fc.string({ unit: fc.constantFrom('a', 'b', 'c', '1', '.'), maxLength: 8 })
    fc.assert(
      fc.property(pattern, text, (source, value) => matches(`^${source}$`, value) === new RegExp(`^(?:${source})$`, 'u').test(value)),
      { numRuns: 500 },
    )
  })
})
