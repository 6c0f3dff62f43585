/** The seed's session file. */

import { afterEach, expect, test } from 'bun:test'
import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openSessionLog } from './session-log.ts'

const folders: string[] = []
const folder = () => {
  const made = mkdtempSync(join(tmpdir(), 'sessions-'))
  folders.push(made)
  return made
}
afterEach(() => {
  for (const each of folders.splice(0)) rmSync(each, { recursive: true, force: true })
})

/** The example of the seed. */
const line = { timestamp: '2026-04-06T10:00:00Z', task: 'Check jail status', skill: 'jail-status', outcome: 'running', tokens_used: 420 }
const text = '{"timestamp":"2026-04-06T10:00:00Z","task":"Check jail status","skill":"jail-status","outcome":"running","tokens_used":420}\n'

test('a line has the fields of the seed in its order', () => {
  const at = folder()
  const { tokens_used, outcome, skill, task, timestamp } = line
  openSessionLog(join(at, 'deep'), 'sysadmin').append({ tokens_used, outcome, skill, task, timestamp })
  expect(readFileSync(join(at, 'deep', 'sysadmin.jsonl'), 'utf8')).toBe(text)
})

test('half a line that a crash left is removed before the next one', () => {
  const at = folder()
  writeFileSync(join(at, 'a.jsonl'), `${text}{"timestamp":"2026-04-0`)
  const log = openSessionLog(at, 'a')
  expect(log.last()).toEqual(line)
  log.append(line)
  expect(readFileSync(join(at, 'a.jsonl'), 'utf8')).toBe(text + text)
})

test('a whole line that only lacks its newline is kept', () => {
  const at = folder()
  writeFileSync(join(at, 'a.jsonl'), text.trim())
  openSessionLog(at, 'a').append(line)
  expect(readFileSync(join(at, 'a.jsonl'), 'utf8')).toBe(text + text)
})

test('the last session is the last line that can be read', () => {
  const at = folder()
  expect(openSessionLog(at, 'a').last()).toBeUndefined()
  appendFileSync(join(at, 'a.jsonl'), `${text.replace('420', '1')}${text.replace('420', '2')}not json\n{"task":1}\n`)
  expect(openSessionLog(at, 'a').last()?.tokens_used).toBe(2)
})

test('a hostile title stays one line', () => {
  const at = folder()
  openSessionLog(at, 'a').append({ ...line, task: 'x\n{"timestamp":"now"}\u001b[2J' })
  expect(readFileSync(join(at, 'a.jsonl'), 'utf8').split('\n')).toHaveLength(2)
  expect(openSessionLog(at, 'a').last()?.task).toContain('now')
})
