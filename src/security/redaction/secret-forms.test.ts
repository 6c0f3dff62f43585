import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { createRedactor, createStreamRedactor } from './redact.ts'
import { spansOf } from './secret-forms.ts'

const hidden = (secret: string, text: string) => {
  const redactor = createRedactor()
  redactor.register(secret)
  return redactor.text(text)
}

describe('a secret is found', () => {
  const odd = 'a b/c"d\\e!(x)*~\'ü>?'
  const hex = (text: string) => Array.from(new TextEncoder().encode(text), (byte) => byte.toString(16).padStart(2, '0')).join('')
  const ascii = (text: string, spell = (code: string) => code) =>
    text.replace(/[^ -~]/g, (char) => `\\u${spell(char.charCodeAt(0).toString(16).padStart(4, '0'))}`)
  const base64 = (text: string) => new TextEncoder().encode(text).toBase64()
  test.each<[string, (secret: string) => string]>([
    ['as it is', (secret) => secret],
    ['in JSON', (secret) => JSON.stringify(secret).slice(1, -1)],
    ['in JSON with slashes escaped', (secret) => JSON.stringify(secret).slice(1, -1).replaceAll('/', '\\/')],
    ['in JSON in JSON', (secret) => JSON.stringify(JSON.stringify(secret).slice(1, -1)).slice(1, -1)],
    ['in a URL', (secret) => encodeURIComponent(secret)],
    ['in a URL, in small letters', (secret) => encodeURIComponent(secret).replace(/%../g, (code) => code.toLowerCase())],
    ['in the path of a URL', (secret) => encodeURI(secret)],
    ['in a form', (secret) => new URLSearchParams({ a: secret }).toString().slice(2).replace('*', '%2A')],
    ['in JSON of ASCII alone', (secret) => ascii(JSON.stringify(secret).slice(1, -1))],
    ['in JSON of ASCII alone, in capitals', (secret) => ascii(JSON.stringify(secret).slice(1, -1), (code) => code.toUpperCase())],
    ['in JSON that may stand in HTML', (secret) => JSON.stringify(secret).slice(1, -1).replaceAll('>', '\\u003e')],
    ['in HTML', (secret) => secret.replaceAll('>', '&gt;')],
    ['in HTML, with quotes', (secret) => secret.replaceAll('>', '&gt;').replaceAll('"', '&quot;').replaceAll("'", '&#39;')],
    ['in HTML, with quotes by number', (secret) => secret.replaceAll('>', '&gt;').replaceAll('"', '&#34;').replaceAll("'", '&#39;')],
    [
      'in HTML, with quotes by hexadecimal number',
      (secret) => secret.replaceAll('>', '&gt;').replaceAll('"', '&quot;').replaceAll("'", '&#x27;'),
    ],
    ['in hexadecimal', (secret) => hex(secret)],
    ['in hexadecimal, in capitals', (secret) => hex(secret).toUpperCase()],
    ['in a URL, with every byte escaped', (secret) => hex(secret).replace(/../g, '%$&')],
    ['in a URL, with every byte escaped in capitals', (secret) => hex(secret).toUpperCase().replace(/../g, '%$&')],
  ])('%s', (_, spell) => expect(hidden(odd, `[${spell(odd)}]`)).toBe('[[redacted]]'))

  test('a plain one has no spellings that say nothing new', () => {
    const redactor = createRedactor()
    redactor.register('sk-plain_0123456789')
    expect(redactor.spellings('%').length).toBeLessThanOrEqual(8)
  })

  test.each(['>>>???ü>>>', 'plain-secret', '~~~~~~~~~'])('in base64 of either alphabet, wherever it starts: %s', (secret) => {
    for (const before of ['', 'x', 'xy']) {
      for (const spell of [base64, (text: string) => base64(text).replaceAll('+', '-').replaceAll('/', '_')])
        expect(hidden(secret, spell(`${before}${secret}tail`))).toContain('[redacted]')
    }
  })

  test('line by line when it has several, but not its frame nor what is short', () => {
    const lines = ['-----BEGIN KEY-----', '  abcdefghijklmnop', 'short', 'qrstuvwxyz0123456789', '-----END KEY-----']
    const secret = lines.join('\r\n')
    expect(hidden(secret, 'abcdefghijklmnop')).toBe('[redacted]')
    expect(hidden(secret, 'x qrstuvwxyz0123456789 y')).toBe('x [redacted] y')
    for (const text of ['short', '-----BEGIN KEY-----', '-----END KEY-----', 'abcdefghijklmno']) expect(hidden(secret, text)).toBe(text)
  })
})

test('nothing is known before anything is registered, and twice is once', () => {
  const redactor = createRedactor()
  expect(redactor.spellings('%')).toEqual([])
  expect([redactor.register('secret-value', 'one'), redactor.register('secret-value', 'two'), redactor.count()]).toEqual([true, true, 1])
  expect(redactor.text('secret-value')).toBe('[redacted:one]')
  expect(new Set(redactor.spellings('%').map(({ text }) => text)).size).toBe(redactor.spellings('%').length)
  expect(redactor.spellings('%').every(({ text }) => text.length >= 6)).toBe(true)
})

