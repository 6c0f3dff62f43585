/** Registers the providers that need no network: the mock, which loads what it plays when it is used, and the stub. */

import type { Rows } from '../kit/settings.ts'
import type { Provider } from '../runtime/port.ts'
import type { Creating, ProviderKind } from './provider-kind.ts'
import { mockRows, model } from './rows.ts'

export const mock = {
  kind: 'mock',
  settings: mockRows,
  budget: 'free',
  create: async (given) => (await import('./offline/mock-player.ts')).createMock(given),
} as const satisfies ProviderKind<typeof mockRows>

const settings = { model: { ...model, default: 'stub' } } as const satisfies Rows

/** Answers "stub response N" to every request and calls no tool, for testing scripts without a model. */
export const stub = { kind: 'stub', settings, budget: 'free', create: createStub } as const satisfies ProviderKind<typeof settings>

function createStub({ name, settings: { model }, deps: { count } }: Creating<typeof settings>): Provider {
  return {
    name,
    capabilities: () => ({ streaming: false, tools: false, thinking: false, contextTokens: 32_768 }),
    async *chat(request) {
      const text = `stub response ${await count()}`
      yield { type: 'text', text }
      const usage = { inputTokens: 0, outputTokens: 0 }
      yield {
        type: 'done',
        response: { parts: [{ type: 'text', text }], stop: 'stop', usage, model: request.model || model, provider: name },
      }
    },
  }
}
