/** How the two scripts begin and end: whose log, what is no question, a signal, a caller that is gone, a terminal. */

import { test as always, expect } from 'bun:test'
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { executable, minimumConfig, type Nest, nest } from '../../support/cli.ts'
import { needs } from '../../support/needs.ts'
import { sleeperOf, uniqueSeconds } from '../../support/sleeper.ts'
import { isDeep } from '../../support/tier.ts'
import { until } from '../../support/until.ts'
import { stageTools } from './stage.ts'

const test = always.if(needs('bwrap', 'jq', 'curl'))

const both = ['bash', 'llm'] as const
/** The scripts that a test tries: the fast tier tries one of them, by turns. */
const [oneWay, otherWay] = isDeep ? [both, both] : [['bash'] as const, ['llm'] as const]
const slowSeconds = uniqueSeconds()
const scriptOf = (name: string) => join(import.meta.dir, '../../../bridges/tool-loop', name)

type Reply = { readonly content?: string; readonly call?: string }

/** A model of the chat wire. `asked` resolves with its first request, which is answered once `answer` was called. */
function model(replies: readonly Reply[], { waits = false } = {}) {
  const [asked, answer] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const state = { requests: 0 }
  if (!waits) answer.resolve()
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    idleTimeout: 60,
    async fetch() {
      const { content = null, call } = replies[Math.min(state.requests++, replies.length - 1)] ?? {}
      asked.resolve()
      await answer.promise
      const tool_calls = call === undefined ? [] : [{ id: 'call_1', type: 'function', function: { name: call, arguments: '{}' } }]
      const message = { role: 'assistant', content, ...(call === undefined ? {} : { tool_calls }) }
      return Response.json({ choices: [{ message, finish_reason: call === undefined ? 'stop' : 'tool_calls' }] })
    },
  })
  return {
    url: `http://127.0.0.1:${server.port}/v1`,
    asked: asked.promise,
    answer: answer.resolve,
    requests: () => state.requests,
    [Symbol.dispose]: () => void server.stop(true),
  }
}

/** Beside the usual tools one that begins and does not end. */
function listIn({ dir }: Nest): string {
  stageTools(join(dir, 'ops/skills'))
  const slow = join(dir, 'ops/skills/slow.sh')
  const description = '{"name":"slow","description":"Takes long.","parameters":{"type":"object","properties":{}}}'
  writeFileSync(slow, `#!/bin/sh\nif [ "$1" = --describe ]; then echo '${description}'; exit; fi\nexec sleep ${slowSeconds}\n`)
  chmodSync(slow, 0o755)
  const list = join(dir, 'ops/tools.json')
  writeFileSync(list, '[{"name":"slow"},{"name":"repeat"}]')
  return list
}

function environment({ dir, env, workspace }: Nest, url: string) {
  mkdirSync(join(dir, 'tmp'), { recursive: true })
  return {
    ...env,
    PATH: `${import.meta.dir}:/usr/bin:/bin`,
    BRAIDCLAW: executable,
    BRAIDCLAW_WORKSPACE: workspace,
    BRAIDCLAW_SECURITY_APPROVE_ALL_MEDIUM: 'true',
    OPENAI_API_KEY: 'k',
    OPENAI_BASE_URL: url,
    TOOL_LOOP_MODEL: 'm',
    TMPDIR: join(dir, 'tmp'),
  }
}

function begin(name: string, words: readonly string[], env: { readonly [name: string]: string }, stdin = '') {
  return Bun.spawn(['bash', scriptOf(name), ...words], { env, stdin: new Blob([stdin]), stdout: 'pipe', stderr: 'pipe' })
}

async function ended(child: ReturnType<typeof begin>) {
  const [stdout, stderr] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
  return { code: child.exitCode, stdout, stderr }
}

const events = (path: string) =>
  readFileSync(path, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line).event)

test.each(oneWay)('%s: an agent that is not there ends it before the model is asked, and is not made', async (name) => {
  using at = nest()
  using far = model([{ content: 'no' }])
  const { code, stdout, stderr } = await ended(
    begin(name, ['go', '', listIn(at)], { ...environment(at, far.url), TOOL_LOOP_AGENT: 'ghost' }),
  )
  expect([code, stdout, far.requests()]).toEqual([1, '', 0])
  expect(stderr).toContain('no agent "ghost"; there are: default')
  expect(existsSync(join(at.home, '.braidclaw/agents/ghost'))).toBe(false)
})

