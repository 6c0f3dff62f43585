import { expect, test } from 'bun:test'
import { idOf, jsonObjectOf, namedTokens, nameOf, timeOf, tokensOf } from './argument-values.ts'

test.each(['', 'TASK', 'TASK-', 'RUN-001', 'TASK-1x', '-1', '1.5', '../1', 'TASK-0000000000000000000001x', '\u001b[2J'])(
  '%p is no task',
  (text) => {
    expect(() => idOf('task', text)).toThrow('is not the id of a task; one looks like TASK-001. See: braidclaw control task list')
    expect(() => idOf('task', text)).not.toThrow('\u001b')
  },
)

test.each([
  ['TASK-001', 'TASK-001'],
  ['task-7', 'TASK-007'],
  ['12345', 'TASK-12345'],
  ['TASK-0042', 'TASK-042'],
  ['0', 'TASK-000'],
])('%s is %s', (text, id) => expect(idOf('task', text)).toBe(id))

test('runs and approvals', () => {
  expect([idOf('run', '3'), idOf('approval', 'appr-42')]).toEqual(['RUN-003', 'APPR-042'])
})

test.each(['', '-a', '.a', 'a b', 'a/b', 'ä', 'a'.repeat(65), 'a\u202e'])('%p is no name', (text) => {
  expect(() => nameOf('agent', text)).toThrow('agent ')
})

test('a name', () => expect(nameOf('agent', 'db-admin.2_x')).toBe('db-admin.2_x'))

test.each(['', '-5', '1.5', 'five', '10x', '2000000M', '1e9', '0x10'])('%p is not a number of tokens', (text) => {
  expect(() => tokensOf('--daily', text)).toThrow(`--daily: ${JSON.stringify(text)} is not a number of tokens`)
})

test.each([
  ['0', 0],
  ['5000', 5000],
  ['100_000', 100_000],
  ['100,000', 100_000],
  ['100k', 100_000],
  ['2.5M', 2_500_000],
  ['none', null],
])('%s is %p', (text, tokens) => expect(tokensOf('--daily', text)).toBe(tokens))

test.each(['sysadmin', '=5', 'a b=5', '-x=5', '../x=5'])('%p is no limit of a name', (text) => {
  expect(() => namedTokens('--role', text)).toThrow('--role')
})

test('a limit of a name', () => {
  expect(namedTokens('--role', 'db-admin=5k')).toEqual(['db-admin', 5000])
  expect(namedTokens('--role', 'db-admin=none')).toEqual(['db-admin', null])
})

test.each(['[1]', 'null', '"x"', '{', '{a:1}'])('%s is no context', (text) =>
  expect(() => jsonObjectOf('--context', text)).toThrow('--context'),
)

test('a context is a JSON object', () => expect(jsonObjectOf('--context', '{"jail_name":"db"}')).toEqual({ jail_name: 'db' }))

test('a time is read in the zone that was given, and one in the past is refused', () => {
  const now = Date.parse('2026-11-23T18:00:00Z')
  const reading = { zone: 'Europe/Ljubljana', now, env: {} }
  expect(timeOf('2026-11-24 09:00', reading)).toBe('2026-11-24T08:00:00.000Z')
  expect(timeOf('in 20m', reading)).toBe('2026-11-23T18:20:00.000Z')
  expect(() => timeOf('2026-11-22 09:00', reading)).toThrow('that is past')
  expect(() => timeOf('soon', reading)).toThrow('is not a time')
  expect(() => timeOf('in 20m', { ...reading, zone: 'Europe/Lubljana' })).toThrow('did you mean "Europe/Ljubljana"')
})
