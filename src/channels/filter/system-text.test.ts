import { afterEach, beforeEach, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemTextOf } from './system-text.ts'

let cwd = ''
beforeEach(() => {
  cwd = mkdtempSync(join(tmpdir(), 'braidclaw-system-'))
})
afterEach(() => rmSync(cwd, { recursive: true, force: true }))

const read = (given: string) => systemTextOf(given, { cwd, home: cwd })

test.each([
  ['soul.md', 'looks like a file, and there is none'],
  ['./prompt', 'looks like a file'],
  ['../up.txt', 'looks like a file'],
  ['/nope/x', 'the folder /nope does not exist'],
  ['~/soul', 'looks like a file'],
  ['./', 'is a folder'],
])('%j is a mistake while nothing is there', (given, says) => {
  expect(() => read(given)).toThrow(says)
})

test('a near name is offered; bytes that are no text are refused', () => {
  writeFileSync(join(cwd, 'shout.md'), 'SHOUT')
  expect(() => read('shuot.md')).toThrow('did you mean "shout.md"?')
  writeFileSync(join(cwd, 'bad.md'), new Uint8Array([0xff, 0xfe]))
  expect(() => read('bad.md')).toThrow('is not valid UTF-8')
})

test.each(['be brief', 'and/or', 'Summarise a/b.md please', 'shout', '', 'soul.md ', 'line\nfile.md', `x${'y'.repeat(5000)}`])(
  '%j is the text itself',
  (given) => {
    expect(read(given)).toEqual({ text: given })
  },
)

test('a file that is there is read, whatever it looks like, from here or from home', () => {
  for (const name of ['shout', 'soul.md', 'with space']) {
    writeFileSync(join(cwd, name), `from ${name}\n`)
    expect(read(name)).toEqual({ text: `from ${name}\n`, file: join(cwd, name) })
    expect(read(`~/${name}`).file).toBe(join(cwd, name))
  }
  mkdirSync(join(cwd, 'folder'))
  expect(read('folder')).toEqual({ text: 'folder' })
})
