import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { createLogFilter, type LogPiece } from './log-filter.ts'

function shown(...texts: readonly string[]): readonly LogPiece[] {
  const filter = createLogFilter()
  return joined(texts.flatMap((text) => filter.push(text)))
}

function joined(pieces: readonly LogPiece[]): LogPiece[] {
  const all: LogPiece[] = []
  for (const piece of pieces) {
    const last = all.at(-1)
    if (typeof piece === 'string' && typeof last === 'string') all[all.length - 1] = last + piece
    else all.push(piece)
  }
  return all
}

const cases: readonly (readonly [text: string, shown: readonly LogPiece[]])[] = [
  ['plain\ntext', ['plain\ntext']],
  ['\u001b[31mred\u001b[0m', [{ mark: 'red' }, 'red', { mark: 'normal' }, { mark: 'uncoloured' }]],
  ['\u001b[1;32mx', [{ mark: 'bold' }, { mark: 'green' }, 'x']],
  ['\u001b[8mhidden', ['hidden']],
  ['\u001b[38;5;1;31mx', ['x']],
  ['\u001b[2Jx', ['\u001b[2Jx']],
  ['\u001b]0;t\u0007', ['\u001b]0;t\u0007']],
  ['10%\r20%\r\nend\r', ['10%\n20%\nend\n']],
]

describe('the filter of a log', () => {
  test.each(cases)('%j', (text, wanted) => expect(shown(text)).toEqual([...wanted]))

  test('holds back only a sequence that is not complete yet', () => {
    expect(shown('a\u001b', '[3', '1mb')).toEqual(['a', { mark: 'red' }, 'b'])
    expect(shown('a\u001b', 'b')).toEqual(['a\u001bb'])
    expect(shown(`a\u001b[${'1'.repeat(40)}`)).toEqual([`a\u001b[${'1'.repeat(40)}`])
  })

  test('property: however the text is divided, the same comes out', () => {
    const part = fc.constantFrom('a', '\u001b', '[', '3', '1', 'm', ';', '\n', '0', '\u001b[32m')
    fc.assert(
      fc.property(fc.array(part, { maxLength: 20 }), (parts) => {
        const whole = shown(parts.join(''), 'end')
        expect(shown(...parts, 'end')).toEqual([...whole])
      }),
    )
  })
})
