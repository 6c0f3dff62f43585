import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { processorMs } from '../../test/support/processor-ms.ts'
import { parseEchoed, recoverEchoed } from './wire.ts'

const answer = (text: string) =>
  JSON.stringify({ content: [{ type: 'text', text }], stop_reason: 'end_turn', stop_sequence: null, usage: {} })
const textOf = (json: unknown) => Object(json).content?.[0]?.text

/**
 * Returns what `echo "$text"` prints under dash, by its manual: it expands these escapes, `\c` ends the text, any other backslash stays.
 */
function dashEcho(text: string): string {
  const codes: { readonly [code: string]: string } = { a: '\x07', b: '\b', f: '\f', n: '\n', r: '\r', t: '\t', v: '\v', '\\': '\\' }
  return `${text.replace(/\\c.*/s, '').replace(/\\([abfnrtv\\])/g, (_, code: string) => codes[code] ?? code)}\n`
}

/** A text that a real dash prints. */
function realEcho(text: string): string {
  return Bun.spawnSync(['dash', '-c', 'text=$(cat); echo "$text"'], { stdin: Buffer.from(text) }).stdout.toString()
}

describe('what is no JSON', () => {
  test.each(['', '<html>', '{"a":"b', '{"a":"x\ny', '["a\\"]x', '{"a":}'])('stays unknown: %j', (text) => {
    expect([parseEchoed(text), recoverEchoed(text)]).toEqual([undefined, undefined])
  })

  test('is known as such in a moment, also when it is long and full of quotes', () => {
    const long = answer('say \\"no\\"\n\n'.repeat(30_000))
    const began = processorMs()
    expect(recoverEchoed(dashEcho(long).slice(0, -30))).toBeUndefined()
    expect(processorMs() - began).toBeLessThan(2000)
  })
})

describe('an answer that echo expanded', () => {
  const texts = [
    'two\nlines',
    'a\ttab',
    'a paragraph\n\nand\n\n\nmore\n\n',
    'say "hi"\n',
    'printf("a\\n");\nexit',
    'C:\\new\\table\nand \\c, \\0, \\012',
    '$\\frac{a}{b} \\beta \\alpha$\n\\\\ \\\\\\',
    'a quote after a backslash \\" here\n',
    '{"a":"b\\n","c":["\\""]}\n',
    '😀 é \u0085 \u0000 \u001b[0m \b\f\r\v',
    `${'long "line" \\ \n\n'.repeat(5000)}`,
  ]

  test.each(texts)('says what the model said: %j', (text) => {
    expect(textOf(recoverEchoed(realEcho(answer(text))))).toBe(text)
    expect(textOf(parseEchoed(answer(text)))).toBe(text)
  })

  test.each(['the end \\', 'C:\\', 'say "x" \\', '{"a":["b"]} \\', '\\'])('with a backslash at its end: %j', (text) => {
    expect(textOf(recoverEchoed(realEcho(answer(text))))).toBe(text)
  })

  test('keeps escapes that no echo expands, and newlines between the members', () => {
    expect(parseEchoed('{\n\t"a": "x\ny\\u00e9",\n"b": [1,\n2]\n}\n')).toEqual({ a: 'x\nyé', b: [1, 2] })
  })

  test('is what the model said whenever a newline in it tells that it was expanded', () => {
    const part = fc.constantFrom('a', ' ', '\n', '\t', '"', '\\', 'n', 't', '0', '{', '}', ',', ':', '[', '😀', '\u0085')
    const text = fc.array(part, { maxLength: 20 }).map((parts) => `${parts.join('')}\nend`)
    fc.assert(
      fc.property(text, (text) => {
        expect(textOf(parseEchoed(dashEcho(answer(text))))).toBe(text)
      }),
      { numRuns: 2000 },
    )
  })
})

test('JSON that nothing happened to is read as it is, whatever stands in its strings', () => {
  fc.assert(
    fc.property(fc.json(), (json) => {
      expect(parseEchoed(json)).toEqual(JSON.parse(json))
    }),
  )
})
