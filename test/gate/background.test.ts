/** Commands that stay in the background of a conversation, through a host with a scripted model and a real sandbox. */

import { describe, expect, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Conversation, Host } from '../../src/host/api.ts'
import type { ModelCall } from '../../src/providers/model-call.ts'
import type { AgentEvent } from '../../src/runtime/event.ts'
import { begin, type Place, place } from '../support/host.ts'
import { needs } from '../support/needs.ts'

const real = test.if(needs('bwrap', 'node', 'curl'))

type Call = readonly [name: string, input: object]

type Scene = {
  readonly at: Place
  readonly host: Host
  readonly conversation: Conversation
  /** One turn that makes these calls, one after the other. @returns what the model was told about each */
  turn(...calls: readonly Call[]): Promise<readonly string[]>
  /** One call. */
  call(name: string, input: object): Promise<string>
  /** Reads the output of a job until it contains the text. */
  until(id: string, text: string): Promise<string>
}

async function opened(host: Host, at: Place): Promise<Omit<Scene, 'host' | 'at'>> {
  const state: { calls: readonly Call[]; results: string[] } = { calls: [], results: [] }
  const model: ModelCall = async function* (messages) {
    const last = messages.at(-1)
    if (last?.role === 'tool') state.results.push(last.content)
    const [next] = state.calls.slice(state.results.length)
    if (next) yield { type: 'tool_use', name: next[0], input: { ...next[1] } }
    else yield { type: 'text', content: 'done' }
  }
  const conversation = await begin(host, model)
  const turn: Scene['turn'] = async (...calls) => {
    Object.assign(state, { calls, results: [] })
    for await (const event of conversation.run('go')) await answer(conversation, event)
    return state.results
  }
  const call: Scene['call'] = async (name, input) => (await turn([name, input]))[0] ?? ''
  void at
  return {
    conversation,
    turn,
    call,
    async until(id, text) {
      for (let all = ''; ; ) {
        all += await call('shell_output', { id })
        if (all.includes(text)) return all
        if (all.includes(`[${id} ended`)) throw new Error(all)
      }
    },
  }
}

/** Says yes to every question. */
async function answer(conversation: Conversation, event: AgentEvent): Promise<void> {
  if (event.type === 'gate') await conversation.approve(event.gateId, { allow: true, by: 'test' })
}

const full = '[security]\nautonomy = "full"\n[limits]\nmax_tool_rounds = 100\n'

async function scene(files: { readonly [path: string]: string }, work: (scene: Scene) => Promise<void>, config = full): Promise<void> {
  using at = place(config)
  for (const [path, text] of Object.entries(files)) writeFileSync(join(at.cwd, path), text)
  const host = at.host()
  try {
    await work({ at, host, ...(await opened(host, at)) })
  } finally {
    await host.close()
  }
}

const server = `require('http').createServer((_, to) => to.end(require('fs').readFileSync('page', 'utf8'))).listen(8123, '127.0.0.1', () => console.log('listening'))`
const serve = { command: 'node server.js', background: true }
const curl = (more = '') => ({ command: `curl -sS -m 5 http://127.0.0.1:8123/ ${more}` })

describe('try', () => {
  real('x', async () => {
    await scene({ 'server.js': server, page: 'one' }, async ({ call, turn }) => {
      console.log(await call('shell', serve))
      console.log(await call('shell', curl()))
      console.log(await call('file_write', { path: 'page', content: 'two' }))
      console.log(await call('shell', curl()))
      console.log(await call('shell', { command: 'echo three > page' }))
      console.log(await call('shell', curl()))
      console.log(await call('shell_output', { id: 'job-1' }))
      console.log(await call('shell', serve))
      console.log(await call('shell_stop', { id: 'job-1' }))
      console.log(await call('shell_output', { id: 'job-1' }))
    })
  })
})
void existsSync; void readdirSync; void readFileSync
