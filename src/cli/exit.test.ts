import { expect, test } from 'bun:test'
import { asRefusal } from '../control/store/postgres-session.ts'
import { FailureError } from '../host/failure.ts'
import { createFailures } from '../http/api.ts'
import { HttpError } from '../http/http-error.ts'
import { atEnd } from '../kit/errors.ts'
import { exitOf } from './exit.ts'

test('an error keeps its kind for callers and clients where what is due at the end failed as well', async () => {
  const both = (error: Error) => {
    try {
      using _end = atEnd(() => {
        throw new Error('no connection to release')
      })
      throw error
    } catch (thrown) {
      return thrown
    }
  }
  const stopped = Object.assign(new Error('terminating connection'), { code: 'ERR_POSTGRES_SERVER_ERROR', errno: '57P01' })
  expect(asRefusal(both(stopped), { name: 'x', hide: String })).toMatchObject({ code: 'unavailable', details: { storage: 'away' } })
  expect(exitOf(both(new FailureError('usage', 'no such thing')))).toMatchObject({ code: 2 })
  const failure = createFailures({ errorOf: () => undefined, failed: () => {} })
  expect(failure(both(new HttpError(404, 'not_found', 'no such thing')), '/').status).toBe(404)
})
