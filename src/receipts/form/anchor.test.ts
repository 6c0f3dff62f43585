import { expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { required } from '../fixture.ts'
import { readHead, writeHead } from '../head.ts'
import { anchorLine, headLine, isSealed, parseAnchor, sealAnchor } from './anchor.ts'

const key = new Uint8Array(32).fill(7)
const anchor = sealAnchor(key, { logId: 'ab'.repeat(16), count: 1234, head: 'cd'.repeat(32) })

test('text that is no anchor is not taken for one', () => {
  const line = headLine(anchor)
  const wrong = [
    '',
    'bc1:',
    line.slice(4),
    line.replace('bc1', 'bc2'),
    line.replace(':1234:', ':01234:'),
    line.replace(':1234:', ':-1:'),
    line.replace('ab', 'AB'),
  ]
  for (const text of [...wrong, `${line}0`, line.slice(0, -50), `${line} x`, `x ${line}`, `${line}\n${line}`])
    expect(parseAnchor(text)).toBeUndefined()
})

test('an anchor survives being written down, short or in full', () => {
  expect(parseAnchor(` ${headLine(anchor)}\r\n`)).toEqual(anchor)
  const short = required(parseAnchor(anchorLine(anchor)))
  expect(short).toEqual({ ...anchor, mac: anchor.mac.slice(0, 16) })
  expect(anchorLine(anchor).length).toBeLessThan(140)
})

test('the seal breaks with any member, another key, or too little of it', () => {
  expect(isSealed(key, anchor)).toBe(true)
  expect(isSealed(key, required(parseAnchor(anchorLine(anchor))))).toBe(true)
  expect(isSealed(key, { ...anchor, count: 1235 })).toBe(false)
  expect(isSealed(key, { ...anchor, logId: 'ac'.repeat(16) })).toBe(false)
  expect(isSealed(key, { ...anchor, head: 'ce'.repeat(32) })).toBe(false)
  expect(isSealed(key, { ...anchor, mac: anchor.mac.slice(0, 15) })).toBe(false)
  expect(isSealed(key, { ...anchor, mac: '' })).toBe(false)
  expect(isSealed(new Uint8Array(32), anchor)).toBe(false)
})

test('the head file is written over, also by a shorter line, and read back', () => {
  const folder = mkdtempSync(join(tmpdir(), 'braidclaw-head-'))
  try {
    const path = join(folder, 'receipts.head')
    expect(readHead(path)).toEqual({ state: 'missing' })
    writeHead(path, anchor)
    expect(statSync(path).mode & 0o777).toBe(0o600)
    const shorter = sealAnchor(key, { ...anchor, count: 0 })
    writeHead(path, shorter)
    expect(readFileSync(path, 'latin1')).toBe(`${headLine(shorter)}\n`)
    expect(readHead(path)).toEqual({ state: 'read', anchor: shorter })
    writeFileSync(path, '\n')
    expect(readHead(path)).toEqual({ state: 'damaged' })
    writeFileSync(path, '')
    expect(readHead(path)).toEqual({ state: 'missing' })
    expect(() => readHead(folder)).toThrow()
  } finally {
    rmSync(folder, { recursive: true })
  }
})
