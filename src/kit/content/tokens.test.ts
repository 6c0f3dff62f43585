import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { tokensOf } from './tokens.ts'

const bytesAToken = (text: string) => Buffer.byteLength(text) / tokensOf(text)

/** Texts that GPT-4, GPT-4o and Llama 3 were measured with, and the bytes for each of our tokens. */
test.each([
  ['prose', 'A turn is one run: the question, its replies and their results. It is included completely or not at all.', 3.2, 4],
  ['code', 'function sum(list: number[]): number {\n  return list.reduce((a, b) => a + b, 0)\n}\n', 2.5, 3.5],
  ['a list of paths', 'src/host/run/conversation.ts\nsrc/components/UserProfile/settings-panel.tsx\n', 3, 4],
  ['JSON', '{"name":"braidclaw","scripts":{"check":"bun scripts/check.ts"},"private":true}', 2.5, 3.5],
])('%s has about %d to %d bytes a token', (_, text, least, most) => {
  expect(bytesAToken(text.repeat(20))).toBeWithin(least, most)
})

test('encoded bytes are a token a byte, however they are encoded, wrapped or embedded', () => {
  const bytes = Buffer.from(Array.from({ length: 3_000 }, (_, n) => (n * 7919) % 251))
  const base64 = bytes.toString('base64')
  for (const text of [base64, bytes.toString('base64url'), bytes.toString('hex'), bytes.toString('hex').toUpperCase()])
    expect(tokensOf(text)).toBe(text.length)
  expect(tokensOf(base64.replace(/.{76}/g, '$&\n'))).toBeGreaterThanOrEqual(base64.length)
  expect(tokensOf(`key = "${base64}";`)).toBeGreaterThanOrEqual(base64.length)
  expect(tokensOf('0'.repeat(1_000))).toBe(1_000)
  expect(tokensOf('x'.repeat(1_000))).toBe(1_000)
  expect(tokensOf(Buffer.from('<svg xmlns=').toString('base64').repeat(9))).toBe(16 * 9)
})

test('a character of another script is at least a token, and an emoji two to three', () => {
  for (const text of ['東京は日本の首都', '안녕하세요', 'Привет', 'مرحبا', 'नमस्ते', '天地玄黄'])
    expect(tokensOf(text)).toBeGreaterThanOrEqual([...text].length)
  expect(tokensOf('😀'.repeat(100))).toBeWithin(200, 301)
})

test('no text counts less than a quarter of its bytes', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 200 }), (text) => {
      expect(tokensOf(text) * 4).toBeGreaterThanOrEqual(Buffer.byteLength(text))
    }),
  )
  expect(tokensOf('')).toBe(0)
})

test('the processor time is linear in the length', () => {
  const line = 'src/host/run/conversation.ts:12: const size = 4096; // 大きさ '
  const timeOf = (text: string) => {
    const start = process.cpuUsage()
    tokensOf(text)
    return process.cpuUsage(start).user
  }
  timeOf(line.repeat(1_000))
  // In pairs: a busy machine slows both of a pair, and a quadratic reader would take 256 times as long in each.
  for (const text of [line.repeat(1_000), 'a'.repeat(65_536), 'a/'.repeat(32_768)]) {
    const ratios = Array.from({ length: 9 }, () => timeOf(text.repeat(16)) / Math.max(50, timeOf(text)))
    expect(Math.min(...ratios)).toBeLessThan(64)
  }
})
