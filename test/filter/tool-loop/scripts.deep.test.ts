/** The two scripts by themselves: what is missing is said, keys stay out of sight, and how a loop is chosen. */

import { test as always, expect } from 'bun:test'
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { executable, nest } from '../../support/cli.ts'
import { needs } from '../../support/needs.ts'
import { call, calls, play, say } from './stage.ts'

const test = always.if(needs('bwrap', 'jq', 'curl'))

const scripts = join(import.meta.dir, '../../../bridges/tool-loop')
const bashOn = { backend: 'bash', wire: 'anthropic' } as const
const llmOn = { backend: 'llm', wire: 'openai-compatible' } as const

async function direct(words: readonly string[], env: { readonly [name: string]: string }) {
  const child = Bun.spawn(['/usr/bin/bash', ...words], { env, stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' })
  const [stdout, stderr] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
  return { code: child.exitCode, stdout, stderr }
}

test('a program that is missing is named, with how to install it', async () => {
  using home = nest()
  const env = { PATH: join(home.dir, 'nothing'), HOME: home.home }
  const one = await direct([join(scripts, 'bash'), 'a', 'b', 'default'], env)
  expect([one.code, one.stdout]).toEqual([1, ''])
  expect(one.stderr).toContain('jq is missing; install it')
  const other = await direct([join(scripts, 'llm'), 'a', 'b', 'default'], env)
  expect([other.code, other.stderr]).toEqual([1, 'tool-loop llm: llm is missing; install it: pip install llm\n'])
})

test('wrong arguments, no model and a wrong id end with 1 before anything runs', async () => {
  using home = nest()
  const env = { PATH: '/usr/bin:/bin', HOME: home.home, BRAIDCLAW: executable }
  for (const [words, more, says] of [
    [['a', 'b'], {}, 'usage: tool_loop MESSAGE SYSTEM TOOLS [MAX]'],
    [['a', 'b', 'default', 'many'], {}, 'usage: tool_loop'],
    [['a', 'b', 'default'], {}, 'no model: set ANTHROPIC_API_KEY'],
    [['a', 'b', 'default'], { OPENAI_API_KEY: 'k' }, 'no model: set TOOL_LOOP_MODEL'],
    [['a', 'b', 'default'], { TOOL_LOOP_AGENT: '../x' }, 'is no id'],
    [['a', 'b', 'default'], { BRAIDCLAW: '/nowhere/braidclaw' }, 'set BRAIDCLAW to the braidclaw executable'],
  ] as const) {
    const { code, stdout, stderr } = await direct([join(scripts, 'bash'), ...words], { ...env, ...more })
    expect([code, stdout]).toEqual([1, ''])
    expect(stderr).toContain(says)
  }
})

test('what is no reply, and a status that is no success, end the bash loop with 1', async () => {
  const replies = [
    ['anthropic', '<html>gateway</html>'],
    ['anthropic', '{"content":null}'],
    ['openai-compatible', '{"choices":[]}'],
    ['openai-compatible', ''],
  ] as const
  for (const [wire, reply] of replies) {
    const { code, stdout, stderr } = await play({ backend: 'bash', wire }, { replies: [reply] })
    expect([code, stdout]).toEqual([1, ''])
    expect(stderr).toContain('answered what is no reply')
  }
  const closed = await play(bashOn, { replies: [418] })
  expect([closed.code, closed.stdout]).toEqual([1, ''])
  expect(closed.stderr).toContain('answered 418: the model is broken')
})

test('the key is on no command line, and still arrives', async () => {
  using spy = nest()
  const bin = join(spy.dir, 'bin')
  mkdirSync(bin)
  for (const name of ['curl', 'jq']) {
    writeFileSync(join(bin, name), `#!/bin/sh\nprintf '%s\\n' "$@" >> "${bin}/seen"\nexec /usr/bin/${name} "$@"\n`)
    chmodSync(join(bin, name), 0o755)
  }
  for (const [wire, header] of [
    ['anthropic', 'x-api-key'],
    ['openai-compatible', 'authorization'],
  ] as const) {
    const { code, fake } = await play({ backend: 'bash', wire }, { replies: [say('ok')], env: { PATH: `${bin}:/usr/bin:/bin` } })
    expect(code).toBe(0)
    expect(fake.asked[0]?.headers.get(header)).toContain('sk-far-away-key')
  }
  expect(readFileSync(join(bin, 'seen'), 'utf8')).not.toContain('sk-far-away-key')
})

test('an emergency stop ends the loops: a call that cannot be answered for is no result', async () => {
  for (const loop of [llmOn, { backend: 'native', wire: 'anthropic' } as const, bashOn]) {
    const replies = [calls(call('repeat', {})), say('no')]
    const { code, stdout } = await play(loop, { replies, before: (home) => home.run(['estop', '--reason', 'halt']) })
    expect({ loop, code, stdout }).toEqual({ loop, code: 1, stdout: '' })
  }
})

test('an unknown llm still works: its own words refuse an unknown tool, its own limit ends the loop', async () => {
  const env = { STAND_IN_BARE: '1' }
  const refused = await play(llmOn, {
    replies: [calls(call('hidden', {}), call('repeat', { value: 1 })), say('ok')],
    staged: ['repeat', 'hidden'],
    env,
  })
  expect([refused.code, refused.stdout]).toEqual([0, 'ok\n'])
  expect(refused.stderr).toContain('this llm is not known')
  expect(refused.transcript.map(({ result }) => result)).toEqual(['Error: tool "hidden" does not exist', '{"value":1}'])
  expect((await play(llmOn, { replies: [calls(call('repeat', {}))], max: 1, env })).code).toBe(2)
})

test('sourced, the function keeps the contract and logs question and answer with secrets taken out', async () => {
  const { home, fake } = await play(bashOn, { replies: [say('unused')] })
  fake.stop()
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: () => Response.json({ content: [{ type: 'text', text: 'Fine, sk-secret-1234567.' }], stop_reason: 'end_turn' }),
  })
  const env = {
    ...home.env,
    PATH: '/usr/bin:/bin',
    BRAIDCLAW: executable,
    ANTHROPIC_API_KEY: 'sk-secret-1234567',
    ANTHROPIC_BASE_URL: `http://127.0.0.1:${server.port}/`,
    TOOL_LOOP_MODEL: 'm',
  }
  const { code, stdout } = await direct(
    ['-c', `source ${join(scripts, 'bash')}; tool_loop 'How are you? sk-secret-1234567' '' default; echo "code $?"`],
    env,
  )
  await server.stop(true)
  expect([code, stdout]).toEqual([0, 'Fine, sk-secret-1234567.\ncode 0\n'])
  const log = readFileSync(join(home.home, '.braidclaw/agents/default/agent.jsonl'), 'utf8').trimEnd().split('\n').slice(-3)
  expect(log.map((line) => JSON.parse(line).event)).toEqual(['user_input', 'iteration', 'llm_response'])
  expect(log.join()).not.toContain('sk-secret')
})

