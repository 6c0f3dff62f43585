import { expect, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { createFixture } from '../fixture.ts'

const edited = (text: string, find: string, put: string) => {
  using fixture = createFixture()
  writeFileSync(join(fixture.root, 'f'), text)
  const answer = fixture.workspace.editText('f', { find, put })
  const after = readFileSync(join(fixture.root, 'f'), 'utf8')
  return answer.ok ? [after, answer.note] : [after, answer.message]
}
const written = (before: string | Uint8Array, text: string) => {
  using fixture = createFixture()
  writeFileSync(join(fixture.root, 'f'), before)
  const answer = fixture.workspace.writeText('f', text)
  return [readFileSync(join(fixture.root, 'f')).toString('latin1'), answer.ok ? answer.note.split('; ').slice(1) : answer.message]
}

test('a text that stands nowhere, or more than once but for its line ends, changes nothing', () => {
  expect(edited('a\r\nb\r\na\r\nb\r\n', 'a\nb', 'c')).toEqual(['a\r\nb\r\na\r\nb\r\n', expect.stringContaining('2 times')])
  expect(edited('a\r\nb', 'a\n\nb', 'c')).toEqual(['a\r\nb', expect.stringContaining('not in "f"')])
  expect(edited('a\r\nb', 'a\nb', 'a\r\nb')).toEqual(['a\r\nb', expect.stringContaining('nothing to do')])
})

test.each([
  ['one line becomes two', 'a\r\nb\r\nc\r\n', 'b', 'b\nx', 'a\r\nb\r\nx\r\nc\r\n', 'line ends stay CRLF'],
  ['old with CRLF, new with LF', 'a\r\nb\r\n', 'a\r\nb\r\n', 'x\ny\n', 'x\r\ny\r\n', 'line ends stay CRLF'],
  ['after the last line', 'a\r\nb', 'b', 'b\nc\n', 'a\r\nb\r\nc\r\n', 'line ends stay CRLF'],
  ['in place of the last line end', 'a\r\nb\r\n', 'b\r\n', 'b\nc', 'a\r\nb\r\nc', 'line ends stay CRLF'],
  ['carriage returns alone', 'a\rb\rc', 'a\nb', 'a\nx\nb', 'a\rx\rb\rc', 'line ends stay CR'],
  ['carriage returns alone, one line', 'a\rb\rc', 'b', 'b\nx', 'a\rb\rx\rc', 'line ends stay CR'],
  ['old with CRLF in a file with LF', 'a\nb\n', 'a\r\nb', 'x\r\ny', 'x\ny\n', 'line ends stay LF'],
  ['mixed: beside CRLF', 'a\r\nb\nc\n', 'a', 'a\nx', 'a\r\nx\r\nb\nc\n', 'line ends stay mixed'],
  ['mixed: beside LF', 'a\r\nb\nc\n', 'b\nc', 'b\nx\nc', 'a\r\nb\nx\nc\n', 'line ends stay mixed'],
  ['mixed: across both', 'a\r\nb\nc\n', 'a\nb\nc', 'a\nb\nx\nc', 'a\r\nb\nx\nc\n', 'line ends stay mixed'],
  ['a carriage return within a line', 'a\rb\nc\n', 'c', 'c\nd', 'a\rb\nc\nd\n', undefined],
  ['a change of line ends that is meant', 'a\r\nb\r\n', 'a\r\nb\r\n', 'a\nb\n', 'a\nb\n', 'line ends change from CRLF to LF'],
  ['CRLF that is meant', 'a\nb\n', 'b\n', 'b\r\nc\r\n', 'a\nb\r\nc\r\n', 'line ends change from LF to mixed'],
  ['a file without line ends', 'a', 'a', 'a\nb', 'a\nb', undefined],
])('an edit keeps the line ends around it: %s', (_, before, find, put, after, note) => {
  expect(edited(before, find, put)).toEqual([after, note])
})

test.each([
  ['CRLF', 'a\r\nb\r\n', 'x\ny\nz', 'x\r\ny\r\nz', ['line ends stay CRLF']],
  ['CR', 'a\rb', 'x\ny\n', 'x\ry\r', ['line ends stay CR']],
  ['CRLF that is meant', 'a\nb\n', 'a\r\nb\r\n', 'a\r\nb\r\n', ['line ends change from LF to CRLF']],
  ['LF where it was', 'a\nb\n', 'c\n', 'c\n', []],
  ['lines of a mixed file', 'a\r\nb\nc\n', 'a\nb\nd\n', 'a\r\nb\nd\n', ['line ends stay mixed']],
  ['a mark of UTF-8', '\xef\xbb\xbfa\r\n', 'b\n', '\xef\xbb\xbfb\r\n', ['line ends stay CRLF']],
  ['a mark that the text has', '\xef\xbb\xbfa', '\ufeffb', '\xef\xbb\xbfb', []],
  ['UTF-16LE', '\xff\xfea\0\r\0\n\0', 'é\n', '\xff\xfe\xe9\0\r\0\n\0', ['line ends stay CRLF', 'the encoding stays utf-16le']],
  ['UTF-16BE', '\xfe\xff\0a', '\u20ac', '\xfe\xff\x20\xac', ['the encoding stays utf-16be']],
  ['UTF-16LE without a mark', 'a\0b\0', 'c', 'c\0', ['the encoding stays utf-16le']],
  ['latin-1', 'caf\xe9\n', 'th\u00e9\n', 'th\xe9\n', ['the encoding stays latin-1']],
  ['latin-1 that cannot hold it', 'caf\xe9', '\u20ac', '\xe2\x82\xac', ['the encoding changes from latin-1 to utf-8']],
  ['latin-1, plain text', 'caf\xe9', 'tea', 'tea', []],
  ['what is not text', '\0\x01\0\x02\x03', 'a', 'a', ['the encoding changes from binary to utf-8']],
])('a written file keeps its form: %s', (_, before, text, after, notes) => {
  expect(written(Buffer.from(before, 'latin1'), text)).toEqual([after, notes])
})

test('of any file with one kind of line end, any text with LF keeps it, and the text is the same', () => {
  const lines = fc.array(fc.string({ unit: fc.constantFrom('a', 'é', ' ') }), { minLength: 2 })
  fc.assert(
    fc.property(lines, lines, fc.constantFrom('\r\n', '\n', '\r'), (before, after, end) => {
      const [bytes] = written(Buffer.from(before.join(end)), after.join('\n'))
      expect(Buffer.from(String(bytes), 'latin1').toString()).toBe(after.join(end))
    }),
    { numRuns: 60 },
  )
})
