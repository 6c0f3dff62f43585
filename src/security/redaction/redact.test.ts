import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { createRedactor, createStreamRedactor } from './redact.ts'

function redactorOf(...secrets: string[]) {
  const redactor = createRedactor()
  for (const [at, secret] of secrets.entries()) redactor.register(secret, `s${at}`)
  return redactor
}

const hard = 'p"a/s\\s w+ö&rd\n=1'

describe('one secret in every spelling', () => {
  const { text } = redactorOf(hard)
  test.each([
    ['raw', hard],
    ['JSON', JSON.stringify(hard)],
    ['JSON with escaped slashes', JSON.stringify(hard).replaceAll('/', '\\/')],
    ['JSON in JSON', JSON.stringify(JSON.stringify(hard))],
    ['URL component', encodeURIComponent(hard)],
    ['URL component, lower case', encodeURIComponent(hard).replace(/%[\dA-F]{2}/g, (code) => code.toLowerCase())],
    ['form', new URLSearchParams({ k: hard }).toString()],
    ['whole URL', encodeURI(hard)],
  ])('%s', (_kind, spelt) => {
    const out = text(`before ${spelt} after`)
    expect(out).toContain('[redacted:s0]')
    expect(out).not.toContain('rd')
    expect(out.startsWith('before ') && out.endsWith(' after')).toBe(true)
  })
})

test('base64 of any text around a secret shows no more of it than the border characters', () => {
  const secret = 'correct horse battery staple'
  const { text } = redactorOf(secret)
  fc.assert(
    fc.property(
      fc.string({ maxLength: 9 }),
      fc.string({ maxLength: 9 }),
      fc.constantFrom<'base64' | 'base64url'>('base64', 'base64url'),
      (before, after, kind) => {
        const shown = text(Buffer.from(`${before}${secret}${after}`).toString(kind))
        expect(shown).toContain('[redacted:s0]')
        for (const piece of shown.split('[redacted:s0]')) expect(Buffer.from(piece, kind).toString()).not.toContain('orrect')
        expect(shown.replace('[redacted:s0]', '').length).toBeLessThanOrEqual(
          Math.ceil((Buffer.byteLength(before + after) + 2) / 3) * 4 + 6,
        )
      },
    ),
  )
})

test('overlapping secrets leave no remainder', () => {
  const { text } = redactorOf('abcdefgh', 'efghijkl', 'abcdef')
  expect(text('-abcdefghijkl-')).toBe('-[redacted:s0]-')
  expect(text('-abcdef-efghijkl-')).toBe('-[redacted:s2]-[redacted:s1]-')
})

test('the lines of a key are secret one by one', () => {
  const { text } = redactorOf(
    '-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0B\nAQEFAASCBKcwggSjAgEAAoIB\n-----END PRIVATE KEY-----\n',
  )
  expect(text('head: MIIEvQIBADANBgkqhkiG9w0B!')).toBe('head: [redacted:s0]!')
  expect(text('-----BEGIN PRIVATE KEY-----')).toBe('-----BEGIN PRIVATE KEY-----')
})

test('a value under six characters is not redacted, and registering it says so', () => {
  const redactor = createRedactor()
  expect(redactor.register(' 12345 ')).toBe(false)
  expect(redactor.text('12345')).toBe('12345')
  expect(redactor.register('123456')).toBe(true)
  expect(redactor.register('123456', 'again')).toBe(true)
  expect(redactor.count()).toBe(1)
  expect(redactor.text('123456 12345')).toBe('[redacted] 12345')
})

