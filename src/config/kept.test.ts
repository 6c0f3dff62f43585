import { afterEach, beforeEach, expect, test } from 'bun:test'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Circumstances, keep, recall } from './kept.ts'
import { loadConfig } from './load.ts'

let folder = ''
let now: Circumstances
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'braidclaw-kept-'))
  now = { program: 'build 1', home: join(folder, 'home'), cwd: join(folder, 'project'), env: { HOME: folder, OTHER: 'x' }, flags: {} }
  for (const path of [now.home, now.cwd]) mkdirSync(path)
  writeToml('[limits]\nmax_tool_rounds = 7\n')
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const toml = () => join(now.home, 'config.toml')
const file = () => join(now.home, 'config.kept')

function writeToml(text: string): void {
  writeFileSync(toml(), text, { mode: 0o600 })
}

function folderInItsPlace(): void {
  rmSync(toml())
  mkdirSync(toml())
}

function projectConfig(): void {
  mkdirSync(join(now.cwd, '.braidclaw'))
  writeFileSync(join(now.cwd, '.braidclaw/config.toml'), '')
}

function withReference(): Circumstances {
  writeToml('workspace_dir = "$OTHER_FOLDER"')
  return now
}

function load(circumstances = now) {
  const loaded = loadConfig({ ...circumstances, trusted: () => true })
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems))
  const { config, origins } = loaded
  return { config, origins, file: loaded.file }
}

test('what was kept is what loading would give, origins and all, and only its owner can read it', () => {
  keep(now, load())
  const { origins, ...kept } = recall(now) ?? {}
  expect({ ...kept, origins: origins?.() }).toEqual(JSON.parse(JSON.stringify(load())))
  expect(recall(now)?.config.limits.maxToolRounds).toBe(7)
  expect(statSync(file()).mode & 0o777).toBe(0o600)
  expect(readdirSync(now.home).sort()).toEqual(['config.kept', 'config.toml'])
})

test('nothing was kept: then there is nothing to recall', () => {
  expect(recall(now)).toBeUndefined()
})

test.each<[string, Circumstances['env']]>([
  ['a key that was not there', { OPENAI_API_KEY: 'sk-1' }],
  ['another address', { OPENAI_BASE_URL: 'http://127.0.0.1:1/v1' }],
])('%s may make another provider answer', (_, more) => {
  keep(now, load())
  expect(recall({ ...now, env: { ...now.env, ...more } })).toBeUndefined()
})

test('of a key only whether it is set counts: it is not written down', () => {
  const set = { ...now, env: { ...now.env, OPENAI_API_KEY: 'sk-planted-secret' } }
  keep(set, load(set))
  expect(readFileSync(file(), 'utf8')).not.toContain('planted')
  expect(recall({ ...set, env: { ...set.env, OPENAI_API_KEY: 'sk-2' } })?.config.defaultProvider).toBe('openai')
})

test('without a config file it is kept too, until there is one', () => {
  rmSync(toml())
  keep(now, load())
  expect(recall(now)?.config.workspaceDir).toBe(now.cwd)
  writeToml('')
  expect(recall(now)).toBeUndefined()
})

test.each<[string, Partial<Circumstances>]>([
  ['another build', { program: 'build 2' }],
  ['another folder', { cwd: '/' }],
  ['a variable of ours', { env: { HOME: '/', OTHER: 'x', BRAIDCLAW_LIMITS_MAX_TOOL_ROUNDS: '9' } }],
  ['a variable of another name', { env: { HOME: folder, HISTORY_KEEP: '20' } }],
  ['another user', { env: { HOME: '/nobody', OTHER: 'x' } }],
  ['a flag', { flags: { model: 'local/mock' } }],
])('in other circumstances it does not count: %s', (_, change) => {
  keep(now, load())
  expect(recall({ ...now, env: { HOME: folder }, ...change })).toBeUndefined()
  expect(recall({ ...now, env: { HOME: folder, OTHER: 'a variable of others' } })).toBeDefined()
})

test.each<[string, () => void]>([
  ['the text of the file', () => writeToml('[limits]\nmax_tool_rounds = 8\n')],
  ['who may write it', () => chmodSync(toml(), 0o646)],
  ['a folder in its place', folderInItsPlace],
  ['a config of the project', projectConfig],
  ['a torn end', () => writeFileSync(file(), readFileSync(file(), 'utf8').slice(0, -1))],
  ['an altered origin', () => writeFileSync(file(), readFileSync(file(), 'utf8').replace('"built in"', '"elsewhere"'))],
  ['an altered value', () => writeFileSync(file(), readFileSync(file(), 'utf8').replace('"supervised"', '"full"'))],
  ['a file that others may write', () => chmodSync(file(), 0o646)],
  ['rubbish', () => writeFileSync(file(), 'rubbish')],
  ['an empty file', () => writeFileSync(file(), '')],
])('what changes on disk makes it void: %s', (_, change) => {
  keep(now, load())
  expect(recall(now)).toBeDefined()
  change()
  expect(recall(now)).toBeUndefined()
})

test.each<[string, () => Circumstances]>([
  ['a chosen workspace', () => ({ ...now, flags: { workspace: '/tmp' } })],
  ['a workspace in the environment', () => ({ ...now, env: { ...now.env, BRAIDCLAW_WORKSPACE: '/tmp' } })],
  ['a reference to a variable', withReference],
])('what depends on more than can be seen here is not kept: %s', (_, circumstances) => {
  const odd = circumstances()
  keep(odd, { config: load({ ...now, home: '/nowhere' }).config, origins: {} })
  expect(existsSync(file())).toBe(false)
})

test('a home that cannot be written is no trouble', () => {
  keep({ ...now, home: '/nonexistent/home' }, load())
  expect(recall({ ...now, home: '/nonexistent/home' })).toBeUndefined()
})

test('four circumstances are kept side by side; a fifth takes the place of the oldest', () => {
  const others = ['a', 'b', 'c', 'd', 'e'].map((model) => ({ ...now, flags: { model } }))
  for (const each of others) keep(each, load(each))
  expect(others.map((each) => recall(each)?.config.defaultModel)).toEqual([undefined, 'b', 'c', 'd', 'e'])
})

test.each(['agents.json', 'config/agents.json', 'config/braidclaw.env', 'config/shellclaw.env'])(
  '%s makes it void when it comes and when it changes',
  (name) => {
    keep(now, load())
    const path = join(now.home, name)
    mkdirSync(join(path, '..'), { recursive: true })
    const [first, second, third] = name.endsWith('.env') ? ['A=1', 'A=2', 'A=$X'] : ['{}', '{"a":{}}', '{"$a":{}}']
    for (const text of [first, second]) {
      writeFileSync(path, text ?? '')
      expect(recall(now)).toBeUndefined()
      keep(now, load({ ...now, home: '/nowhere' }))
      expect(recall(now)).toBeDefined()
    }
    writeFileSync(path, third ?? '')
    keep(now, load({ ...now, home: '/nowhere' }))
    expect(recall(now)).toBeUndefined()
  },
)
