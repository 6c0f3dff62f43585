/** Reading pictures with the vision helper, through a host in this process and a model on loopback. */

import { describe, expect, test } from 'bun:test'
import { visionProblem } from '../../src/host/setup/vision-provider.ts'
import { begin, place, says } from '../support/host.ts'
import { completion, startVisionModel } from '../support/telegram/vision-model.ts'

const never = new AbortController().signal
const picture = { type: 'image/jpeg', base64: '/9j/' } as const
/** As base64 it would be a million tokens of text. */
const large = { ...picture, base64: 'A'.repeat(3_000_000) }

function eyes(base: string, more = ''): string {
  return `[vision]\nprovider = "eyes"\nmodel = "v/l:free"\n${more}\n[providers.models.eyes]\nkind = "openai-compatible"\nmodel = "m"\nbase_url = "${base}"\nmax_retries = 0\nstream = false\n`
}

test('a call for a picture reserves and settles like any other: what the budget does not hold is not sent', async () => {
  using vision = startVisionModel(() => Response.json(completion('v/l:free', 'TOTAL 42', { prompt_tokens: 4_000, completion_tokens: 500 })))
  using at = place(`${eyes(vision.base)}[limits]\ndaily_tokens = 6000\ndaily_usd = 1\n`)
  const host = await at.host()
  const conversation = await begin(host, says('ok'))
  expect(await conversation.readPictures([large, large], never)).toEqual([{ ok: true, text: 'TOTAL 42' }])
  expect(await conversation.readPictures([picture], never)).toEqual([{ ok: false, why: expect.stringContaining('limits.daily_tokens') }])
  expect(vision.seen).toHaveLength(1)
  const { rows, reserved } = await host.cost({ by: 'model' })
  expect(rows).toMatchObject([{ key: 'eyes/v/l:free', calls: 1, tokens: 4_500, micros: 0 }])
  expect(reserved.tokens).toBe(0)
  await host.close()
})

test('a model that does not answer in time, a stop, and an empty answer leave a reason each; as many are read as the settings permit', async () => {
  using vision = startVisionModel((n) => (n === 0 ? new Promise<Response>(() => {}) : n === 2 ? ' ' : 'read'))
  using at = place(eyes(vision.base, 'max_images = 2\ntimeout_s = 0.5'))
  const host = await at.host()
  const conversation = await begin(host, says('ok'))
  const late = await conversation.readPictures([picture], never)
  expect(late).toEqual([{ ok: false, why: 'it took longer than 0.5 s' }])
  const read = await conversation.readPictures([picture, picture, picture], never)
  expect(read.map(({ ok }) => ok).toSorted()).toEqual([false, true])
  expect(await conversation.readPictures([picture], AbortSignal.abort())).toMatchObject([{ ok: false }])
  expect(vision.seen).toHaveLength(3)
  await host.close()
})

describe('settings that cannot work are said at the start', () => {
  test.each([
    ['[vision]\nprovider = "nobody"\n', 'unknown provider "nobody"'],
    ['[vision]\nprovider = "local"\n', 'pictures are read only by one of kind "openai-compatible"'],
    ['[vision]\nprovider = "openrouter"\n', 'OPENROUTER_API_KEY is not set'],
    [
      '[vision]\nprovider = "openrouter"\n[providers.models.openrouter]\nkind = "openai-compatible"\nmodel = "m"\nbase_url = "http://127.0.0.1:1/v1"\n',
      'OPENROUTER_API_KEY is not set',
    ],
  ])('%s', (config, says) => {
    using at = place(config)
    expect(visionProblem(at.setup())).toContain(says)
  })

  test('without a provider nothing is wrong, and nothing is read', async () => {
    using at = place()
    expect(visionProblem(at.setup())).toBeUndefined()
    const host = await at.host()
    expect(await (await begin(host, says('ok'))).readPictures([picture], never)).toEqual([])
    await host.close()
  })
})
