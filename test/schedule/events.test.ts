/** The events of a home tell when a schedule begins to run and how the run ended. */

import { expect, test } from 'bun:test'
import { gateway } from '../support/gateway.ts'
import { home, scripted } from '../support/turns.ts'

test('a run of a schedule is told at its begin and at its end, with its state, and a later subscriber reads both', async () => {
  using at = home()
  const { env } = scripted(at, [{ text: 'Done.' }])
  await using server = await gateway(at, [], { env })
  await server.ask('/schedules', { name: 'tidy', message: 'Tidy up.', every: '6h' })
  await server.ask('/schedules/tidy/run', {})
  const live = await fetch(`${server.url}/events?after=0`, { headers: { authorization: `Bearer ${server.token}` } })
  const reader = live.body?.pipeThrough(new TextDecoderStream()).getReader()
  const seen = { text: '' }
  while (!seen.text.includes('schedule_ended')) {
    const { done, value } = (await reader?.read()) ?? { done: true, value: undefined }
    if (done) break
    seen.text += value
  }
  await reader?.cancel()
  const told = [...seen.text.matchAll(/^data: (.*schedule_(?:fired|ended).*)$/gm)].map(([, data = '']) => JSON.parse(data).event)
  expect(told).toEqual([
    { type: 'schedule_fired', schedule: 'tidy', runId: expect.stringMatching(/^run_/) },
    { type: 'schedule_ended', schedule: 'tidy', state: 'good' },
  ])
})
