import { expect, spyOn, test } from 'bun:test'
import { controlServer } from '../support/control-server.ts'

test('code becomes machine code as soon as usual from the first request with a credential on, and not before', async () => {
  const policy = spyOn(Bun.unsafe, 'setJITPolicy').mockImplementation(() => {})
  await using server = await controlServer()
  expect((await server.ask('/health', { token: null })).status).toBe(200)
  expect(policy.mock.calls).toEqual([])
  for (let at = 0; at < 3; at++) expect((await server.ask('state')).status).toBe(200)
  expect(policy.mock.calls).toEqual([[1]])
  policy.mockRestore()
})
