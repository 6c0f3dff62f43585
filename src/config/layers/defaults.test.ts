import { expect, test } from 'bun:test'
import { channelRows } from '../../channels/list.ts'
import { defaultOf } from '../../kit/settings.ts'
import { kinds, tableOf } from '../table.ts'
import { check } from '../text/check.ts'

const where = { home: '/home/me/.braidclaw', userHome: '/home/me', env: {}, base: '/', typed: false }
const { settings } = tableOf(channelRows)
const ofKinds = kinds.flatMap(({ kind, settings: rows }) => Object.entries(rows).map(([leaf, row]) => ({ ...row, key: `${kind} ${leaf}` })))
const given = [...settings, ...ofKinds].flatMap((setting) => (defaultOf(setting) === undefined ? [] : [{ setting, key: setting.key }]))

test.each(given)('the default of $key is one that the table itself allows', ({ setting }) => {
  const value = defaultOf(setting)
  expect(check(setting, value, where)).toEqual({ value: setting.type.startsWith('path') ? expect.anything() : value, wrong: [] })
})

test('the numbers of the first specification are ones that the table itself allows', () => {
  const seeds = settings.flatMap((setting) => ('seed' in setting ? [{ setting, key: setting.key }] : []))
  for (const { setting } of seeds) expect(check(setting, setting.seed, where)).toEqual({ value: setting.seed, wrong: [] })
  expect(seeds.map(({ key, setting }) => [key, defaultOf(setting), setting.seed])).toEqual([
    ['limits.max_tool_rounds', 100, 5],
    ['limits.shell_timeout_s', 120, 15],
  ])
})