describe('values', () => {
  const { value } = redactorOf('hunter22')
  test('strings and keys at any depth, everything else untouched', () => {
    const shown: unknown = value({ a: ['x hunter22', 1, null, true], hunter22: { b: 'y' } })
    expect(shown).toEqual({ a: ['x [redacted:s0]', 1, null, true], '[redacted:s0]': { b: 'y' } })
  })
  test('errors with message, stack and cause; dates; cycles', () => {
    const error = new Error('bad hunter22', { cause: { header: 'hunter22' } })
    expect(JSON.stringify(value({ error }))).not.toContain('hunter22')
    expect(JSON.stringify(value({ error }))).toContain('bad [redacted:s0]')
    expect(JSON.stringify(value({ at: new Date(0) }))).toBe('{"at":"1970-01-01T00:00:00.000Z"}')
    expect(JSON.stringify(value({ toJSON: 'hunter22' }))).toBe('{"toJSON":"[redacted:s0]"}')
    const loop: { self?: unknown } = {}
    loop.self = loop
    expect(JSON.stringify(value(loop))).toBe('{"self":"[circular]"}')
  })
})

const alphabet = fc.constantFrom('a', 'b', '"')
const secrets = fc.array(
  fc.array(alphabet, { minLength: 6, maxLength: 9 }).map((chars) => chars.join('')),
  { minLength: 1, maxLength: 3 },
)
const pieces = fc.array(
  fc.array(alphabet, { maxLength: 14 }).map((chars) => chars.join('')),
  { maxLength: 8 },
)

test('no registered value survives in any text', () => {
  fc.assert(
    fc.property(secrets, pieces, (values, texts) => {
      const out = redactorOf(...values).text([...texts, ...values].join(''))
      for (const value of values) expect(out).not.toContain(value)
    }),
    { numRuns: 1000 },
  )
})

test('a stream shows exactly what the whole text would, wherever it is cut', () => {
  fc.assert(
    fc.property(secrets, pieces, fc.array(fc.nat(20), { maxLength: 12 }), (values, texts, cuts) => {
      const redactor = redactorOf(...values)
      const whole = [...texts, values[0], ...texts].join('')
      const stream = createStreamRedactor(redactor)
      let [at, out] = [0, '']
      for (const size of cuts) {
        out += stream.push(whole.slice(at, at + size))
        for (const value of values) expect(out).not.toContain(value)
        at += size
      }
      expect(out + stream.push(whole.slice(at)) + stream.flush()).toBe(redactor.text(whole))
    }),
    { numRuns: 2000 },
  )
})

test('a stream holds back only what may still become a secret', () => {
  const stream = createStreamRedactor(redactorOf('hunter22'))
  expect(stream.push('hello hun')).toBe('hello ')
  expect(stream.push('gry')).toBe('hungry')
  expect(stream.push(' hunter2')).toBe(' ')
  expect(stream.push('2!')).toBe('[redacted:s0]!')
  expect(stream.push('hunt') + stream.flush()).toBe('hunt')
  expect(createStreamRedactor(createRedactor()).push('y')).toBe('y')
})

test('a secret that begins a longer one is not lost while the longer one is awaited', () => {
  const stream = createStreamRedactor(redactorOf('abcdef', 'abcdefgh'))
  expect([stream.push('-abcdef'), stream.push('x'), stream.push('abcdefgh')]).toEqual(['-', '[redacted:s0]x', '[redacted:s1]'])
})

test('a secret registered during a stream counts from the next push', () => {
  const redactor = createRedactor()
  const stream = createStreamRedactor(redactor)
  expect(stream.push('hunter22 ')).toBe('hunter22 ')
  redactor.register('hunter22')
  expect(stream.push('hunter22 ')).toBe('[redacted] ')
})

test('any spelling, cut anywhere in two, never gets out in part', () => {
  const redactor = redactorOf(hard, 'correct horse')
  for (const { text, label } of redactor.spellings('%'))
    for (let at = 1; at < text.length; at++) {
      const stream = createStreamRedactor(redactor)
      const first = stream.push(`- ${text.slice(0, at)}`)
      expect(first).toBe('- ')
      expect(first + stream.push(`${text.slice(at)} -`) + stream.flush()).toBe(`- ${label} -`)
    }
})

test('an endless run that always overlaps itself is not hoarded', () => {
  const stream = createStreamRedactor(redactorOf('aaaaaa'))
  const out = Array.from({ length: 500 }, () => stream.push('a'.repeat(10))).join('') + stream.flush()
  expect(out).toBe('[redacted:s0]')
})
