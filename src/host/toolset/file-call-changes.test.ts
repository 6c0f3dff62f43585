import { afterEach, beforeEach, expect, test } from 'bun:test'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openWorkspace } from '../../workspace/workspace.ts'
import { setLines, unfolded } from '../changes/change-lines.ts'
import { changesOfFileCall } from './file-call-changes.ts'

let root = ''
beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), 'braidclaw-file-call-')))
})
afterEach(() => rmSync(root, { recursive: true }))

const changesOf = (name: string, input: Record<string, string>) => {
  const check = (path: string) =>
    path.startsWith(`${root}/`) && !path.endsWith('.pem') ? { ok: true as const } : { ok: false as const, rule: 'no', reason: 'no' }
  return changesOfFileCall({ id: 'call_1', name, input }, openWorkspace({ root, check }))
}
const sides = (set: ReturnType<typeof changesOf>) => {
  const [change] = set?.changes ?? []
  if (set === undefined || change === undefined) return undefined
  const text = (side: 'before' | 'after') => new TextDecoder().decode(set.content(change, side, 1_000))
  return { path: change.path, before: text('before'), after: text('after') }
}

test('a file that may not be read, or is not there, is never shown as if it were new or empty', () => {
  writeFileSync(join(root, 'key.pem'), 'secret')
  symlinkSync('/etc/hostname', join(root, 'out'))
  mkdirSync(join(root, 'folder'))
  expect(changesOf('file_write', { path: 'key.pem', content: 'x' })).toBeUndefined()
  expect(changesOf('file_write', { path: 'out', content: 'x' })).toBeUndefined()
  expect(changesOf('file_write', { path: 'folder', content: 'x' })).toBeUndefined()
  expect(changesOf('file_edit', { path: 'gone', old: 'a', new: 'b' })).toBeUndefined()
  expect(changesOf('file_read', { path: 'key.pem' })).toBeUndefined()
})

test('a new file has no side before', () => {
  expect(sides(changesOf('file_write', { path: 'sub/a.txt', content: 'one\n' }))).toEqual({ path: 'sub/a.txt', before: '', after: 'one\n' })
  expect(changesOf('file_write', { path: 'a', content: '' })?.changes[0]?.before).toBeUndefined()
})

test('a replaced file has both, with its mode', () => {
  writeFileSync(join(root, 'a.sh'), 'old\n')
  chmodSync(join(root, 'a.sh'), 0o755)
  const set = changesOf('file_write', { path: 'a.sh', content: 'new\n' })
  expect(sides(set)).toEqual({ path: 'a.sh', before: 'old\n', after: 'new\n' })
  expect(set?.changes[0]?.after?.mode).toBe(0o755)
})

test('an edit is shown as it will be, with the line ends of the file, and writes nothing', () => {
  writeFileSync(join(root, 'a.txt'), 'one\r\ntwo\r\n')
  expect(sides(changesOf('file_edit', { path: 'a.txt', old: 'one\ntwo', new: 'two\none' }))?.after).toBe('two\r\none\r\n')
  expect(readFileSync(join(root, 'a.txt'), 'utf8')).toBe('one\r\ntwo\r\n')
  expect(changesOf('file_edit', { path: 'a.txt', old: 'three', new: 'x' })).toBeUndefined()
})

test('a written file is shown as it will be, and the question says what happens to its line ends and its encoding', () => {
  writeFileSync(join(root, 'a.txt'), 'one\r\n')
  const set = changesOf('file_write', { path: 'a.txt', content: 'two\nthree\n' })
  expect(sides(set)?.after).toBe('two\r\nthree\r\n')
  writeFileSync(join(root, 'a.txt'), Uint8Array.of(0xe9))
  const other = changesOf('file_write', { path: 'a.txt', content: '\u20ac' })
  const shown = [set, other].map((each) => (each ? setLines(each, unfolded).at(-1)?.text : undefined))
  expect(shown).toEqual(['line ends stay CRLF', 'the encoding changes from latin-1 to utf-8'])
})

test('a deleted file has no side after', () => {
  writeFileSync(join(root, 'a.txt'), 'one\n')
  const set = changesOf('file_delete', { path: 'a.txt' })
  expect(sides(set)).toEqual({ path: 'a.txt', before: 'one\n', after: '' })
  expect(set?.changes[0]?.after).toBeUndefined()
  expect(existsSync(join(root, 'a.txt'))).toBe(true)
})
