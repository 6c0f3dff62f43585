import { expect, test } from 'bun:test'
import type { LanguageModelV4StreamPart } from '@ai-sdk/provider'
import { testDeps } from '../../../test/support/vendor-fake.ts'
import { startAssembly } from './library-reply.ts'

const usage = { inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 }, outputTokens: { total: 1, text: 1, reasoning: 0 } }
const finish: LanguageModelV4StreamPart = { type: 'finish', usage, finishReason: { unified: 'stop', raw: 'stop' } }

function assemble(...parts: readonly LanguageModelV4StreamPart[]) {
  const deps = testDeps()
  const assembly = startAssembly({ provider: 'p', model: 'm', maxBytes: 1_000, newId: (id) => id, log: deps.log })
  for (const part of [...parts, finish]) assembly.take(part)
  return { ...assembly.result(), lines: deps.lines }
}

test('metadata of start, deltas and end of a block come together under their vendor', () => {
  const { parts } = assemble(
    { type: 'reasoning-start', id: '1', providerMetadata: { v: { item: 'a' } } },
    { type: 'reasoning-delta', id: '1', delta: 'hm', providerMetadata: { v: { signature: 's' }, w: { x: 1 } } },
    { type: 'reasoning-end', id: '1', providerMetadata: { v: { sealed: null } } },
  )
  expect(parts).toEqual([{ type: 'thinking', text: 'hm', meta: { v: { item: 'a', signature: 's', sealed: null }, w: { x: 1 } } }])
})

test('blocks keep the order in which they began, and an id may be used again', () => {
  const { parts } = assemble(
    { type: 'text-start', id: '0' },
    { type: 'reasoning-start', id: '0' },
    { type: 'text-delta', id: '0', delta: 'a' },
    { type: 'reasoning-delta', id: '0', delta: 'b' },
    { type: 'text-end', id: '0' },
    { type: 'tool-call', toolCallId: 'c', toolName: 't', input: '{}' },
    { type: 'text-start', id: '0' },
    { type: 'text-delta', id: '0', delta: 'd' },
  )
  expect(parts.map((part) => (part.type === 'call' ? part.id : part.text))).toEqual(['a', 'b', 'c', 'd'])
})

test('a call that the vendor ran itself is none of ours, and is logged', () => {
  const { parts, lines } = assemble({ type: 'tool-call', toolCallId: 'c', toolName: 'web_search', input: '{}', providerExecuted: true })
  expect(parts).toEqual([])
  expect(lines).toEqual([{ level: 'debug', event: 'provider part ignored', fields: { provider: 'p', type: 'tool-call' } }])
})