test.each(otherWay)('%s: an empty question, or an empty pipe, is none', async (name) => {
  using at = nest()
  using far = model([{ content: 'no' }])
  const list = listIn(at)
  for (const [question, stdin] of [
    ['', ''],
    [' \n', ''],
    ['-', '\n'],
  ] as const) {
    const { code, stdout, stderr } = await ended(begin(name, [question, '', list], environment(at, far.url), stdin))
    expect([code, stdout, stderr]).toEqual([1, '', `tool-loop ${name}: nothing to answer: the message is empty\n`])
  }
  expect(far.requests()).toBe(0)
})

test.each(oneWay)('%s: SIGTERM while the model thinks', async (name) => {
  using at = nest()
  using far = model([{ content: 'no' }], { waits: true })
  const env = environment(at, far.url)
  const child = begin(name, ['go', '', listIn(at)], env)
  await far.asked
  child.kill('SIGTERM')
  expect(await ended(child)).toEqual({ code: 1, stdout: '', stderr: `tool-loop ${name}: cancelled\n` })
  expect(readdirSync(env.TMPDIR)).toEqual([])
})

test.each(otherWay)('%s: SIGTERM while a tool runs ends the tool, and leaves its receipt', async (name) => {
  using at = nest()
  using far = model([{ call: 'slow' }, { content: 'no' }])
  const child = begin(name, ['go', '', listIn(at)], environment(at, far.url))
  await until(() => sleeperOf(slowSeconds))
  child.kill('SIGTERM')
  const { code, stdout } = await ended(child)
  expect([code, stdout, far.requests(), sleeperOf(slowSeconds)]).toEqual([1, '', 1, undefined])
  const [receipt] = JSON.parse((await at.run(['receipt', 'list', '--json'])).stdout)
  expect(receipt).toMatchObject({ tool: 'slow', status: 'failed', error: expect.stringContaining('cancelled') })
})

test.each(oneWay)('%s: after whoever asked was killed, no tool is run', async (name) => {
  using at = nest()
  using far = model([{ call: 'slow' }, { content: 'no' }], { waits: true })
  at.config(minimumConfig)
  const words = ['tool', 'loop', '--tool-backend', name, 'go', '', listIn(at)]
  const { pid, result } = at.start(words, { env: environment(at, far.url), timeoutMs: 20_000 })
  await far.asked
  process.kill(pid, 'SIGKILL')
  await until(() => !existsSync(`/proc/${pid}`))
  far.answer()
  expect((await result).code).toBe(null)
  expect([far.requests(), (await at.run(['receipt', 'list', '--json'])).stdout]).toEqual([1, '[]\n'])
})

test.each(otherWay)('%s: the iterations stand with the rest, wherever that is, or in LOG_FILE', async (name) => {
  using at = nest()
  using far = model([{ call: 'repeat' }, { content: 'done' }])
  using again = model([{ call: 'repeat' }, { content: 'done' }])
  const moved = join(at.dir, 'elsewhere')
  mkdirSync(join(moved, 'agents/coder'), { recursive: true })
  const env = { ...environment(at, far.url), SHELLCLAW_HOME: moved, SHELLCLAW_DEFAULT_AGENT: 'coder' }
  expect((await ended(begin(name, ['go', '', listIn(at)], env))).stdout).toBe('done\n')
  const all = ['user_input', 'iteration', 'tool_call', 'tool_result', 'iteration', 'llm_response']
  expect(events(join(moved, 'agents/coder/agent.jsonl'))).toEqual(all)
  expect(existsSync(join(at.home, '.braidclaw'))).toBe(false)
  const file = join(at.dir, 'iterations.jsonl')
  await ended(begin(name, ['go', '', listIn(at)], { ...env, OPENAI_BASE_URL: again.url, LOG_FILE: file }))
  expect(events(file)).toEqual(['iteration', 'iteration'])
})

test.each(oneWay)('%s: zero bytes in a question are no trouble', async (name) => {
  using at = nest()
  using far = model([{ content: 'done' }])
  const result = await ended(begin(name, ['-', '', listIn(at)], environment(at, far.url), 'a\0b'))
  expect(result).toEqual({ code: 0, stdout: 'done\n', stderr: '' })
})

test.each(otherWay)('%s: an answer does not steer the terminal', async (name) => {
  using at = nest()
  using far = model([{ content: 'a\u001b[31mb\u0007\u009b1mc ü\n\td' }])
  const [list, env, screen] = [listIn(at), environment(at, far.url), { text: '' }]
  const data = (_: unknown, bytes: Uint8Array) => {
    screen.text += new TextDecoder().decode(bytes)
  }
  const child = Bun.spawn(['bash', scriptOf(name), 'go', '', list], { env, terminal: { cols: 80, rows: 24, data } })
  expect(await child.exited).toBe(0)
  await until(() => screen.text.includes('d\r\n'))
  child.terminal?.close()
  expect(screen.text).toContain('a[31mb1mc ü\r\n')
})
