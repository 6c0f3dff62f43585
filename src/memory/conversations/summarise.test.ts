import { expect, test } from 'bun:test'
import { type ChatRequest, type ModelChunk, type Provider, ProviderFailure } from '../../runtime/port.ts'
import { never } from '../agent-files/fixture.ts'
import { summariserOf } from './compact.ts'
import { summaryRequest } from './summary-words.ts'

const request = summaryRequest({ existing: 'old', conversation: 'lines' })

function providerOf(chat: Provider['chat']): Provider {
  return { name: 'p', capabilities: () => ({ streaming: true, tools: false, thinking: true, contextTokens: 1000 }), chat }
}

async function* saying(chunks: readonly ModelChunk[]) {
  yield* chunks
}

const done = (stop: 'stop' | 'length'): ModelChunk => ({
  type: 'done',
  response: {
    parts: [
      { type: 'thinking', text: 'hm' },
      { type: 'text', text: 'in ' },
      { type: 'text', text: 'short' },
    ],
    stop,
    usage: { inputTokens: 7, outputTokens: 2 },
    model: 'small-2',
    provider: 'p',
  },
})

const ask = (chat: Provider['chat']) => summariserOf({ provider: providerOf(chat), model: 'small' })(request, never())

test('a provider that fails is a value; what is a bug is thrown', async () => {
  const failing = (error: Error) => () => {
    throw error
  }
  expect(await ask(failing(new ProviderFailure('timeout', 'no answer')))).toEqual({ ok: false, message: 'no answer' })
  expect(ask(failing(new TypeError('bug')))).rejects.toThrow('bug')
  expect(await ask(() => saying([{ type: 'text', text: 'half' }]))).toMatchObject({ ok: false })
})

test('the question goes out as the design has it, without tools', async () => {
  const asked: ChatRequest[] = []
  const answer = await ask((each) => {
    asked.push(each)
    return saying([{ type: 'text', text: 'in short' }, done('stop')])
  })
  expect(asked).toEqual([
    {
      systemPrompt: request.system,
      messages: [{ role: 'user', content: 'EXISTING SUMMARY:\nold\n\nCONVERSATION TO SUMMARIZE:\nlines' }],
      tools: [],
      model: 'small',
      maxOutputTokens: 2048,
      metadata: { hint: 'cheap' },
    },
  ])
  expect(answer).toEqual({ ok: true, text: 'in short', model: 'small-2', usage: { inputTokens: 7, outputTokens: 2 } })
})

test('an answer that ended at its limit is marked', async () => {
  expect(await ask(() => saying([done('length')]))).toMatchObject({ ok: true, cut: true })
})
