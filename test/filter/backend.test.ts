/** `--tool-backend bash` behind our own commands: how it ends, what it is told, and what is refused before it begins. */

import { expect, test } from 'bun:test'
import { readdirSync, readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { executable, type Nest, nest } from '../support/cli.ts'
import { needs } from '../support/needs.ts'
import { until } from '../support/until.ts'
import { unknownQuestion } from '../support/window-questions.ts'

/** A model of the chat wire that answers when it is told to, and remembers what it was asked. */
function model({ waits = false } = {}) {
  const answer = Promise.withResolvers<void>()
  if (!waits) answer.resolve()
  const models: string[] = []
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    idleTimeout: 60,
    async fetch(request) {
      const unknown = unknownQuestion(request)
      if (unknown) return unknown
      models.push(String(Object(await request.json()).model))
      await answer.promise
      return Response.json({ choices: [{ message: { role: 'assistant', content: 'hi\u001b[2J' }, finish_reason: 'stop' }] })
    },
  })
  return { url: `http://127.0.0.1:${server.port}/v1`, models, [Symbol.dispose]: () => void server.stop(true) }
}

const knowing = (at: Nest, url: string) =>
  at.config(`default_provider = "far"
workspace_dir = "${at.workspace}"

[providers.models.far]
kind = "openai-compatible"
model = "model-1"
base_url = "${url}"
`)

const loop = ['--tool-backend', 'bash', '--tools', 'default']

/** Processes that were started with this text in their environment. */
const running = (text: string) =>
  readdirSync('/proc').filter((pid) => {
    try {
      return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/environ`, 'latin1').includes(text)
    } catch {
      return false
    }
  })

test.if(needs('bwrap', 'jq', 'curl')).each([
  ['SIGTERM', 'the filter', ['hello', ...loop], 130],
  ['SIGTERM', 'tool loop', ['tool', 'loop', '--tool-backend', 'bash', 'hello', '', 'default'], 1],
  ['SIGINT', 'the filter', ['hello', ...loop], 130],
] as const)('%s to %s alone ends the script too', async (signal, _, words, code) => {
  using at = nest()
  using far = model({ waits: true })
  knowing(at, far.url)
  const child = Bun.spawn([executable, ...words], { env: at.env, cwd: at.workspace, stdio: ['ignore', 'pipe', 'pipe'] })
  await until(() => far.models.length === 1)
  child.kill(signal)
  const [stdout] = await Promise.all([child.stdout.text(), child.exited])
  expect([child.exitCode, stdout]).toEqual([code, ''])
  await until(() => running(`HOME=${at.home}`).length === 0)
})

test.if(needs('bwrap', 'jq', 'curl'))('the model that a provider of ours names is sent by its own name', async () => {
  using at = nest()
  using far = model()
  knowing(at, far.url)
  for (const named of [['-m', 'far/zip'], ['-m', 'far'], []]) expect((await at.run(['hello', ...loop, ...named])).code).toBe(0)
  expect(far.models).toEqual(['zip', 'model-1', 'model-1'])
})

test('without bash it is said what is missing', async () => {
  using at = nest()
  // All that the launcher itself needs.
  symlinkSync('/usr/bin/readlink', join(at.dir, 'readlink'))
  const { code, stderr } = await at.run(['hello', ...loop], { env: { PATH: at.dir } })
  expect(code).toBe(1)
  expect(stderr).toEndWith('error: --tool-backend bash: bash is missing; install it, or use --tool-backend native\n')
})

test('an empty question is none, in our own loop either', async () => {
  using at = nest()
  const { code, stdout, stderr } = await at.run(['tool', 'loop', ' ', '', 'default'])
  expect([code, stdout, stderr]).toEqual([1, '', 'error: nothing to answer: the message is empty\n'])
})

test('a wrong command line of "tool loop" ends with 1, for 2 means too many rounds', async () => {
  using at = nest()
  expect((await at.run(['tool', 'loop', 'hi'])).code).toBe(1)
  expect((await at.run(['tool', 'loop', 'hi', '', 'default', 'many'])).code).toBe(1)
  expect((await at.run(['tool', 'lop', 'hi'])).code).toBe(2)
})

test('--tools with nothing in it is not the current folder', async () => {
  using at = nest()
  const { code, stderr } = await at.run(['hello', '--tools', ''])
  expect(code).toBe(2)
  expect(stderr).toEndWith('error: --tools "": name a file, a folder or "default"\n')
})

test('two formats contradict each other', async () => {
  using at = nest()
  const { code, stderr } = await at.run(['agent', '-m', 'x', '--json', '--output-format', 'text'])
  expect(code).toBe(2)
  expect(stderr).toEndWith('error: --json and --output-format text name two formats; pass one\n')
})

test('what is to be pasted into a shell is quoted for it', async () => {
  using at = nest()
  at.file('my notes/.braidclaw/config.toml', '[limits]\nmax_tool_rounds = 2\n')
  const { stderr } = await at.run(['agent', '-m', 'x', '-C', join(at.workspace, 'my notes')])
  expect(stderr).toContain(`braidclaw trust '${join(at.workspace, 'my notes')}'`)
  const made = await at.run(['tool', 'new', 'greet', '--tools', 'my tools'])
  expect(made.stderr).toContain(`braidclaw tool describe '${join(at.workspace, 'my tools')}';`)
})
