/** Seed 002's verification list, each through the real executable in a real shell. */

import { expect, test } from 'bun:test'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Nest, nest } from './support/cli.ts'
import { needs } from './support/needs.ts'
import { shell, stub } from './support/shell.ts'

const agentFile = (at: Nest, path: string) => join(at.home, '.braidclaw/agents/default', path)

const lines = (path: string) =>
  readFileSync(path, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))

/** The same words with fewer lines to read. */
const said = (at: Nest) => lines(agentFile(at, 'sessions/current.jsonl')).map(({ role, content }) => `${role}: ${content}`)

function soul(at: Nest, text: string): void {
  mkdirSync(agentFile(at, ''), { recursive: true })
  writeFileSync(agentFile(at, 'soul.md'), text)
}

test.if(needs('jq'))('1: the pieces work without the entry point, as a library and as sub-commands', async () => {
  using at = nest()
  soul(at, 'You are brief.\n')
  const { code, stdout, stderr } = await shell(
    at,
    `braidclaw compose | cmp - ~/.braidclaw/agents/default/soul.md && echo Hello | braidclaw -s "$(braidclaw compose)"
     braidclaw session append user "by hand" && echo "from a pipe" | braidclaw session append assistant
     braidclaw session count && braidclaw log note "a script's own line" && tail -1 ~/.braidclaw/agents/default/agent.jsonl | jq -r .message`,
  )
  expect([code, stdout, stderr]).toEqual([0, "stub response 1\n4\na script's own line\n", ''])
  expect(said(at)).toEqual(['user: Hello', 'assistant: stub response 1', 'user: by hand', 'assistant: from a pipe'])
})

test('4: echo "Hello" | braidclaw: the answer, one newline, nothing else', async () => {
  using at = nest()
  expect(await shell(at, 'echo "Hello" | braidclaw')).toEqual({ code: 0, stdout: 'stub response 1\n', stderr: '' })
})

test('5: the message as an argument, as several, and behind --', async () => {
  using at = nest()
  const script = 'braidclaw "What is 2+2?"; braidclaw what is this; braidclaw hello; braidclaw -- agent'
  expect((await shell(at, script)).stdout).toBe('stub response 1\nstub response 2\nstub response 3\nstub response 4\n')
  expect(said(at).filter((line) => line.startsWith('user'))).toEqual([
    'user: What is 2+2?',
    'user: what is this',
    'user: hello',
    'user: agent',
  ])
})

test('6: cat file | braidclaw -s: text over text', async () => {
  using at = nest()
  at.file('file.txt', 'one\ntwo\n')
  const { stdout } = await shell(at, 'cat file.txt | braidclaw -s "Summarize this"; cat file.txt | braidclaw -s "Be brief" "What is this?"')
  expect(stdout).toBe('stub response 1\nstub response 2\n')
  expect(said(at)).toEqual([
    'user: one\ntwo',
    'assistant: stub response 1',
    'user: What is this?\n\none\ntwo',
    'assistant: stub response 2',
  ])
})

test('7: it composes in pipelines', async () => {
  using at = nest()
  expect((await shell(at, 'braidclaw "List 3 colors" | wc -l')).stdout.trim()).toBe('1')
  const { stdout } = await shell(at, 'printf hi | braidclaw | braidclaw -s shout')
  expect(stdout).toBe('stub response 3\n')
  expect(said(at).slice(2)).toEqual(['user: hi', 'assistant: stub response 2', 'user: stub response 2', 'assistant: stub response 3'])
})

test('8: the stub counts, also when four ask at once, and its turns are journalled like any other', async () => {
  using at = nest()
  const { stdout } = await shell(at, 'for n in 1 2 3 4; do SHELLCLAW_LLM_BACKEND=stub braidclaw "test $n" & done; wait', {})
  expect(stdout.trimEnd().split('\n').sort()).toEqual([1, 2, 3, 4].map((n) => `stub response ${n}`))
  const runs = JSON.parse((await at.run(['run', 'list', '--json'])).stdout)
  expect(runs).toHaveLength(4)
  expect(runs[0]).toMatchObject({ provider: 'stub', channel: 'filter', code: 'answered' })
  expect((await at.run(['memory', 'search', 'test', '--json'])).stdout).toContain('test')
  expect((await at.run(['replay', '--all'])).code).toBe(0)
})

test('9: -c goes on with what was said; without it each call stands alone', async () => {
  using at = nest()
  const script = 'braidclaw "Hello" && braidclaw -c "What did I just say?" && braidclaw -c "And then?" && braidclaw "Something else"'
  expect((await shell(at, script)).code).toBe(0)
  const conversations = JSON.parse((await at.run(['memory', 'list', '--json'])).stdout)
  expect(conversations.map(({ turns }: { turns: number }) => turns)).toEqual([1, 3])
})

