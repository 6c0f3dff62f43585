import { expect, test } from 'bun:test'
import { PlaneRefusal } from '../contract/plane-refusal.ts'
import { openPostgres } from './open-postgres.ts'

test('PostgreSQL says what is wrong when it does not answer, and never shows the password', async () => {
  const refusal = await openPostgres({ url: 'postgres://braidclaw:secret-word@127.0.0.1:1/none', log: () => {} }).catch(
    (error: unknown) => error,
  )
  if (!(refusal instanceof PlaneRefusal)) throw new Error(`expected a refusal, not ${String(refusal)}`)
  expect(refusal.code).toBe('unavailable')
  expect(refusal.message).toContain('database postgres://127.0.0.1:1/none does not answer')
  expect(refusal.message).not.toContain('secret-word')
})
