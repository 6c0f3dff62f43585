import { expect, spyOn, test } from 'bun:test'
import { within } from './send-pieces.ts'

test('a request ends with the signal, or with one that was aborted before', async () => {
  const stop = new AbortController()
  const reason = (own: AbortSignal) => new Promise((resolve) => own.addEventListener('abort', () => resolve(own.reason)))
  const asked = within(stop.signal, reason)
  stop.abort('closed')
  expect(await asked).toBe('closed')
  expect(await within(stop.signal, async (own) => [own.aborted, own.reason])).toEqual([true, 'closed'])
})

test('nothing of a request stays with the signal, whatever became of it', async () => {
  const { signal } = new AbortController()
  const [listens, leaves] = [spyOn(signal, 'addEventListener'), spyOn(signal, 'removeEventListener')]
  expect(await within(signal, async (own) => own === signal)).toBe(false)
  expect(within(signal, () => Promise.reject(new Error('no answer')))).rejects.toThrow('no answer')
  await Bun.sleep(0)
  expect(leaves.mock.calls).toEqual(listens.mock.calls)
  expect(leaves).toHaveBeenCalledTimes(2)
})
