/** A model on loopback for many talks at once: it reads a file, then says the word of the last message again. */

import { isObject } from '../../src/kit/json.ts'
import { chunk, done } from './raw-server.ts'
import { unknownQuestion } from './window-questions.ts'

export type EchoModel = Disposable & {
  /** The lines of a configuration that define it. */
  readonly toml: string
  /** What a server needs to use it. */
  readonly args: readonly string[]
  readonly env: { readonly [name: string]: string }
  /** The bodies of the requests so far. */
  readonly asked: readonly string[]
}

/** A message "slow WORD" is answered after half a minute; any other "VERB WORD" after `delayMs`, in three pieces. */
export function echoModel(delayMs = 0): EchoModel {
  const asked: string[] = []
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    idleTimeout: 0,
    async fetch(request) {
      const unknown = unknownQuestion(request)
      if (unknown) return unknown
      const text = await request.text()
      asked.push(text)
      const [verb = '', word = ''] = lastMessage(JSON.parse(text)).split(' ')
      await Bun.sleep(verb === 'slow' ? 30_000 : delayMs)
      const body = isAnswered(JSON.parse(text)) ? said(word) : reading(word)
      return new Response(`${body}${done}`, { headers: { 'content-type': 'text/event-stream' } })
    },
  })
  return {
    args: ['--model', 'echo/echo'],
    env: { ECHO_API_KEY: 'none' },
    toml: `[providers.models.echo]
kind = "openai-compatible"
model = "echo"
base_url = "http://127.0.0.1:${server.port}/v1"
api_key_env = "ECHO_API_KEY"
`,
    asked,
    [Symbol.dispose]: () => void server.stop(true),
  }
}

function reading(word: string): string {
  const call = { index: 0, id: `call_${word}`, type: 'function', function: { name: 'file_read', arguments: '{"path":"notes.txt"}' } }
  return `${chunk({ tool_calls: [call] })}${chunk({}, 'tool_calls')}`
}

function said(word: string): string {
  return `${['I ', 'read ', word].map((content) => chunk({ content })).join('')}${chunk({}, 'stop')}`
}

function messagesOf(body: unknown): readonly unknown[] {
  return isObject(body) && Array.isArray(body.messages) ? body.messages : []
}

function roleOf(message: unknown): unknown {
  return isObject(message) ? message.role : undefined
}

function lastMessage(body: unknown): string {
  const last = messagesOf(body).findLast((each) => roleOf(each) === 'user')
  return isObject(last) ? String(last.content) : ''
}

/** Whether the tool of this message has answered. */
function isAnswered(body: unknown): boolean {
  return roleOf(messagesOf(body).at(-1)) === 'tool'
}
