import { expect, test } from 'bun:test'
import * as fc from 'fast-check'
import { expandBrace } from './pieces.ts'

test.each([
  ['{a,b}', ['a', 'b']],
  ['{a,}', ['a', '']],
  ['{1..3}', ['1', '2', '3']],
  ['{3..1}', ['3', '2', '1']],
  ['{01..03}', ['01', '02', '03']],
  ['{-1..1}', ['-1', '0', '1']],
  ['{1..9..4}', ['1', '5', '9']],
  ['{a..c}', ['a', 'b', 'c']],
  ['{a,b{c,d}e}', ['a', 'bce', 'bde']],
  ['{a,{1..2}}', ['a', '1', '2']],
])('%s', (text, words) => expect(expandBrace(text)).toEqual(words))

test.each(['{a}', '{}', '{$x,b}', '{a b,c}', '{1..999999999}', '{a,b}{c,d}x', "{'a',b}", '{a..3}'])('%s is left alone', (text) => {
  expect(expandBrace(text)).toBeUndefined()
})

test('as bash does it', () => {
  const item = fc.constantFrom('a', '', 'b1', '{x,y}', '{1..3}', '{c..a}', '-', '{p,{q,r}}', '{02..10..4}')
  const texts = fc.sample(
    fc.array(item, { minLength: 2, maxLength: 4 }).map((items) => `{${items.join(',')}}`),
    { numRuns: 60, seed: 7 },
  )
  const script = texts.map((text) => `printf '%s|' a${text}z; echo`).join('\n')
  const lines = Bun.spawnSync(['bash', '--norc', '-c', script]).stdout.toString().split('\n')
  expect(
    texts.map((text) =>
      expandBrace(text)
        ?.map((word) => `a${word}z|`)
        .join(''),
    ),
  ).toEqual(lines.slice(0, texts.length))
})