test('the flag decides before the environment, the environment before the configuration', async () => {
  using home = nest()
  home.config(`${'\n'}[tools]\nbackend = "llm"\n`)
  const ask = (flags: readonly string[], env: { readonly [name: string]: string }) =>
    home.run(['tool', 'loop', ...flags, 'hello', '', 'default'], { env: { PATH: '/usr/bin:/bin', ...env } })
  expect((await ask(['--tool-backend', 'perl'], {})).stderr).toContain('--tool-backend "perl" does not exist; there are: native, bash, llm')
  expect((await ask([], {})).stderr).toContain('llm is missing')
  expect((await ask([], { SHELLCLAW_TOOL_BACKEND: 'bash' })).stderr).toContain('tool-loop bash: no model')
  expect((await ask([], { BRAIDCLAW_TOOL_BACKEND: 'bash', SHELLCLAW_TOOL_BACKEND: 'llm' })).stderr).toContain('tool-loop bash: no model')
  const native = await ask(['--tool-backend', 'native'], { BRAIDCLAW_TOOL_BACKEND: 'bash' })
  expect([native.code, native.stderr]).toEqual([0, ''])
})

test('the filter hands its loop over with --tool-backend: clean text on stdout, and too many rounds are a limit', async () => {
  for (const loop of [bashOn, llmOn]) {
    const words = (list: string) => ['--tools', list, '--tool-backend', loop.backend, '--approve-all-medium', '--max-turns', '1', 'go on']
    const answered = await play(loop, { replies: [calls(call('repeat', { value: 1 })), say('It said 1.')], words })
    expect([answered.code, answered.stdout, answered.transcript.length]).toEqual([0, 'It said 1.\n', 1])
    expect(answered.trace.map(({ event }) => event)).toEqual([
      'user_input',
      'iteration',
      'tool_call',
      'tool_result',
      'iteration',
      'llm_response',
    ])
    const endless = await play(loop, { replies: [calls(call('repeat', { value: 1 }))], words })
    expect([endless.code, endless.stdout]).toEqual([5, ''])
  }
})
