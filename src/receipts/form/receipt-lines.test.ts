import { afterAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { type LogLine, readLines } from './receipt-lines.ts'

const folder = mkdtempSync(join(tmpdir(), 'braidclaw-lines-'))
const path = join(folder, 'log')
afterAll(() => rmSync(folder, { recursive: true }))

function read(content: string | Uint8Array, from?: number): LogLine[] {
  writeFileSync(path, content)
  return [...readLines(path, from)]
}

test('a missing file and a link are errors, not empty logs', () => {
  expect(() => [...readLines(join(folder, 'none'))]).toThrow('ENOENT')
  writeFileSync(path, 'a\n')
  symlinkSync(path, join(folder, 'link'))
  expect(() => [...readLines(join(folder, 'link'))]).toThrow()
})

test('lines come whole, with their bytes, and the torn one last', () => {
  expect(read('')).toEqual([])
  expect(read('ä\n\nb')).toEqual([
    { text: 'ä', bytes: 3, torn: false },
    { text: '', bytes: 1, torn: false },
    { text: 'b', bytes: 1, torn: true },
  ])
  expect(read('one\ntwo\n', 4)).toEqual([{ text: 'two', bytes: 4, torn: false }])
})

test('only the line with bytes that are no UTF-8 is unreadable', () => {
  const found = read(Buffer.concat([Buffer.from('good\n'), Buffer.from([0x61, 0xff, 0x0a]), Buffer.from('fine\n')]))
  expect(found.map(({ text }) => text)).toEqual(['good', undefined, 'fine'])
})

test('a byte order mark is not swallowed', () => {
  expect(read('\ufeffa\n')[0]?.text).toBe('\ufeffa')
})

test('whatever the sizes, the pieces add up to the file', () => {
  const long = fc
    .tuple(fc.integer({ min: 0, max: 700_000 }), fc.constantFrom('x', 'é', '🦆'))
    .map(([size, unit]) => unit.repeat(size / Buffer.byteLength(unit)))
  fc.assert(
    fc.property(fc.array(long, { maxLength: 6 }), fc.boolean(), (texts, ended) => {
      const content = texts.join('\n') + (ended ? '\n' : '')
      const lines = read(content)
      expect(lines.map(({ text, torn }) => `${text}${torn ? '' : '\n'}`).join('')).toBe(content)
      expect(lines.reduce((sum, { bytes }) => sum + bytes, 0)).toBe(Buffer.byteLength(content))
    }),
    { numRuns: 15 },
  )
})

test('a line of more than a megabyte is given up, at any place', () => {
  const huge = 'x'.repeat(1 << 20)
  expect(read(`a\n${huge}\nb\n`).map(({ text }) => text)).toEqual(['a', undefined, 'b'])
  expect(read(`${huge.repeat(4)}\nb\n`).map(({ text }) => text)).toEqual([undefined])
})
