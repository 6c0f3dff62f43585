/** Seed 001's acceptance tests 1–10, each through the real executable. */

import { expect, test } from 'bun:test'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { TOML } from 'bun'
import { minimumConfig, type Nest, nest } from './support/cli.ts'
import { needs } from './support/needs.ts'
import { shell } from './support/shell.ts'

const ask = (home: Nest, message: string, responses: readonly object[], args: readonly string[] = []) =>
  home.run(['agent', '-m', message, ...args], { env: { BRAIDCLAW_MOCK_FIXTURE: home.fixture(responses) } })

const receipts = (home: Nest) =>
  readFileSync(join(home.home, '.braidclaw/tool_receipts.log'), 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))

test('1: init creates the config, the memory database and the workspace', async () => {
  using home = nest()
  const { code, stdout } = await home.run(['init'], { cwd: home.dir })
  expect(code).toBe(0)
  expect(stdout).toContain('config.toml')
  expect(existsSync(join(home.home, '.braidclaw/config.toml'))).toBe(true)
  expect(existsSync(join(home.home, '.braidclaw/memory.sqlite'))).toBe(true)
  expect(existsSync(join(home.home, 'braidclaw-workspace'))).toBe(true)
  expect((await home.run(['config', 'validate'])).code).toBe(0)
  expect((await home.run(['init'])).stdout).toContain('kept')

  const file = readFileSync(join(home.home, '.braidclaw/config.toml'), 'utf8')
  const written = JSON.parse(JSON.stringify(TOML.parse(file)))
  const specified = JSON.parse(JSON.stringify(TOML.parse(minimumConfig)))
  // Three values would change what holds without a file, so they stay comments (docs/seeds.md).
  for (const line of ['max_tool_rounds = 100', 'shell_timeout_s = 120', 'workspace_dir = "~/', 'tools_allow = ["file_read", "file_list"'])
    expect(file).toContain(`\n# ${line}`)
  delete specified.workspace_dir
  delete specified.channels.cli.tools_allow
  specified.security.forbidden_commands = ['shutdown', 'reboot', 'mkfs', 'dd']
  expect(written).toMatchObject({ ...specified, limits: { max_response_bytes: 1_000_000, tool_timeout_s: 30, http_timeout_s: 20 } })
  expect(written.limits).not.toHaveProperty('max_tool_rounds')

  using seeded = nest()
  expect((await seeded.run(['init', '--seed-defaults'], { cwd: seeded.dir })).code).toBe(0)
  const { workspace_dir, limits } = Object(TOML.parse(readFileSync(join(seeded.home, '.braidclaw/config.toml'), 'utf8')))
  expect([workspace_dir, limits]).toMatchObject(['~/braidclaw-workspace', { max_tool_rounds: 5, shell_timeout_s: 15 }])
})

test('2: config validation catches an invalid autonomy and names the allowed values', async () => {
  using home = nest()
  home.config(minimumConfig.replace('"supervised"', '"godmode"'))
  const { code, stdout, stderr } = await home.run(['config', 'validate'])
  expect(code).not.toBe(0)
  for (const word of ['godmode', 'readonly', 'supervised', 'full']) expect(stdout + stderr).toContain(word)
})

test('3: a text answer reaches stdout alone, and memory holds both sides', async () => {
  using home = nest()
  home.config(minimumConfig)
  const { code, stdout } = await ask(home, 'hi there', [{ text: 'hello' }])
  expect([code, stdout]).toEqual([0, 'hello\n'])
  const shown = await home.run(['memory', 'show', 'last', '--json'])
  expect(shown.stdout).toContain('"role":"user"')
  expect(shown.stdout).toContain('hi there')
  expect(shown.stdout).toContain('"role":"assistant"')
  expect(shown.stdout).toContain('hello')
})