test('of two that begin together the longer counts', () => {
  const spellings = [
    { text: 'abc', label: 'short' },
    { text: 'abcdef', label: 'long' },
  ]
  expect(spansOf('abcdef', spellings)).toEqual([{ start: 0, end: 6, label: 'long' }])
})

test('what is nested too deeply is cut where that shows', () => {
  let deep: unknown = 'bottom'
  for (let level = 0; level < 201; level++) deep = [deep]
  expect(JSON.stringify(createRedactor().value(deep))).toContain('bottom')
  for (let level = 0; level < 9; level++) deep = [deep]
  expect(JSON.stringify(createRedactor().value(deep))).toContain('"[too deep]"')
})

test('no spelling is too short to be looked for, whatever the secret', () => {
  fc.assert(
    fc.property(
      fc.array(fc.oneof(fc.string({ minLength: 16, unit: 'binary' }), fc.base64String({ minLength: 6 })), { minLength: 1 }),
      (lines) => {
        const redactor = createRedactor()
        if (!redactor.register(lines.join('\n'))) return
        for (const { text } of redactor.spellings('%')) expect(redactor.text(text)).not.toBe(text)
      },
    ),
    { numRuns: 300 },
  )
})

test('a spelling with percent signs is found after texts without any, and in a stream', () => {
  const redactor = createRedactor()
  redactor.register('abcdefgh1')
  const escaped = '%61%62%63%64%65%66%67%68%31'
  expect(redactor.text('nothing in here')).toBe('nothing in here')
  expect(redactor.text(`x${escaped}y`)).toBe('x[redacted]y')
  const stream = createStreamRedactor(redactor)
  const out = [...`plain ${escaped} and ABC abcdefgh1`].map((char) => stream.push(char)).join('') + stream.flush()
  expect(out).toBe('plain [redacted] and ABC [redacted]')
})

test('what is plain JSON comes back as it is when there is no secret in it', () => {
  const redactor = createRedactor()
  const event = { type: 'text', parts: [{ text: 'sk-0123456789abcdef' }], 'sk-0123456789abcdef': 1 }
  expect(redactor.json(event)).toBe(event)
  redactor.register('sk-other-secret-value', 'KEY')
  expect(redactor.json(event)).toBe(event)
  redactor.register('sk-0123456789abcdef', 'KEY')
  expect(redactor.json(event)).toEqual({
    type: 'text',
    parts: [{ text: '[redacted:KEY]' }],
    '[redacted:KEY]': 1,
  } as unknown as typeof event)
  expect(redactor.json('x sk-0123456789abcdef')).toBe('x [redacted:KEY]')
  const quoted = createRedactor()
  quoted.register('a"b\\c\nd"e')
  expect(quoted.json({ at: ['a"b\\c\nd"e'] })).toEqual({ at: ['[redacted]'] })
})

test('in plain JSON every spelling is found that is found in a text, whatever JSON makes of it', () => {
  const secrets = [
    'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY',
    'pässwörd-1234',
    'a<b>&secret99',
    'he said "x" 12345',
    `a<"q">secret'99`,
    'a\\b\nc d e f',
  ]
  for (const secret of secrets) {
    const redactor = createRedactor()
    redactor.register(secret)
    for (const { text } of redactor.spellings('%')) {
      const event = { parts: [{ text: `see ${text} there` }], [text]: { input: [text] } }
      expect(redactor.json(event)).toEqual(redactor.value(event))
      expect(redactor.json(event)).not.toEqual(event)
    }
  }
})

test('what is no plain JSON after all is redacted too, or comes back', () => {
  const redactor = createRedactor()
  redactor.register('sk-0123456789abcdef')
  const circle: { text: string; self?: unknown } = { text: 'sk-0123456789abcdef' }
  circle.self = circle
  expect(redactor.json(circle)).toEqual({ text: '[redacted]', self: '[circular]' })
  expect(redactor.json(undefined)).toBeUndefined()
  expect(redactor.json({ big: 1n, none: undefined, text: 'fine' })).toEqual({ big: 1n, none: undefined, text: 'fine' })
})

test('of a secret of several lines each long one counts, but not the lines that only say what it is', () => {
  const [first, last] = ['MIIEvQIBADANBgkqhkiG9w0B', 'AQEFAASCBKcwggSjAgEAAoIB-----']
  const pem = ['-----BEGIN PRIVATE KEY-----', first, 'short line', last, '-----END PRIVATE KEY-----'].join('\n')
  for (const line of [first, last, `  ${first}`]) expect(hidden(pem, `<${line.trim()}>`)).toBe('<[redacted]>')
  for (const line of ['-----BEGIN PRIVATE KEY-----', 'short line']) expect(hidden(pem, line)).toBe(line)
  expect(hidden(pem.replaceAll('\n', '\r\n'), `<${first}>`)).toBe('<[redacted]>')
})

test.each([
  ['HTML', 'a&amp;b&lt;c&gt;d'],
  ['JSON in HTML', 'a\\u0026b\\u003cc\\u003ed'],
])('a secret of signs is found in %s', (_, text) => expect(hidden('a&b<c>d', `[${text}]`)).toBe('[[redacted]]'))
