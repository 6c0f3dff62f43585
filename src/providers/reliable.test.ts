import { describe, expect, test } from 'bun:test'
import { testDeps } from '../../test/support/vendor-fake.ts'
import type { FailureCode } from '../runtime/event.ts'
import { type ChatRequest, type Provider, ProviderFailure } from '../runtime/port.ts'
import { createReliable, createRouter } from './reliable.ts'

const request: ChatRequest = { systemPrompt: '', messages: [], tools: [], model: 'asked-for' }

type Behaviour = { readonly code?: FailureCode; readonly shown?: string; readonly contextTokens?: number }

function fakeProvider(name: string, behaviour: Behaviour = {}) {
  const asked: ChatRequest[] = []
  const provider: Provider = {
    name,
    capabilities: () => ({ streaming: true, tools: name !== 'dumb', thinking: true, contextTokens: behaviour.contextTokens ?? 1_000 }),
    async *chat(question) {
      asked.push(question)
      if (behaviour.shown !== undefined) yield { type: 'text', text: behaviour.shown }
      if (behaviour.code !== undefined) throw new ProviderFailure(behaviour.code, `${name} is ${behaviour.code}`)
      yield { type: 'text', text: `${name} says hi` }
    },
  }
  return { provider, asked }
}

async function ask(provider: Provider, question = request, signal = new AbortController().signal) {
  let shown = ''
  try {
    for await (const chunk of provider.chat(question, signal)) if (chunk.type === 'text') shown += chunk.text
    return { shown }
  } catch (error) {
    if (!(error instanceof ProviderFailure)) throw error
    return { shown, code: error.code, message: error.message }
  }
}

function reliable(...providers: readonly { readonly provider: Provider }[]) {
  const deps = testDeps()
  return { provider: createReliable({ name: 'r', providers: providers.map((each) => each.provider), log: deps.log }), lines: deps.lines }
}

describe('reliable', () => {
  test.each(['bad_request', 'context_length', 'too_large', 'aborted', 'unknown'] as const)(
    '%s is nobody else’s to answer',
    async (code) => {
      const second = fakeProvider('b')
      const { provider, lines } = reliable(fakeProvider('a', { code }), second)
      expect(await ask(provider)).toMatchObject({ code, message: `a is ${code}` })
      expect([second.asked.length, lines.length]).toEqual([0, 0])
    },
  )

  test('after a piece was shown nobody else is asked', async () => {
    const second = fakeProvider('b')
    const { provider } = reliable(fakeProvider('a', { code: 'network', shown: 'ha' }), second)
    expect(await ask(provider)).toMatchObject({ shown: 'ha', code: 'network' })
    expect(second.asked).toEqual([])
  })

  test('after a cancel nobody else is asked', async () => {
    const second = fakeProvider('b')
    const { provider } = reliable(fakeProvider('a', { code: 'network' }), second)
    expect(await ask(provider, request, AbortSignal.abort())).toMatchObject({ code: 'network' })
    expect(second.asked).toEqual([])
  })

  test.each(['network', 'auth', 'timeout', 'server', 'rate_limit', 'bad_response'] as const)(
    'on %s the next is asked and the reason logged',
    async (code) => {
      const { provider, lines } = reliable(fakeProvider('a', { code }), fakeProvider('b'))
      expect(await ask(provider)).toEqual({ shown: 'b says hi' })
      expect(lines).toEqual([{ level: 'warn', event: 'provider fallback', fields: { from: 'a', to: 'b', code, message: `a is ${code}` } }])
    },
  )

  test('when all fail the failure is the last one’s and names every one', async () => {
    const { provider, lines } = reliable(fakeProvider('a', { code: 'auth' }), fakeProvider('b', { code: 'timeout' }))
    const { code, message } = await ask(provider)
    expect(code).toBe('timeout')
    expect(message).toBe('provider "r": all 2 failed: a (auth): a is auth; b (timeout): b is timeout')
    expect(lines.length).toBe(1)
  })

  test('each is asked for its own model, in order, and can only do what all can', async () => {
    const [a, b] = [fakeProvider('a', { code: 'server', contextTokens: 500 }), fakeProvider('dumb')]
    const { provider } = reliable(a, b)
    await ask(provider)
    expect([...a.asked, ...b.asked].map((question) => question.model)).toEqual(['', ''])
    expect(provider.capabilities()).toEqual({ streaming: true, tools: false, thinking: true, contextTokens: 500 })
  })
})

describe('router', () => {
  function router() {
    const [cheap, usual] = [fakeProvider('cheap'), fakeProvider('usual')]
    const deps = testDeps()
    const provider = createRouter({ name: 'r', fallback: usual.provider, routes: new Map([['fast', cheap.provider]]), log: deps.log })
    return { provider, lines: deps.lines }
  }

  test('a hint without a route goes to the default and the log says so', async () => {
    for (const hint of ['slow', '__proto__', 'constructor', '', 7, ['fast']]) {
      const { provider, lines } = router()
      expect(await ask(provider, { ...request, metadata: { hint } })).toEqual({ shown: 'usual says hi' })
      expect(lines[0]).toEqual({
        level: 'warn',
        event: 'provider hint unknown',
        fields: { provider: 'r', hint, known: ['fast'], to: 'usual' },
      })
    }
  })

  test('a known hint picks its provider, no hint the default, neither with a warning', async () => {
    const { provider, lines } = router()
    expect(await ask(provider, { ...request, metadata: { hint: 'fast' } })).toEqual({ shown: 'cheap says hi' })
    expect(await ask(provider)).toEqual({ shown: 'usual says hi' })
    expect(lines.map((line) => [line.level, line.fields.provider])).toEqual([
      ['debug', 'cheap'],
      ['debug', 'usual'],
    ])
  })
})
