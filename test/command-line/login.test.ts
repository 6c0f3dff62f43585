/** `login` and `logout`: what they refuse, where a key goes, and what a variable of the environment means beside it. */

import { expect, test } from 'bun:test'
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Nest, nest } from '../support/cli.ts'

const secret = 'sk-planted-secret-000111222'
const keys = (at: Nest) => join(at.home, '.braidclaw/keys.env')

test.each([
  [['login', 'opnai', '--stdin'], 'did you mean "openai"', secret],
  [['login', 'ollama', '--stdin'], 'ollama needs no key', secret],
  [['login', 'openai'], 'needs a terminal', secret],
  [['login', '--stdin'], 'name a provider: openai, anthropic', secret],
  [['login', 'openai', '--stdin'], 'stdin holds no key', 'two words'],
  [['login', 'odd', '--stdin'], 'only names that end in _KEY or _TOKEN', secret],
  [['logout', 'opnai'], 'did you mean "openai"', secret],
  [['logout'], 'no key is stored', secret],
] as [string[], string, string][])('%j is refused: %s', async (words, says, stdin) => {
  using at = nest()
  at.config(
    '[providers.models.odd]\nkind = "openai-compatible"\nbase_url = "http://127.0.0.1:1/v1"\nmodel = "x"\napi_key_env = "SECRET_OF_MINE"\n',
  )
  const { code, stdout, stderr } = await at.run(words, { stdin })
  expect([code, stdout, existsSync(keys(at))]).toEqual([2, '', false])
  expect(stderr.toLowerCase()).toContain(says.toLowerCase())
  expect(stderr).not.toContain('planted')
})

test('logout of a provider without a stored key is an error, and says so', async () => {
  using at = nest()
  expect(await at.run(['logout', 'openai'])).toEqual({
    code: 1,
    stdout: '',
    stderr: 'error: no key of openai is stored; see: braidclaw login --list\n',
  })
})

test('a key from stdin is stored for its owner alone, replaced, listed without its text, and removed; other lines stay', async () => {
  using at = nest()
  const run = (words: readonly string[], stdin?: string, env = {}) => at.run(words, { ...(stdin ? { stdin } : {}), env })
  expect(await run(['login', 'openai', '--stdin'], `${secret}\n`)).toMatchObject({ code: 0, stderr: '' })
  expect([readFileSync(keys(at), 'utf8').includes(`OPENAI_API_KEY='${secret}'`), statSync(keys(at)).mode & 0o777]).toEqual([true, 0o600])
  writeFileSync(keys(at), `# mine\nOTHER_TOKEN='abc'\n${readFileSync(keys(at), 'utf8')}`)
  await run(['login', 'openai', '--stdin'], 'sk-second-secret-000111222')
  const text = readFileSync(keys(at), 'utf8')
  expect([text.startsWith("# mine\nOTHER_TOKEN='abc'\n"), text.includes('planted'), text.includes('sk-second')]).toEqual([
    true,
    false,
    true,
  ])
  const listed = await run(['login', '--list'])
  expect(listed.stdout).toMatch(/^openai +OPENAI_API_KEY +stored$/m)
  expect(listed.stdout).toMatch(/^gemini +GEMINI_API_KEY +not set$/m)
  expect(listed.stdout).toMatch(/^OTHER_TOKEN +OTHER_TOKEN +stored$/m)
  const json = JSON.parse((await run(['login', '--list', '--json'])).stdout)
  expect(json[0]).toEqual({ provider: 'openai', variable: 'OPENAI_API_KEY', stored: true, environment: false })
  expect(`${listed.stdout}${JSON.stringify(json)}`).not.toContain('second')
  expect((await run(['logout', 'openai', '--json'])).stdout).toBe('{"provider":"openai","variable":"OPENAI_API_KEY","stored":false}\n')
  expect(readFileSync(keys(at), 'utf8')).not.toContain('OPENAI_API_KEY')
  expect(readFileSync(keys(at), 'utf8')).toContain("OTHER_TOKEN='abc'")
})

test('a variable of the environment counts more, and both commands say so', async () => {
  using at = nest()
  const env = { OPENAI_API_KEY: 'sk-of-the-environment-1' }
  const stored = await at.run(['login', 'openai', '--stdin'], { env, stdin: secret })
  expect(stored.stderr).toBe('note: OPENAI_API_KEY is set in the environment and counts more\n')
  const removed = await at.run(['logout', 'openai'], { env })
  expect([removed.code, removed.stdout]).toEqual([0, 'the key of openai is removed\n'])
  expect(removed.stderr).toContain('OPENAI_API_KEY is still set in the environment')
})

test('eight processes that store keys at once lose none', async () => {
  using at = nest()
  const names = ['openai', 'anthropic', 'openrouter', 'gemini', 'groq', 'mistral', 'deepseek', 'xai']
  const results = await Promise.all(names.map((name) => at.run(['login', name, '--stdin'], { stdin: `sk-of-${name}-000111` })))
  expect(results.map(({ code }) => code)).toEqual(names.map(() => 0))
  const text = readFileSync(keys(at), 'utf8')
  expect(names.filter((name) => !text.includes(`${name.toUpperCase()}_API_KEY='sk-of-${name}-000111'`))).toEqual([])
})

test('at a terminal the provider is searched for, the key is typed unseen, and Ctrl-C stores nothing', async () => {
  using at = nest()
  const answers = [
    ['Of which provider', 'gro\r'],
    ['The key', `${secret}\r`],
  ] as const
  const left = await at.terminal(['login'], [answers[0], ['The key', '\u0003']])
  expect([left.code, existsSync(keys(at))]).toEqual([130, false])
  const { code, stdout } = await at.terminal(['login'], answers)
  expect([code, stdout.includes('planted'), readFileSync(keys(at), 'utf8').includes('GROQ_API_KEY=')]).toEqual([0, false, true])
})
