import { expect, test } from 'bun:test'
import { cut, nearest } from '../kit/text.ts'
import { policyWith } from './gate.fixture.ts'
import { definePolicy, policyVersion } from './policy.ts'
import { meaningOf, rules } from './rules.ts'

const policy = policyWith({
  workspace: '/ws',
  forbiddenPaths: ['/etc'],
  forbiddenCommands: ['rm'],
  allowCommands: ['ls'],
  protectedPaths: ['/home/u/.braidclaw'],
})

test('any change of a policy changes its version, and the version itself does not count', () => {
  const changes = [
    { autonomy: 'full' as const },
    { workspace: '/w' },
    { workspaceOnly: false },
    { forbiddenPaths: [] },
    { forbiddenCommands: [] },
    { allowCommands: ['ls', 'cat'] },
    { allowedDomains: ['x.org'] },
    { allowedPorts: [8080] },
    { protectedPaths: [] },
    { approveAllMedium: true },
    { toolsAllow: [] },
    { home: '/home/v' },
  ]
  expect(new Set([policy.version, ...changes.map((change) => definePolicy({ ...policy, ...change }).version)]).size).toBe(
    changes.length + 1,
  )
  expect(policyVersion({ ...policy, version: 'forged' })).toBe(policy.version)
  expect(definePolicy({ ...policy, toolsAllow: undefined }).version).toBe(policy.version)
})

test('every rule has one line that says what it means', () => {
  for (const [name, meaning] of Object.entries(rules)) {
    expect(name).toMatch(/^[a-z]+(\.[a-z_]+)?$/)
    expect(meaning).toMatch(/^[^\n]{10,150}\.$/)
  }
  expect(meaningOf('estop')).toBe(rules.estop)
  expect(meaningOf('constructor')).toBeUndefined()
  expect(meaningOf('command.x', { 'command.x': 'X.' })).toBe('X.')
})

test('a near miss is named, a far one is not', () => {
  expect(nearest('file_raed', ['file_read', 'file_write'])).toBe('file_read')
  expect(nearest('zzz', ['file_read'])).toBeUndefined()
  expect(nearest('x', [])).toBeUndefined()
})

test('one letter missing, doubled, swapped for another or in another case is near; two in three are not', () => {
  for (const word of ['pth', 'paath', 'pasth', 'bath', 'PATH', 'xpath', 'pathx'])
    expect([word, nearest(word, ['mode', 'path', 'PORT'])]).toEqual([word, 'path'])
  expect(nearest('port', ['PORT'])).toBe('PORT')
  expect(nearest('abcdef', ['abxyef'])).toBe('abxyef')
  expect(nearest('abcdef', ['axyzef'])).toBeUndefined()
  expect(nearest('cat', ['cow'])).toBeUndefined()
  expect(nearest('ab', ['abcd'])).toBeUndefined()
})

test('a text is cut only when it is longer than the limit', () => {
  expect(cut('abcd', 4)).toBe('abcd')
  expect(cut('abcde', 4)).toMatch(/^abc … \[cut: 5 characters, sha256 [\da-f]{16}\] … e$/)
})
