import { expect, test } from 'bun:test'
import { isPlain } from './plain.ts'

test('printable ASCII is plain, and nothing else', () => {
  for (let code = 0; code < 0x3000; code++) {
    const char = String.fromCharCode(code)
    expect(isPlain(`a${char}b`), code.toString(16)).toBe(/^[ -~]$/.test(char))
  }
  expect([isPlain(''), isPlain('x'.repeat(300)), isPlain('x'.repeat(301)), isPlain('😀')]).toEqual([true, true, false, false])
})
