import { expect, test } from 'bun:test'
import { weaknessOf } from './secret-forms.ts'

test.each(['', 'ollama', 'lm-studio', '12345678901', ' sk-12345678 '])('too short to be looked for: "%s"', (value) =>
  expect(weaknessOf(value)).toBe('is shorter than 12 characters'),
)

test.each(['not-needed-here', 'sk-no-key-required', 'PLACEHOLDER-key', 'correct-horse-battery-staple', 'abcdefghijklmno'])(
  'words: %s',
  (value) => expect(weaknessOf(value)).toBe('consists of letters and dashes alone'),
)

test.each([
  'sk-0123456789ab',
  'pass word pass word',
  'not_needed_here',
  'lm-studio-1234',
  'abcdefghijklmnop',
  'xy-abcdefghijklmnop',
  'pässwörter-all',
])('looked for: %s', (value) => expect(weaknessOf(value)).toBeUndefined())
