/** Answers "stub response N" to whatever is asked: for trying scripts without a model. Calls no tool. */

import type { Provider } from '../runtime/port.ts'

export type StubSetup = {
  readonly name: string
  readonly model: string
  /** The N of this answer. */
  readonly count: () => number | Promise<number>
}

export function createStub({ name, model, count }: StubSetup): Provider {
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
