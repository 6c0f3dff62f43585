/** Commands that look after a home: providers, memory, receipts, init, doctor, trust, estop. */

import { expect, test } from 'bun:test'
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Nest, nest } from '../support/cli.ts'
import { needs } from '../support/needs.ts'
import { call, home, turn } from '../support/turns.ts'

const json = async (at: Nest, ...args: string[]) => JSON.parse((await at.run(args)).stdout)

test('provider list and test', async () => {
  using at = home()
  const { stdout } = await at.run(['provider', 'list'], { env: { OPENAI_API_KEY: 'sk-planted-secret-000111222' } })
  expect(stdout).toMatch(/^\* local +mock +mock$/m)
  expect(stdout).toMatch(/^ {2}openai_compatible +openai-compatible +local-model {2}OPENAI_API_KEY is set$/m)
  expect((await at.run(['provider', 'list'])).stdout).toContain('OPENAI_API_KEY is not set')
  const rows = await json(at, 'provider', 'list', '--json')
  expect(rows.find(({ name }: { name: string }) => name === 'local')).toMatchObject({ default: true, kind: 'mock' })
  const tested = await at.run(['provider', 'test', 'local'])
  expect(tested.code).toBe(0)
  expect(tested.stdout).toMatch(/^ok: local \(mock\) answered in \d+ ms: /)
})

test('memory list, search, show, export, clear', async () => {
  using at = home()
  await turn(at, [{ text: 'The aardvark answers.' }])
  await turn(at, [call('time', {}), { text: 'Late.' }])
  const list = await json(at, 'memory', 'list', '--json')
  expect(list).toHaveLength(2)
  expect((await at.run(['memory', 'list', '--limit', '1'])).stdout.trimEnd().split('\n')).toHaveLength(1)
  const [hit] = await json(at, 'memory', 'search', 'AARDVARK', '--json')
  expect(hit.conversationId).toBe(list[1].conversationId)
  const none = await at.run(['memory', 'search', 'zebra'])
  expect(none).toEqual({ code: 0, stdout: '', stderr: 'nothing found for "zebra"\n' })
  expect((await at.run(['memory', 'show', list[1].conversationId])).stdout).toContain('The aardvark answers.')
  expect((await at.run(['memory', 'show', 'last'])).stdout).toContain('Late.')
  expect((await at.run(['memory', 'show', 'nope'])).code).toBe(1)
  const lines = (await at.run(['memory', 'export'])).stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))
  expect(lines.filter(({ role }) => role === 'user')).toHaveLength(2)
  expect(Object.keys(lines[0])).toEqual([
    'conversation_id',
    'turn_id',
    'timestamp',
    'role',
    'content',
    'tool_calls',
    'tool_results',
    'provider',
    'model',
    'metadata',
  ])
  expect((await at.run(['memory', 'clear'])).code).toBe(2)
  expect((await at.run(['memory', 'clear', '--yes'])).stdout).toContain('forgot 2 conversations')
  expect(await at.run(['memory', 'list'])).toEqual({ code: 0, stdout: '', stderr: 'no conversations yet\n' })
  expect((await at.run(['receipt', 'verify'])).stdout).toContain('valid: 2 receipts;')
})

test('receipt list, show, verify, anchor', async () => {
  using at = home()
  expect((await at.run(['receipt', 'list'])).stderr).toBe('no receipts yet\n')
  expect((await at.run(['receipt', 'anchor'])).code).toBe(1)
  await turn(at, [call('time', {}), call('file_read', { path: '/etc/passwd' }), { text: 'x' }])
  expect((await at.run(['receipt', 'list'])).stdout).toMatch(/^ +1 .*allowed +low +time .*\n +2 .*denied +high +file_read /)
  const second = await json(at, 'receipt', 'show', '2')
  expect(await json(at, 'receipt', 'show', second.id, '--json')).toEqual(second)
  expect(second).toMatchObject({ seq: 2, status: 'denied' })
  expect((await at.run(['receipt', 'show', '99'])).code).toBe(1)
  const line = (await at.run(['receipt', 'anchor'])).stdout
  expect(line).toMatch(/^bc1:\S+:2:\S+\n$/)
  const anchor = at.file('anchor', line)
  await turn(at, [call('time', {}), { text: 'x' }])
  expect((await at.run(['receipt', 'verify', '--deep', '--against', anchor])).stdout).toContain('valid: 3 receipts')
  expect(await json(at, 'receipt', 'verify', '--against', line.trim(), '--json')).toMatchObject({ ok: true, count: 3 })
  const log = join(at.home, '.braidclaw/tool_receipts.log')
  writeFileSync(log, readFileSync(log, 'utf8').split('\n')[0]?.concat('\n') ?? '')
  expect((await at.run(['receipt', 'verify', '--against', anchor])).code).toBe(9)
})

