import { expect, test } from 'bun:test'
import { type ChainCheck, checkReport } from './receipt-check.ts'

const found: ChainCheck['found'] = {
  ok: true,
  logId: 'log_1',
  head: '',
  count: 2,
  problems: [],
  warnings: [],
  completeness: 'proved by checkpoint',
  size: 9,
  tornBytes: 0,
}

test('a log that does not fit the journal is not in order, though its chain is', () => {
  const whole = { found, joined: [], unfinished: ['a call'], older: ['receipt 1'] }
  expect(checkReport(whole, true)).toEqual({
    ...{ ok: true, deep: true, count: 2, completeness: 'proved by checkpoint', problems: [], unfinished: ['a call'] },
    warnings: ['of an older version: receipt 1'],
  })
  const apart = checkReport({ ...whole, joined: [{ message: 'no run has receipt 2' }] }, true)
  expect(apart).toMatchObject({ ok: false, problems: ['no run has receipt 2'] })
})