test('4: a file_list that the model asks for runs inside the workspace, leaves a receipt, and ends in the answer', async () => {
  using home = nest()
  home.config(minimumConfig)
  home.file('notes/today.md', 'x')
  home.file('plan.txt', 'y')
  const { code, stdout } = await ask(home, 'list files', [
    { tool_calls: [{ name: 'file_list', arguments: { path: '.' } }] },
    { text: 'Files: {{last_tool_result}}' },
  ])
  expect(code).toBe(0)
  expect(stdout).toContain('Files: ')
  expect(stdout).toContain('plan.txt')
  expect(receipts(home)).toMatchObject([{ tool: 'file_list', status: 'allowed', risk: 'low' }])
  expect((await home.run(['receipt', 'verify'])).code).toBe(0)
})

test('5: a path outside the workspace is denied, with a receipt, and the provider is told', async () => {
  using home = nest()
  home.config(minimumConfig)
  const { code, stdout } = await ask(home, 'read it', [
    { tool_calls: [{ name: 'file_read', arguments: { path: '/etc/passwd' } }] },
    { text: 'I was told: {{last_tool_result}}' },
  ])
  expect(receipts(home)).toMatchObject([{ tool: 'file_read', status: 'denied' }])
  expect(stdout).not.toContain('root:')
  expect(stdout).toContain('I was told: Denied by path.')
  expect(code).toBe(3)
})

const writing = [
  { tool_calls: [{ name: 'file_write', arguments: { path: 'out.txt', content: 'written' } }] },
  { text: 'It says: {{last_tool_result}}' },
]
/** The seed's gate: a command asks before it runs, and is blocked when it is not allow-listed. */
const seedGate = minimumConfig.replace('[security]\n', '[security]\nask = "before"\nunlisted_commands = "block"\n')
const allTools = seedGate.replace('"shell"]', '"shell", "file_write"]')

test('6a: nobody to ask means no: exit 4, nothing written, a denied receipt', async () => {
  using home = nest()
  home.config(allTools)
  const { code, stderr } = await ask(home, 'write', writing)
  expect(code).toBe(4)
  expect(stderr).toContain('approv')
  expect(existsSync(join(home.workspace, 'out.txt'))).toBe(false)
  expect(receipts(home)).toMatchObject([{ tool: 'file_write', status: 'denied', risk: 'medium' }])
})

test('6b: at the terminal an empty answer denies', async () => {
  using home = nest()
  home.config(allTools)
  const { code, stdout } = await home.terminal(['agent', '-m', 'write'], [['[y/N', '\r']], {
    env: { BRAIDCLAW_MOCK_FIXTURE: home.fixture(writing) },
  })
  // docs/seeds.md: the change comes first; `?` shows the arguments.
  for (const word of ['+written', 'file_write: write', 'medium risk', 'writes to workspace', 'out.txt']) expect(stdout).toContain(word)
  expect(existsSync(join(home.workspace, 'out.txt'))).toBe(false)
  expect(code).toBe(3)
})

test('6c: at the terminal "y" approves', async () => {
  using home = nest()
  home.config(allTools)
  const { code } = await home.terminal(['agent', '-m', 'write'], [['[y/N', 'y\r']], {
    env: { BRAIDCLAW_MOCK_FIXTURE: home.fixture(writing) },
  })
  expect(readFileSync(join(home.workspace, 'out.txt'), 'utf8')).toBe('written')
  expect(receipts(home)).toMatchObject([{ tool: 'file_write', status: 'allowed', risk: 'medium' }])
  expect(code).toBe(0)
})

test('7: rm -rf / is blocked before execution', async () => {
  using home = nest()
  home.config(minimumConfig.replace('"supervised"', '"full"'))
  const kept = home.file('keep.txt', 'x')
  const { code } = await ask(home, 'clean up', [{ tool_calls: [{ name: 'shell', arguments: { command: 'rm -rf /' } }] }, { text: 'no' }])
  expect(receipts(home)).toMatchObject([{ tool: 'shell', status: 'denied', risk: 'high' }])
  expect(existsSync(kept)).toBe(true)
  expect(code).toBe(3)
})

