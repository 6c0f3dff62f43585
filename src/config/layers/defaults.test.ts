import { expect, test } from 'bun:test'
import { channelRows } from '../../channels/list.ts'
import { defaultOf } from '../../kit/settings.ts'
import { kinds, tableOf } from '../table.ts'
import { check } from '../text/check.ts'
import { workValueOf } from './defaults.ts'

const where = { home: '/home/me/.braidclaw', userHome: '/home/me', env: {}, base: '/', typed: false }
const { settings } = tableOf(channelRows)
const ofKinds = kinds.flatMap(({ kind, settings: rows }) => Object.entries(rows).map(([leaf, row]) => ({ ...row, key: `${kind} ${leaf}` })))
const given = [...settings, ...ofKinds].flatMap((setting) => (defaultOf(setting) === undefined ? [] : [{ setting, key: setting.key }]))

test.each(given)('the default of $key is one that the table itself allows', ({ setting }) => {
  const value = defaultOf(setting)
  expect(check(setting, value, where)).toEqual({ value: setting.type.startsWith('path') ? expect.anything() : value, wrong: [] })
})

const work = settings.flatMap((setting) => (workValueOf(setting) === undefined ? [] : [{ setting, key: setting.key }]))

test.each(work)('the number for real work of $key is one that the table itself allows', ({ setting }) => {
  const value = workValueOf(setting)
  expect(check(setting, value, where)).toEqual({ value, wrong: [] })
})

test('there are numbers for real work', () => {
  expect(work.map(({ key, setting }) => [key, workValueOf(setting)])).toEqual([
    ['limits.max_tool_rounds', 100],
    ['limits.max_same_results', 5],
    ['limits.shell_timeout_s', 120],
  ])
})