test('10: reset archives the session, and -c begins anew', async () => {
  using at = nest()
  await shell(at, 'braidclaw "Hello"')
  const { stdout } = await at.run(['reset'])
  const archive = stdout.replace('archived ', '').trim()
  expect(lines(archive).map(({ content }) => content)).toEqual(['Hello', 'stub response 1'])
  expect(existsSync(agentFile(at, 'sessions/current.jsonl'))).toBe(false)
  const next = await shell(at, 'braidclaw -c "What did I say?"; braidclaw -c "And now?"')
  expect(next).toEqual({
    code: 0,
    stdout: 'stub response 2\nstub response 3\n',
    stderr: 'note: nothing to continue; a new conversation begins\n',
  })
  const conversations = JSON.parse((await at.run(['memory', 'list', '--json'])).stdout)
  expect(conversations.map(({ turns }: { turns: number }) => turns)).toEqual([2, 1])
  expect((await at.run(['reset', '--json'])).stdout).toContain('"archive":"/')
  expect((await at.run(['reset'])).stdout).toBe('the session of "default" is empty\n')
})

test.if(needs('jq'))('11: session shows the conversation', async () => {
  using at = nest()
  await shell(at, 'braidclaw "Hello"; braidclaw -c "$(printf "two\\nlines")"')
  const when = String.raw`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`
  const { stdout } = await at.run(['session'])
  const shown = `^${when} user: Hello\n${when} assistant: stub response 1\n${when} user: two\n  lines\n${when} assistant: stub response 2\n$`
  expect(stdout).toMatch(new RegExp(shown))
  expect((await at.run(['session', '1'])).stdout).toBe(stdout.trimEnd().split('\n').slice(-1).join('').concat('\n'))
  expect((await shell(at, 'braidclaw session --json 2 | jq -r .role')).stdout).toBe('user\nassistant\n')
  expect((await at.run(['session', 'count'])).stdout).toBe('4\n')
})

test.if(needs('jq'))('12 and 13: jq reads the session and the trace, whose keys are the contract', async () => {
  using at = nest()
  await shell(at, 'braidclaw "Hello"')
  const { stdout, code } = await shell(
    at,
    `cd ~/.braidclaw/agents/default
     jq -c keys_unsorted sessions/current.jsonl agent.jsonl
     jq -r .event agent.jsonl
     jq -e '.ts | fromdate' sessions/current.jsonl agent.jsonl >/dev/null`,
  )
  const [session, trace] = ['["ts","role","content"]', '["ts","agent","event","message"]']
  expect([code, stdout.trimEnd().split('\n')]).toEqual([0, [session, session, trace, trace, 'user_input', 'llm_response']])
})

test('14: init creates the structure', async () => {
  using at = nest()
  expect((await at.run(['init'])).code).toBe(0)
  expect(readFileSync(agentFile(at, 'soul.md'), 'utf8')).toBe('You are a helpful personal assistant.\n')
  expect((await at.run(['compose'])).stdout).toBe('You are a helpful personal assistant.\n')
  soul(at, 'mine')
  expect((await at.run(['init'])).stdout).toContain('kept      soul')
  expect((await at.run(['compose'])).stdout).toBe('mine')
})

test('15: config prints what holds, and which file said so', async () => {
  using at = nest()
  mkdirSync(join(at.home, '.braidclaw/config'), { recursive: true })
  const file = join(at.home, '.braidclaw/config/shellclaw.env')
  writeFileSync(file, '# ours\nexport SHELLCLAW_MODEL="$(touch owned)"\nSHELLCLAW_DEFAULT_AGENT=default\ntouch owned\n')
  const { code, stdout, stderr } = await at.run(['config'])
  expect(code).toBe(0)
  expect(stdout).toContain('default_model = "$(touch owned)"\n')
  expect(stderr).toContain(`${file}:4: this line is not an assignment NAME=value`)
  expect((await at.run(['config', 'show', '--origin'])).stdout).toContain(`# environment: ${file}:2\n`)
  expect(existsSync(join(at.workspace, 'owned'))).toBe(false)
  expect((await at.run(['config', '--json'])).stdout).toContain('"default_agent": "default"')
})

test('without a command, at a terminal and with nothing on stdin: the help', async () => {
  using at = nest()
  const { code, stdout } = await at.run([], { env: stub })
  expect([code, stdout.includes('braidclaw "What is 2+2?"')]).toEqual([2, true])
  expect((await at.terminal([], [], { env: stub })).stdout).toContain('COMMANDS')
  expect((await at.run(['help', 'filter'])).stdout).toContain('-s [--system]')
})
