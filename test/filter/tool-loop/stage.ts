/** One question put to each of the three loops, with a loopback model that speaks the real wires. No tests of its own. */

import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isObject } from '../../../src/kit/json.ts'
import { minimumConfig, type Nest, nest, type Result } from '../../support/cli.ts'
import { type Dialect, dialects, type Speech } from '../../support/dialects.ts'
import { needs } from '../../support/needs.ts'
import { alone } from '../../support/turns.ts'
import { type Fake, sends, startFake } from '../../support/vendor-fake.ts'

/** A loop, and the wire on which it asks. */
export type Loop = { readonly backend: 'native' | 'bash' | 'llm' | 'elixir'; readonly wire: 'openai-compatible' | 'anthropic' }

export const loops: readonly Loop[] = [
  { backend: 'native', wire: 'openai-compatible' },
  { backend: 'bash', wire: 'anthropic' },
  { backend: 'llm', wire: 'openai-compatible' },
]

/** The same on their other wire, and the loop in Elixir. */
export const others: readonly Loop[] = [
  { backend: 'native', wire: 'anthropic' },
  { backend: 'bash', wire: 'openai-compatible' },
  ...(needs('elixir') ? [{ backend: 'elixir', wire: 'anthropic' } as const] : []),
]

export type Play = {
  /** What the model says, one speech a request; the last is repeated. A number is an HTTP status, a text a whole body. */
  readonly replies: readonly (Speech | number | string)[]
  readonly tools?: readonly object[]
  /** The executables that exist; absent: `repeat` alone. */
  readonly staged?: readonly ToolName[]
  readonly max?: number
  readonly args?: readonly string[]
  readonly message?: string
  readonly env?: { readonly [name: string]: string }
  readonly before?: (home: Nest) => Promise<unknown>
  /** Instead of `tool loop`: the whole command line, given the list of tools. */
  readonly words?: (list: string) => readonly string[]
}

export type Reply = { readonly name: string; readonly args: unknown; readonly result: string }

export type Played = Result & {
  readonly home: Nest
  readonly requests: number
  /** Every call whose result the model was given, in order. */
  readonly transcript: readonly Reply[]
  readonly fake: Fake
  readonly receipts: readonly { readonly tool: string; readonly status: string }[]
  readonly trace: readonly { readonly agent: string; readonly event: string; readonly message: string }[]
}

export const say = (text: string): Speech => ({ text: [text] })

let ids = 0
export const call = (name: string, args: unknown) => ({ id: `call_${++ids}`, name, args: [JSON.stringify(args)] })
export const calls = (...made: readonly ReturnType<typeof call>[]): Speech => ({ calls: made })

export type ToolName = 'repeat' | 'fail' | 'hidden'

/**
 * Writes these tools: `repeat` says its argument back, byte for byte; `fail` fails; `hidden` is on no list. Each one more is a sandbox more in
 * each home, because all are asked for their descriptions.
 */
export function stageTools(folder: string, names: readonly ToolName[] = ['repeat']): void {
  const describe = (name: string, properties: object) =>
    `#!/bin/sh\nif [ "$1" = --describe ]; then cat <<'J'\n${JSON.stringify({ name, description: `The ${name} tool.`, parameters: { type: 'object', properties } })}\nJ\nexit; fi\n`
  mkdirSync(folder, { recursive: true })
  const tool = (name: ToolName, properties: object, body: string) => {
    if (!names.includes(name)) return
    writeFileSync(join(folder, `${name}.sh`), `${describe(name, properties)}${body}\n`)
    chmodSync(join(folder, `${name}.sh`), 0o755)
  }
  tool('repeat', { value: {} }, `printf '%s' "$1"`)
  tool('fail', { value: {} }, `echo 'half a result'; echo 'no luck today' >&2; exit 3`)
  tool('hidden', {}, 'echo must never run; touch hidden-ran')
}

const listed = [{ name: 'repeat' }, { name: 'file_read' }]