test.if(needs('bwrap'))('init, doctor, trust, estop', async () => {
  using at = nest()
  const init = await at.run(['init'], { env: { OPENAI_API_KEY: 'sk-planted-secret-000111222' } })
  expect(init.stdout).toContain('created')
  expect(init.stderr).toContain('provider test openai')
  expect(readFileSync(join(at.home, '.braidclaw/config.toml'), 'utf8')).not.toContain('planted')
  expect(statSync(join(at.home, '.braidclaw')).mode & 0o777).toBe(0o700)
  const doctor = await at.run(['doctor'], { env: { OPENAI_API_KEY: 'x' } })
  expect([doctor.code, doctor.stdout.includes('✗')]).toEqual([0, false])
  const missing = await at.run(['doctor'])
  expect([missing.code, /✗ provider \* +openai .*OPENAI_API_KEY is not set/.test(missing.stdout)]).toEqual([1, true])

  at.file('.braidclaw/config.toml', '[limits]\nmax_tool_rounds = 3\n')
  const rounds = async () => (await json(at, 'config', 'show', '--json')).limits.max_tool_rounds
  expect(await rounds()).toBe(100)
  expect((await at.run(['config', 'show'])).stderr).toContain('braidclaw trust')
  expect((await at.run(['trust'])).stdout).toContain(': trusted')
  expect(await rounds()).toBe(3)
  expect((await at.run(['trust', '--list'])).stdout).toBe(`${at.workspace}\n`)
  await at.run(['trust', '--remove'])
  expect(await rounds()).toBe(100)

  expect(await json(at, 'estop', '--reason', 'drill', '--json')).toMatchObject({ stopped: true, reason: 'drill' })
  expect((await at.run(['doctor'])).stdout).toContain('drill')
  expect((await at.run(['estop', '--clear'])).stdout).toContain('cleared')
  expect((await at.run(['estop', '--clear'])).stdout).toContain('nothing to clear')
})

test('eight inits at once all succeed, and the files are whole', async () => {
  using at = nest()
  const done = await Promise.all(Array.from({ length: 8 }, () => at.run(['init'])))
  expect(done.map(({ code, stderr }) => [code, stderr.includes('error')])).toEqual(Array.from({ length: 8 }, () => [0, false]))
  expect(done.filter(({ stdout }) => /^created +config/m.test(stdout))).toHaveLength(1)
  expect((await at.run(['config', 'validate'])).code).toBe(0)
  expect(readdirSync(join(at.home, '.braidclaw')).filter((name) => name.startsWith('config.toml'))).toEqual(['config.toml'])
})

test('twelve folders that are trusted at once are all trusted, and none that is removed at once stays', async () => {
  using at = nest()
  const folders = Array.from({ length: 12 }, (_, number) => join(at.workspace, `p${number}`))
  for (const folder of folders) mkdirSync(folder)
  const each = async (...words: string[]) => Promise.all(folders.map(async (folder) => (await at.run(['trust', ...words, folder])).code))
  const listed = async () => (await json(at, 'trust', '--list', '--json')).toSorted()
  expect(await each()).toEqual(folders.map(() => 0))
  expect(await listed()).toEqual(folders.toSorted())
  expect(await each('--remove')).toEqual(folders.map(() => 0))
  expect(await listed()).toEqual([])
})
