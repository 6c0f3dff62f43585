import { expect, test } from 'bun:test'
import { atEnd, attempt, errnoOf, errorText } from './errors.ts'

test('when the work and what is due at its end both fail, the error of the work counts', () => {
  const fail = (code: string) => () => {
    throw Object.assign(new Error(`${code}: no`), { code })
  }
  const thrown = (work: () => void): unknown => {
    try {
      work()
    } catch (error) {
      return error
    }
  }
  const both = thrown(() => {
    using _outer = atEnd(fail('EIO'))
    using _end = atEnd(fail('EDQUOT'))
    fail('ENOSPC')()
  })
  expect([errnoOf(both), errorText(both)]).toEqual(['ENOSPC', 'ENOSPC: no'])
  const one = thrown(() => {
    using _end = atEnd(fail('EIO'))
  })
  expect([errnoOf(one), errorText(one)]).toEqual(['EIO', 'EIO: no'])
  expect(attempt(fail('EIO'))).toBeUndefined()
})
