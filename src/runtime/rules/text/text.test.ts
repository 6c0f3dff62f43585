import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { witness } from '../condition.ts'
import { parseGlob, parsePathGlob } from './glob.ts'
import { compile, PatternError } from './machine.ts'
import { parseRegex } from './regex.ts'

const regex = (source: string) => compile(parseRegex(source))
const glob = (source: string) => compile(parseGlob(source))
const path = (source: string, base?: string) => compile(parsePathGlob(source, base))

/** Generates small patterns with every allowed construct, over few letters so that they often match. */
const patterns = fc.letrec<{ any: string; one: string }>((tie) => ({
  one: fc.oneof(
    fc.constantFrom(
      'a',
      'b',
      '-',
      '.',
      '^',
      '$',
      '\\b',
      '\\B',
      '\\w',
      '\\W',
      '\\d',
      '\\s',
      '\\S',
      '\\n',
      '\\x61',
      '\\u0062',
      '[ab]',
      '[^a]',
      '[a-c1]',
      '[^\\d-]',
      '[\\W_]',
      '[]',
      '[^]',
    ),
    tie('any').map((inner) => `(${inner})`),
    tie('any').map((inner) => `(?:${inner})`),
  ),
  any: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    tie('one'),
    fc
      .tuple(
        fc.oneof(
          fc.constantFrom('a', '[ab]', '.', '\\w'),
          tie('any').map((inner) => `(${inner})`),
        ),
        fc.constantFrom('*', '+', '?', '{2}', '{1,2}', '{0,}', '*?', '??'),
      )
      .map((two) => two.join('')),
    fc.tuple(tie('any'), tie('any')).map((two) => two.join('')),
    fc.tuple(tie('any'), tie('any')).map((two) => two.join('|')),
  ),
})).any
const texts = fc.string({ unit: fc.constantFrom('a', 'b', 'c', '1', '-', ' ', '\n', '_'), maxLength: 8 })

describe('a regex', () => {
  test('matches exactly what the language itself matches', () => {
    fc.assert(
      fc.property(patterns, texts, (source, text) => {
        expect({ source, text, matches: regex(source)(text) }).toEqual({ source, text, matches: new RegExp(source, 'su').test(text) })
      }),
      { numRuns: 4000 },
    )
  })

  test.each([
    ['(a+)+$', 'a'.repeat(50_000)],
    ['(a|a)*b', 'a'.repeat(50_000)],
    ['a*a*a*a*a*b', 'a'.repeat(50_000)],
    ['(.*)*x', 'y'.repeat(50_000)],
    ['((a{0,9}){0,9})b', 'a'.repeat(10_000)],
    ['(((){999}){999}){999}', 'a'],
  ])('takes time in proportion to the text: %s', (source, text) => {
    expect(regex(source)(`${text}!`)).toBe(source.startsWith('((('))
  })

  test('means the very ends by ^ and $, and any character by the dot: a line break hides nothing', () => {
    expect(regex('^ls$')('ls\n')).toBe(false)
    expect(regex('^rm')('ls\nrm')).toBe(false)
    expect(regex('curl.*evil')('curl \\\n evil')).toBe(true)
    expect(regex('^.$')('😀')).toBe(true)
  })

  test.each([
    ['(?=a)', 'backtracking'],
    ['(?!a)', 'backtracking'],
    ['(?<n>a)', 'backtracking'],
    ['(a)\\1', '"\\1" is not allowed'],
    ['a**', 'two repeats'],
    ['*a', 'repeats nothing'],
    ['(a', 'never closed'],
    ['a)', 'closes nothing'],
    ['[b-a]', 'lower character'],
    ['[a', 'ends too early'],
    ['a{3,1}', 'wrong way round'],
    ['a{x}', 'counts'],
    ['a{', 'ends too early'],
    ['\\p{L}', '"\\p" is not allowed'],
    ['\\xzz', 'not a character code'],
    ['(a{99}){99}', 'too large'],
    ['('.repeat(60), 'deep'],
    ['a'.repeat(1001), 'at most 1000'],
  ])('%s is refused: %s', (source, why) => {
    expect(() => regex(source)).toThrow(PatternError)
    expect(() => regex(source)).toThrow(why)
  })
})

test.each([
  ['^a{0012}$', 12],
  ['^a{0003}$', 3],
  ['^a{03,0005}$', 5],
  ['^a{0,001}$', 1],
  ['^a{997}$', 997],
])('%s counts in decimal, with and without zeros in front', (source, count) => {
  expect([count, count + 1].map((length) => regex(source)('a'.repeat(length)))).toEqual([true, false])
})

test.each([
  ['a{1001}', '1001 repeats are too many; at most 1000 are allowed'],
  ['a{1,99999999999999999999}', '99999999999999999999 repeats are too many'],
  [`a{0,${'9'.repeat(400)}}`, 'repeats are too many'],
  ['a{1000}', 'the pattern is too large (more than 1000 steps once its repeats are spelled out)'],
  ['a{0x1}', 'counts'],
  ['a{,3}', 'counts'],
])('%s is refused for what it is: %s', (source, why) => {
  expect(() => regex(source)).toThrow(why)
})

describe('a glob', () => {
  test.each([
    ['git push*', 'git push origin feature/x', true],
    ['git push*', 'sudo git push', false],
    ['https://*.example.com/*', 'https://a.example.com/x/y', true],
    ['https://*.example.com/*', 'https://example.com.evil/x', false],
    ['mcp_*', 'mcp_files', true],
    ['?', 'ab', false],
    ['{a,b{c,d}}', 'bd', true],
    ['{a,b}', 'c', false],
    ['[!a-c]x', 'dx', true],
    ['[a-c]x', 'dx', false],
    ['a\\*', 'a*', true],
    ['a\\*', 'ab', false],
    ['a.c', 'abc', false],
    ['*', 'line\nbreak', true],
  ])('%s against %s: %p', (source, text, matches) => {
    expect(glob(source)(text)).toBe(matches)
  })

  test.each([
    ['**/.env', '.env', true],
    ['**/.env', '/w/a/.env', true],
    ['**/.env', '/w/a/x.env', false],
    ['src/*.ts', 'src/a.ts', true],
    ['src/*.ts', 'src/a/b.ts', false],
    ['src/**', 'src/a/b.ts', true],
    ['src/**', 'srcs/a', false],
    ['src/**/b.ts', 'src/b.ts', true],
    ['src/**/b.ts', 'src/x/y/b.ts', true],
    ['a?c', 'a/c', false],
  ])('in a path %s against %s: %p', (source, text, matches) => {
    expect(path(source)(text)).toBe(matches)
  })

  test('has its base as plain text', () => {
    expect(path('*.ts', '/w*/')('/wx/a.ts')).toBe(false)
    expect(path('*.ts', '/w*/')('/w*/a.ts')).toBe(true)
  })

  test.each(['', '{a', '[a', '[b-a]', '[a-]', '{'.repeat(20), 'x'.repeat(1001)])('%s is refused', (source) => {
    expect(() => glob(source)).toThrow(PatternError)
  })
})

test('a witness is matched by its pattern', () => {
  for (const source of ['git\\s+push.*(--force|-f)', '[^a-z]+', 'a{3}|b', '\\d\\D', '(x|yy)*z', '\\bgit\\b.*\\bpush\\b.*(-f|\\s\\+)'])
    expect(regex(source)(witness(parseRegex(source)))).toBe(true)
  for (const source of ['**/.env*', 'src/{a,b}/*.ts', '[!a]?']) expect(path(source)(witness(parsePathGlob(source)))).toBe(true)
})
