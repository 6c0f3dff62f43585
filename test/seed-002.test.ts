/** Seed 002's verification list, each through the real executable in a real shell. */

import { expect, test } from 'bun:test'
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Nest, nest } from './support/cli.ts'
import { needs } from './support/needs.ts'
import { shell, stub } from './support/shell.ts'
import { isDeep } from './support/tier.ts'

const root = join(import.meta.dir, '..')

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

test('without a command: the help at a terminal, and an error where nobody is there', async () => {
  using at = nest()
  const { code, stdout, stderr } = await at.run([], { env: stub })
  expect([code, stdout, stderr]).toEqual([2, '', expect.stringContaining('nothing to answer')])
  expect((await at.terminal([], [], { env: stub })).stdout).toContain('"What is 2+2?"')
  expect((await at.run(['help', 'filter'])).stdout).toContain('-s [--system]')
})

/** The list "Verification" of the seed, its lines as they stand there. Lines 2, 3 and 16 run in the sources, the others in the home. */
const typed = {
  1: `source lib/log.sh lib/llm.sh lib/compose.sh
echo "Hello" | llm_call --system "$(compose_system agents/default)"`,
  2: './test/run_all.sh',
  4: 'echo "Hello" | shellclaw',
  5: 'shellclaw "What is 2+2?"',
  6: 'cat file.txt | shellclaw -s "Summarize this"',
  7: 'shellclaw "List 3 colors" | wc -l',
  8: 'SHELLCLAW_LLM_BACKEND=stub shellclaw "test"',
  9: 'shellclaw -c "follow up"',
  10: 'shellclaw reset',
  11: 'shellclaw session',
  12: 'cat agents/default/sessions/current.jsonl | jq .',
  13: 'cat agents/default/agent.jsonl | jq .',
  14: 'shellclaw init',
  15: 'shellclaw config',
  16: 'SHELLCLAW_TOOL_BACKEND=bash ./test/test_tool_loop/run.sh',
} as const

test.if(needs('jq'))(
  'the verification lines of the filter, the session and the infrastructure run as they are typed in the seed',
  async () => {
    using at = nest()
    const script = [14, 1, 4, 5, 6, 7, 8, 9, 11, 12, 13, 10, 15] as const
    // The first line begins in a shell without the functions.
    const run = (number: (typeof script)[number]) => (number === 1 ? `bash -s <<'END'\n${typed[1]}\nEND` : `{ ${typed[number]}; }`)
    const lines = script.map((number) => `echo "== ${number}"\n${run(number)}\n[ $? -eq 0 ] || echo "exit $?"`).join('\n')
    const home = join(at.home, '.braidclaw')
    mkdirSync(home, { mode: 0o700 })
    symlinkSync(join(root, 'lib'), join(home, 'lib'))
    writeFileSync(join(home, 'file.txt'), 'one\ntwo\n')
    const { code, stdout, stderr } = await shell(at, `cd ~/.braidclaw; eval "$(braidclaw shell-init)"\n${lines}`)
    const [, ...parts] = stdout.split(/^== (\d+)\n/m)
    const printed = Object.fromEntries(Array.from({ length: parts.length / 2 }, (_, n) => [parts[2 * n], parts[2 * n + 1]]))
    expect([code, stdout.includes('exit '), stderr.replace(/^The offline helper .*\n/, '')]).toEqual([0, false, ''])
    for (const [n, line] of [1, 4, 5, 6].entries()) expect(printed[line]).toBe(`stub response ${n + 1}\n`)
    expect([printed[7]?.trim(), printed[8], printed[9]]).toEqual(['1', 'stub response 6\n', 'stub response 7\n'])
    expect(printed[14]).toMatch(/created +sessions .*\n.*\ncreated +agents .*agents\.json\ncreated +variables .*shellclaw\.env\n/)
    expect(printed[11]?.match(/ user: /g)).toHaveLength(7)
    expect(printed[12]?.match(/"role": "assistant"/g)).toHaveLength(7)
    expect(printed[13]?.match(/"event": "llm_response"/g)).toHaveLength(7)
    expect(printed[10]).toStartWith('archived ')
    expect(printed[15]).toContain('default_provider = "stub"')
    expect(JSON.parse((await at.run(['memory', 'list', '--json'])).stdout)).toHaveLength(6)
  },
)

/** Runs a line in the folder of the sources; the bound is that of the test. */
async function inSources(line: string) {
  using at = nest()
  const child = Bun.spawn(['bash', '-c', line], { cwd: root, env: at.env, stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' })
  const [stdout, stderr, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
  return { code, stdout, stderr }
}

test.if(needs('jq'))(
  '2: ./test/run_all.sh',
  async () => {
    const { code, stdout } = await inSources(typed[2])
    expect([code, stdout.match(/^\d+ checks, 0 failed$/gm)?.length, stdout.match(/^FAIL.*$/gm)]).toEqual([0, 12, null])
  },
  120_000,
)

test.if(needs('shellcheck'))('3: shellcheck passes on all .sh files, and on the other scripts of the tool loops', async () => {
  using at = nest()
  const files = [...new Bun.Glob('{lib,test,bridges,docs,examples}/**/*.sh').scanSync(root)].filter(
    (path) => !path.includes('node_modules'),
  )
  expect(files.length).toBeGreaterThan(15)
  const all = [...files, 'bridges/tool-loop/bash', 'bridges/tool-loop/llm'].map((path) => `'${path}'`).join(' ')
  expect(await shell(at, `cd '${root}' && shellcheck ${all}`)).toEqual({ code: 0, stdout: '', stderr: '' })
})

const inDepth = isDeep ? test.if(needs('bwrap', 'jq', 'curl')) : () => {}
inDepth(
  '16: the shared tests of a tool loop, as the seed starts them',
  async () => {
    const { code, stderr } = await inSources(typed[16])
    expect([code, / 5 pass\n 0 fail\n/.test(stderr)]).toEqual([0, true])
  },
  120_000,
)

test.if(needs('dash', 'jq'))('the twelve functions and shellclaw come from one line, in dash and in bash', async () => {
  using at = nest()
  const twelve =
    'log_event config_init config_get config_agent session_append session_load session_count session_clear llm_call llm_call_stub compose_system tool_loop'
  for (const program of ['dash', 'bash']) {
    const script = `set -eu; eval "$(braidclaw shell-init)"; for name in ${twelve} shellclaw; do command -v "$name"; done; llm_call_stub x`
    const { code, stdout, stderr } = await shell(at, `${program} -c '${script}'`, {})
    const answer = `stub response ${program === 'dash' ? 1 : 2}`
    expect([code, stdout, stderr]).toEqual([0, [...twelve.split(' '), 'shellclaw', answer, ''].join('\n'), ''])
  }
})
