import { afterEach, beforeEach, expect, test } from 'bun:test'
import { mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openRotatingLog } from './rotating-log.ts'

const place = { folder: '' }
beforeEach(() => {
  place.folder = mkdtempSync(join(tmpdir(), 'braidclaw-log-'))
})
afterEach(() => rmSync(place.folder, { recursive: true }))

test('a full file moves on, the oldest goes, and no line is cut', () => {
  const path = join(place.folder, 'logs', 'a.log')
  const log = openRotatingLog({ path, maxBytes: 30, keep: 2 })
  for (let at = 0; at < 10; at++) log.write(`line number ${at}\n`)
  log.close()
  expect(readdirSync(join(place.folder, 'logs')).sort()).toEqual(['a.log', 'a.log.1', 'a.log.2'])
  expect(['a.log.2', 'a.log.1', 'a.log'].map((name) => readFileSync(join(place.folder, 'logs', name), 'utf8'))).toEqual([
    'line number 4\nline number 5\n',
    'line number 6\nline number 7\n',
    'line number 8\nline number 9\n',
  ])
  expect(statSync(path).mode & 0o777).toBe(0o600)
})

test('a line longer than a whole file is written whole', () => {
  const path = join(place.folder, 'a.log')
  const log = openRotatingLog({ path, maxBytes: 10 })
  log.write(`${'x'.repeat(50)}\n`)
  log.close()
  expect(readFileSync(path, 'utf8')).toHaveLength(51)
})

test('when another program moved the file away, the log goes on in a new one', () => {
  const path = join(place.folder, 'a.log')
  const log = openRotatingLog({ path })
  log.write('one\n')
  renameSync(path, `${path}.moved`)
  log.write('two\n')
  log.close()
  expect(readFileSync(path, 'utf8')).toBe('two\n')
})