test('8: an edited receipt is named', async () => {
  using home = nest()
  home.config(minimumConfig)
  const times = { name: 'time', arguments: {} }
  await ask(home, 'times', [{ tool_calls: [times, times, times] }, { text: 'done' }])
  const path = join(home.home, '.braidclaw/tool_receipts.log')
  const lines = readFileSync(path, 'utf8').split('\n')
  expect(lines.length).toBe(4)
  expect((await home.run(['receipt', 'verify'])).code).toBe(0)
  lines[1] = lines[1]?.replace('"allowed"', '"denied"') ?? ''
  writeFileSync(path, lines.join('\n'))
  const { code, stdout, stderr } = await home.run(['receipt', 'verify'])
  expect(code).toBe(9)
  expect(stdout + stderr).toContain('invalid chain at receipt 2')
})

test('the hash of a receipt is what a stranger computes; without a key it is the formula of the specification', async () => {
  using home = nest()
  home.config(`${minimumConfig.replace('[receipts]', '[receipts]\nhmac = false')}`)
  for (const path of ['a', 'b', 'c']) home.file(path, path)
  for (const path of ['a', 'b', 'c'])
    expect((await home.run(['tool', 'run', 'file_read', '--json', JSON.stringify({ path })])).code).toBe(0)
  for (const { receipt_hash, ...rest } of receipts(home)) {
    const canonical = JSON.stringify(Object.fromEntries(Object.entries(rest).sort(([a], [b]) => (a < b ? -1 : 1))))
    expect(new Bun.CryptoHasher('sha256').update(canonical).digest('hex')).toBe(receipt_hash)
  }
  expect((await home.run(['receipt', 'verify'])).code).toBe(0)
  const log = join(home.home, '.braidclaw/tool_receipts.log')
  const [first = '', second = '', third = ''] = readFileSync(log, 'utf8').split('\n')
  writeFileSync(log, `${[first, second.replace('"allowed"', '"denied"'), third].join('\n')}\n`)
  const { code, stdout, stderr } = await home.run(['receipt', 'verify'])
  expect([code, stdout + stderr]).toEqual([9, expect.stringContaining('invalid chain at receipt 2')])
})

test.if(needs('jq'))('the two lines of docs/proof.md that compute a hash by hand print the same', async () => {
  using home = nest()
  home.config(minimumConfig)
  expect((await home.run(['tool', 'run', 'time', '--json', '{}'])).code).toBe(0)
  const page = readFileSync(join(import.meta.dir, '../docs/proof.md'), 'utf8')
  const [, lines = ''] = /```sh\n(cd ~\/\.braidclaw .*?)```/s.exec(page) ?? []
  const { stdout } = await shell(home, lines)
  const [shown, computed] = stdout.trimEnd().split('\n')
  expect([shown, computed]).toEqual([receipts(home)[0].receipt_hash, receipts(home)[0].receipt_hash])
})

test('9: a provider that times out falls back to the next, and says so', async () => {
  using home = nest()
  const slow = home.fixture([{ error: 'timeout' }])
  home.config(`${minimumConfig.replace('default_provider = "local"', 'default_provider = "reliable"')}
[providers.models.bad]
kind = "mock"
fixture = "${slow}"
[providers.models.good]
kind = "mock"
fixture = "${home.fixture([{ text: 'from the good one' }])}"
[providers.models.reliable]
kind = "reliable"
providers = ["bad", "good"]
`)
  const { code, stdout, stderr } = await home.run(['agent', '-m', 'hi'])
  expect([code, stdout]).toEqual([0, 'from the good one\n'])
  expect(stderr).toContain('fallback')
  expect(stderr).toContain('timeout')
})

test('10: memory search finds an earlier conversation', async () => {
  using home = nest()
  home.config(minimumConfig)
  await ask(home, 'Remember the Aardvark adapter', [{ text: 'noted' }])
  await ask(home, 'Something else', [{ text: 'fine' }])
  const list = JSON.parse((await home.run(['memory', 'list', '--json'])).stdout)
  const { code, stdout } = await home.run(['memory', 'search', 'aardvark'])
  expect(code).toBe(0)
  const first = list.find((conversation: { title: string }) => conversation.title.includes('Aardvark'))
  expect(stdout).toContain(first.conversationId)
})
