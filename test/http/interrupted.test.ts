/** A conversation goes on after its server was stopped or killed in the middle of a turn, and the model is told what happened. */

import { expect, test } from 'bun:test'
import { nest } from '../support/cli.ts'
import { dialects } from '../support/dialects.ts'
import { gateway } from '../support/gateway.ts'
import { sends, startFake } from '../support/vendor-fake.ts'

for (const [signal, why] of [
  ['SIGTERM', 'the server was stopped'],
  ['SIGKILL', 'its process ended before it did'],
] as const) {
  test(`after ${signal} in a turn, the next turn tells the model that the last one was interrupted`, async () => {
    using at = nest()
    const asked = Promise.withResolvers<void>()
    const model = startFake((_, number) => {
      if (number > 0) return sends(dialects[0]?.events({ text: ['noted'] }) ?? [])
      asked.resolve()
      return sends([], 'hold')
    })
    const env = { OLLAMA_HOST: model.url, BRAIDCLAW_MODEL: 'ollama/llama3.2:1b' }
    try {
      await using first = await gateway(at, [], { env })
      const lost = first.ask('/chat', { message: 'the first question' }).catch(() => undefined)
      await asked.promise
      const begun = performance.now()
      process.kill(first.pid, signal)
      expect((await first.result).code).toBe(signal === 'SIGTERM' ? 0 : null)
      expect(performance.now() - begun).toBeLessThan(5_000)
      await lost
      await using second = await gateway(at, [], { env, token: first.token })
      const [{ id }] = (await second.ask('/conversations')).body.conversations
      expect((await second.ask('/chat', { message: 'go on', conversation_id: id })).body.text).toBe('noted')
      const { messages } = JSON.parse(model.asked.at(-1)?.text ?? '{}')
      const said = JSON.stringify(messages.filter(({ role }: { role: string }) => role === 'user'))
      expect(said).toMatch(new RegExp(`the first question.*the turn above was interrupted: ${why}.*go on`))
    } finally {
      model.stop()
    }
  }, 120_000)
}
