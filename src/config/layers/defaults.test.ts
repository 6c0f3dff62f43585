import { expect, test } from 'bun:test'
import { settings } from '../settings.ts'
import { check } from '../text/check.ts'
import { defaultOf } from './defaults.ts'

const where = { home: '/home/me/.braidclaw', userHome: '/home/me', env: {}, base: '/', typed: false }
const given = settings.flatMap((setting) => (defaultOf(setting) === undefined ? [] : [{ setting, key: setting.key }]))

test.each(given)('the default of $key is one that the table itself allows', ({ setting }) => {
  const value = defaultOf(setting)
  expect(check(setting, value, where)).toEqual({ value: setting.type.startsWith('path') ? expect.anything() : value, wrong: [] })
})
