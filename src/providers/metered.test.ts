import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { ask, question } from '../../test/support/vendor-fake.ts'
import type { Quote } from '../runtime/port.ts'
import { meteredProvider } from './metered.ts'
import { modelCallProvider } from './model-call.ts'

async function reserved(content: string): Promise<number> {
  const quotes: Quote[] = []
  const meter = async (quote: Quote) => {
    quotes.push(quote)
    return { outputTokens: 10, settle: async () => {} }
  }
  const provider = meteredProvider({ ...modelCallProvider(async function* () {}), name: 'p' }, { free: true })
  await ask(provider, { ...question, messages: [{ role: 'user', content }], meter })
  return quotes[0]?.inputTokens ?? 0
}

test('a prompt reserves at least a token for three bytes, whatever its text, and more where its tokens are dense', async () => {
  await fc.assert(
    fc.asyncProperty(fc.string({ unit: 'binary', maxLength: 3000 }), async (content) => {
      const { systemPrompt, tools } = question
      const bytes = Buffer.byteLength(JSON.stringify([systemPrompt, tools, [{ role: 'user', content }]]))
      expect(await reserved(content)).toBeGreaterThanOrEqual(Math.ceil(bytes / 3))
    }),
  )
  const words = 'plain words and nothing else '.repeat(400)
  expect(await reserved(words)).toBeGreaterThanOrEqual(words.length / 3)
  expect(await reserved(Buffer.from(words).toString('base64'))).toBeGreaterThan((await reserved(words)) * 3)
})
