/** Plays the replies of a fixture or, without one, lets the offline helper answer; needs no network and is deterministic. */

import { isAbsolute, join } from 'node:path'
import { atEnd, errorText } from '../../kit/errors.ts'
import type { Call, Part, Usage } from '../../runtime/event.ts'
import { type ChatRequest, type ChatResponse, type Message, type ModelChunk, type Provider, ProviderFailure } from '../../runtime/port.ts'
import type { Creating } from '../provider-kind.ts'
import type { mockRows } from '../rows.ts'
import { assertUsable } from '../usable-reply.ts'
import { idMaker, readArguments } from '../wire/call-arguments.ts'
import { type Deadline, startDeadline } from '../wire/deadline.ts'
import { pricesOf } from '../wire/provider-settings.ts'
import { priced } from '../wire/usage.ts'
import { parseFixture, type ScriptedReply } from './mock-fixture.ts'
import { offlineReply } from './offline-helper.ts'

type Setup = Creating<typeof mockRows>

/** @throws ProviderFailure `bad_request` when the fixture cannot be read */
export async function createMock(setup: Setup): Promise<Provider> {
  const { name, settings, deps } = setup
  const script = settings.fixture === undefined ? undefined : await readFixture(settings.fixture, deps.baseDir)
  const totalS = settings.totalTimeoutS
  let calls = 0
  const next = (request: ChatRequest) => script?.[Math.min(calls++, script.length - 1)] ?? offlineReply(request)
  return {
    name,
    capabilities: () => ({ streaming: true, tools: true, thinking: script !== undefined, contextTokens: 32_768 }),
    async *chat(request, signal) {
      const reply = next(request)
      const deadline = startDeadline({ provider: name, signal, totalS, idleS: totalS, deps })
      using _end = atEnd(() => deadline.end())
      yield* play({ setup, reply, request, deadline })
    },
  }
}

async function readFixture(fixture: string, baseDir: string | undefined): Promise<readonly ScriptedReply[]> {
  const path = isAbsolute(fixture) || baseDir === undefined ? fixture : join(baseDir, fixture)
  const text = await Bun.file(path)
    .text()
    .catch((error: unknown) => {
      const why = `cannot be read: ${errorText(error)}; give "fixture" the path of a JSON file`
      throw new ProviderFailure('bad_request', `mock fixture "${path}" ${why}`)
    })
  return parseFixture(text, path)
}

async function* play(at: { setup: Setup; reply: ScriptedReply; request: ChatRequest; deadline: Deadline }): AsyncGenerator<ModelChunk> {
  const { setup, request, deadline } = at
  const { name } = setup
  const reply = { ...at.reply, text: fill(at.reply.text, request.messages) }
  if (reply.delayMs > 0 && !deadline.signal.aborted) await setup.deps.sleep(reply.delayMs, deadline.signal).catch(() => {})
  if (deadline.signal.aborted) throw deadline.signal.reason
  if (reply.error !== undefined)
    throw new ProviderFailure(reply.error, `provider "${name}": the fixture says "${reply.error}"`, { provider: name })
  if (reply.thinking !== '') yield { type: 'thinking', text: reply.thinking }
  for (const text of pieces(reply.text, reply.chunks)) {
    if (deadline.signal.aborted) throw deadline.signal.reason
    yield { type: 'text', text }
  }
  yield { type: 'done', response: assertUsable(responseOf(setup, reply, request)) }
}

function responseOf({ name, settings }: Setup, reply: ScriptedReply, request: ChatRequest): ChatResponse {
  const newId = idMaker(request.messages)
  const calls = reply.calls.map(({ name: tool, raw, id }): Call => ({ id: newId(id ?? 'call_1'), name: tool, ...readArguments(raw) }))
  const parts: Part[] = [
    ...(reply.thinking === '' ? [] : [{ type: 'thinking' as const, text: reply.thinking }]),
    ...(reply.text === '' ? [] : [{ type: 'text' as const, text: reply.text }]),
    ...calls.map((call) => ({ type: 'call' as const, ...call })),
  ]
  const stop = calls.length > 0 ? 'tool_calls' : 'stop'
  const usage = priced(reply.usage ?? counted(request, parts), pricesOf(settings))
  return { parts, stop, usage, model: request.model || settings.model, provider: name }
}

/** Inserts `{{last_tool_result}}` and `{{last_user_message}}` unchanged. */
function fill(text: string, messages: readonly Message[]): string {
  const last = (role: Message['role']) => messages.findLast((message) => message.role === role)
  const content = (message: Message | undefined) => (message !== undefined && 'content' in message ? message.content : '')
  return text
    .split(/(\{\{last_tool_result\}\}|\{\{last_user_message\}\})/)
    .map((piece) =>
      piece === '{{last_tool_result}}' ? content(last('tool')) : piece === '{{last_user_message}}' ? content(last('user')) : piece,
    )
    .join('')
}

/** Cuts between characters, never inside one. */
function pieces(text: string, chunks: number): readonly string[] {
  const characters = chunks === 1 ? [text] : Array.from(text)
  const size = Math.max(1, Math.ceil(characters.length / chunks))
  const cuts = Array.from({ length: Math.ceil(characters.length / size) }, (_, index) => characters.slice(index * size, (index + 1) * size))
  return cuts.map((cut) => cut.join('')).filter((piece) => piece !== '')
}

/** Counts a quarter of a token per byte: no model counted, but budgets should change. */
function counted(request: ChatRequest, parts: readonly Part[]): Usage {
  const quarter = (value: unknown) => Math.ceil(Buffer.byteLength(JSON.stringify(value)) / 4)
  return { inputTokens: quarter([request.systemPrompt, request.messages]), outputTokens: quarter(parts) }
}