export async function play(
  { backend, wire }: Loop,
  { replies, tools = listed, staged, max, args = ['--approve-all-medium'], message, env, before, words: said }: Play,
): Promise<Played> {
  const home = nest()
  const dialect = dialectOf(wire)
  const fake = startFake(({ text }, n) => answer(dialect, replies[Math.min(n, replies.length - 1)] ?? 500, text))
  home.config(configFor(wire, fake.url))
  const folder = join(home.dir, 'ops')
  stageTools(join(folder, 'skills'), staged)
  const list = join(folder, 'tools.json')
  writeFileSync(list, JSON.stringify(tools))
  const words = said?.(list) ?? [
    'tool',
    'loop',
    '--tool-backend',
    backend,
    ...args,
    '--',
    message ?? 'go',
    'Be brief.',
    list,
    ...(max === undefined ? [] : [String(max)]),
  ]
  const path = `${import.meta.dir}:/usr/bin:${process.env.PATH}`
  await before?.(home)
  const result = await home.run(words, { env: { PATH: path, FAR_KEY: 'sk-far-away-key', ...env }, through: alone, timeoutMs: 25_000 })
  fake.stop()
  return {
    ...result,
    home,
    fake,
    requests: fake.asked.length,
    transcript: transcriptOf(wire, (fake.asked.at(-1)?.text ?? '{}').replaceAll(home.dir, '/nest')),
    receipts: lines(join(home.home, '.braidclaw/tool_receipts.log')),
    trace: lines(join(home.home, '.braidclaw/agents/default/agent.jsonl')),
  }
}

function configFor(wire: Loop['wire'], url: string): string {
  const provider = `[providers.models.far]\nkind = "${wire}"\nmodel = "model-1"\nbase_url = "${url}"\napi_key_env = "FAR_KEY"\nmax_retries = 0\ncontext_tokens = 1000000\n`
  return `${minimumConfig.replace('default_provider = "local"', 'default_provider = "far"').replace('default_model = "mock"', 'default_model = "model-1"')}\n${provider}`
}

function dialectOf(wire: Loop['wire']): Dialect {
  const found = dialects.find(({ kind }) => kind === wire)
  if (!found) throw new Error(`no dialect ${wire}`)
  return found
}

function answer(dialect: Dialect, reply: Speech | number | string, request: string): Response {
  if (typeof reply === 'string') return new Response(reply)
  if (typeof reply === 'number') return new Response(dialect.errorBody('broken', 'the model is broken'), { status: reply })
  if (/"stream":\s*true/.test(request)) return sends(dialect.events(reply))
  return new Response(dialect.whole(reply), { headers: { 'content-type': 'application/json' } })
}

/** What the last request holds of calls and their results. */
function transcriptOf(wire: Loop['wire'], request: string): readonly Reply[] {
  const messages = field(JSON.parse(request), 'messages')
  const list: readonly unknown[] = Array.isArray(messages) ? messages : []
  return wire === 'anthropic' ? fromBlocks(list) : fromMessages(list)
}

function fromMessages(messages: readonly unknown[]): readonly Reply[] {
  const made = messages.flatMap((message) => array(field(message, 'tool_calls')))
  return messages
    .filter((message) => field(message, 'role') === 'tool')
    .map((message) => {
      const from = made.find((one) => field(one, 'id') === field(message, 'tool_call_id'))
      const named = field(from, 'function')
      return {
        name: String(field(named, 'name')),
        args: parsed(String(field(named, 'arguments'))),
        result: String(field(message, 'content')),
      }
    })
}

function fromBlocks(messages: readonly unknown[]): readonly Reply[] {
  const blocks = messages.flatMap((message) => array(field(message, 'content')))
  const made = blocks.filter((block) => field(block, 'type') === 'tool_use')
  return blocks
    .filter((block) => field(block, 'type') === 'tool_result')
    .map((block) => {
      const from = made.find((one) => field(one, 'id') === field(block, 'tool_use_id'))
      return { name: String(field(from, 'name')), args: field(from, 'input'), result: textIn(field(block, 'content')) }
    })
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

function textIn(content: unknown): string {
  return typeof content === 'string'
    ? content
    : array(content)
        .map((part) => String(field(part, 'text')))
        .join('')
}

function field(value: unknown, key: string): unknown {
  return isObject(value) ? value[key] : undefined
}

function array(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

function lines<T>(path: string): T[] {
  try {
    return readFileSync(path, 'utf8')
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
  } catch {
    return []
  }
}
