import { expect, test } from 'bun:test'
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { channelRows } from '../channels/list.ts'
import { providerNamed } from './config.ts'
import { defaultConfigToml } from './config-text.ts'
import { describeStep, initHome } from './init.ts'
import { proposeProviders } from './known-providers.ts'
import { configOf, load } from './load.fixture.ts'
import { loadConfig } from './load.ts'
import { homePaths } from './paths.ts'
import { validateConfig } from './validate.ts'

function fresh(env: { readonly [name: string]: string } = {}) {
  const user = mkdtempSync(join(tmpdir(), 'config-init-'))
  const home = join(user, '.braidclaw')
  const input = {
    home,
    cwd: user,
    channels: channelRows,
    env: { HOME: user, ...env },
    createDatabase: (path: string) => writeFileSync(path, 'db'),
  }
  return { user, home, input, paths: homePaths(home) }
}

const mode = (path: string) => statSync(path).mode & 0o777

test('init makes home, config, database, logs and workspace, private where it must be', async () => {
  const { input, home, user, paths } = fresh()
  const result = await initHome(input)
  expect(result.ok && result.steps.map((step) => [step.what, step.state])).toEqual([
    ['home', 'created'],
    ['config', 'created'],
    ['logs', 'created'],
    ['workspace', 'created'],
    ['agent', 'created'],
    ['soul', 'created'],
    ['memory', 'created'],
  ])
  expect([mode(home), mode(paths.config), mode(paths.logs), mode(paths.agents)]).toEqual([0o700, 0o600, 0o700, 0o700])
  expect(readFileSync(join(paths.agents, 'default/soul.md'), 'utf8')).toBe('You are a helpful personal assistant.\n')
  expect([existsSync(paths.memory), existsSync(join(user, 'braidclaw-workspace'))]).toEqual([true, true])
  expect(validateConfig({ ...input, tools: [], trusted: () => false }).ok).toBe(true)
})

test('a second init changes nothing and says so', async () => {
  const { input, paths } = fresh()
  await initHome(input)
  writeFileSync(paths.config, '# mine\n')
  const result = await initHome({
    ...input,
    createDatabase: () => {
      throw new Error('called again')
    },
  })
  expect(result.ok && result.steps.map((step) => step.state)).toEqual(['kept', 'kept', 'kept', 'kept', 'kept', 'kept', 'kept'])
  expect(readFileSync(paths.config, 'utf8')).toBe('# mine\n')
  expect(result.steps.map(describeStep)[1]).toBe(
    `kept      config    ${paths.config}: nothing to add; no variable of docs/models.md is set; default_provider is "local"`,
  )
})

test('a key that is there later is added, through a link, and the file keeps its mode', async () => {
  const { input, paths, user } = fresh()
  await initHome(input)
  renameSync(paths.config, join(user, 'dotfiles.toml'))
  chmodSync(join(user, 'dotfiles.toml'), 0o640)
  symlinkSync(join(user, 'dotfiles.toml'), paths.config)
  const before = readFileSync(paths.config, 'utf8')
  const result = await initHome({ ...input, env: { ...input.env, OPENAI_API_KEY: 'sk-SECRET' } })
  expect(result.ok && result.steps.map(describeStep)[1]).toBe(
    `extended  config    ${paths.config}: added provider openai (OPENAI_API_KEY is set), default_provider is now "openai"`,
  )
  const after = readFileSync(join(user, 'dotfiles.toml'), 'utf8')
  expect([lstatSync(paths.config).isSymbolicLink(), mode(join(user, 'dotfiles.toml'))]).toEqual([true, 0o640])
  expect([after.length > before.length, after.includes('SECRET'), readdirSync(user).filter((name) => name.includes('toml.'))]).toEqual([
    true,
    false,
    [],
  ])
})

test('where nothing can be added the file stays, and the lines are said', async () => {
  const { input, home, paths } = fresh({ OPENAI_API_KEY: 'sk' })
  mkdirSync(home)
  writeFileSync(paths.config, 'providers = { models = { far = { kind = "mock" } } }\n')
  const result = await initHome(input)
  expect(result.ok && result.steps[1]?.note).toContain(
    'add by hand:\n\n# Added because OPENAI_API_KEY is set.\n[providers.models.openai]\n',
  )
  expect(readFileSync(paths.config, 'utf8')).toBe('providers = { models = { far = { kind = "mock" } } }\n')
})

test('a home that others could read is closed', async () => {
  const { input, home } = fresh()
  mkdirSync(home)
  chmodSync(home, 0o755)
  const result = await initHome(input)
  expect([result.steps[0]?.state, mode(home)]).toEqual(['tightened', 0o700])
})

test('an existing config decides where memory, receipts and workspace are made; a broken one stops', async () => {
  const { input, home, user } = fresh()
  mkdirSync(home)
  writeFileSync(
    join(home, 'config.toml'),
    `workspace_dir = "~/ws"\n[memory]\npath = "~/data/deep/m.sqlite"\n[receipts]\npath = "~/rec/r.log"`,
  )
  expect((await initHome(input)).ok).toBe(true)
  expect(['ws', 'data/deep/m.sqlite', 'rec'].map((path) => existsSync(join(user, path)))).toEqual([true, true, true])
  writeFileSync(join(home, 'config.toml'), 'workspace_dir = 3')
  expect(await initHome(input)).toMatchObject({ ok: false, problems: [{ key: 'workspace_dir' }] })
})

test('a file where a folder should be, and a database that cannot be made, are problems and no throws', async () => {
  const { input, user, home } = fresh()
  writeFileSync(join(user, 'braidclaw-workspace'), '')
  expect(await initHome(input)).toMatchObject({
    ok: false,
    problems: [{ file: join(user, 'braidclaw-workspace'), message: expect.stringContaining('ENOTDIR') }],
  })
  const failing = fresh()
  const full = () => {
    throw Object.assign(new Error('full'), { code: 'ENOSPC' })
  }
  expect(await initHome({ ...failing.input, createDatabase: full })).toMatchObject({
    ok: false,
    problems: [{ message: 'cannot be made: the disk is full; free some space and try again (ENOSPC)' }],
  })
  expect(await initHome({ ...input, home: join(home, 'config.toml', 'x') })).toMatchObject({ ok: false, steps: [] })
})

test('a wished workspace goes into the new config, even one with a dollar sign', async () => {
  const { input, user } = fresh()
  await initHome({ ...input, workspace: 'my $HOME "x"' })
  expect(existsSync(join(user, 'my $HOME "x"'))).toBe(true)
  const loaded = loadConfig({ ...input, trusted: () => false })
  expect(loaded.ok && loaded.config.workspaceDir).toBe(join(user, 'my $HOME "x"'))
})

test('config validate misses a workspace that is not there', async () => {
  const { input, user } = fresh()
  await initHome(input)
  const check = (dir: string) => {
    const result = validateConfig({ ...input, tools: [], flags: { workspace: dir }, trusted: () => false })
    return result.ok ? 'ok' : result.problems.map(({ file, key, message }) => `${file} ${key}: ${message}`)
  }
  expect(check('/nope')).toEqual(['--workspace workspace_dir: "/nope" does not exist; create it or run "braidclaw init"'])
  expect(check(homePaths(input.home).config)).toEqual([expect.stringContaining('is a file, not a folder')])
  expect(check(user)).toBe('ok')
})

const variables = ['OPENAI_API_KEY', 'ANTHROPIC_API_KEY', 'OPENROUTER_API_KEY', 'OLLAMA_HOST']
const combinations = Array.from({ length: 16 }, (_, bits) => variables.filter((_, index) => (bits >> index) & 1))

test.each(combinations)('the file for %p is valid, also with every line uncommented, and proposes the first of them', (...set) => {
  const env = Object.fromEntries(set.map((name) => [name, name === 'OLLAMA_HOST' ? '127.0.0.1' : 'sk-SECRET']))
  const proposals = proposeProviders(env).map((each) => ({ ...each, model: each.model || 'llama3.2:1b' }))
  const text = defaultConfigToml({ channels: channelRows, proposals })
  const config = configOf({ user: text })
  expect(proposals.map(({ because }) => because)).toEqual(set)
  expect(config.defaultProvider).toBe(proposals[0]?.name ?? 'local')
  // Without a proposal the file shows a server on this machine, as the first specification does.
  const others = proposals.length === 0 ? ['openai_compatible'] : proposals.map(({ name }) => name)
  expect(Object.keys(config.providers.models)).toEqual(['local', ...others])
  expect(text).not.toContain('SECRET')
  const open = text.replace(/^# ((\w+ = |\[).*)$/gm, '$1')
  expect(open).not.toBe(text)
  expect(load({ user: open })).toMatchObject({ ok: true })
})

test('OLLAMA_HOST in every form people use, and nothing for nonsense', () => {
  const url = (host: string) => proposeProviders({ OLLAMA_HOST: host })[0]?.baseUrl
  expect(
    [
      'localhost',
      '0.0.0.0',
      '0.0.0.0:1234',
      ':1234',
      'box:80',
      'http://box:9/',
      'https://box/v1',
      '[::1]:5',
      '[::]',
      '::1',
      'http://box:80/',
    ].map(url),
  ).toEqual([
    'http://localhost:11434/v1',
    'http://127.0.0.1:11434/v1',
    'http://127.0.0.1:1234/v1',
    'http://127.0.0.1:1234/v1',
    'http://box:80/v1',
    'http://box:9/v1',
    'https://box:443/v1',
    'http://[::1]:5/v1',
    'http://127.0.0.1:11434/v1',
    'http://[::1]:11434/v1',
    'http://box:80/v1',
  ])
  expect(proposeProviders({ LMSTUDIO_HOST: 'box' })[0]?.baseUrl).toBe('http://box:1234/v1')
  expect([' ', 'ftp://x', 'http://u:p@h', 'a b'].map(url)).toEqual([undefined, undefined, undefined, undefined])
})

test('a vendor of the table needs its key alone; a server of this machine counts more than the later ones, and each address can be moved', () => {
  for (const name of ['gemini', 'groq', 'mistral', 'deepseek', 'xai']) {
    const [key, address] = [`${name.toUpperCase()}_API_KEY`, `${name.toUpperCase()}_BASE_URL`]
    const config = configOf({ env: { [key]: 'sk-SECRET-0123' } })
    expect([config.defaultProvider, providerNamed(config, name)]).toMatchObject([name, { kind: 'openai-compatible', apiKeyEnv: key }])
    expect(proposeProviders({ [key]: 'x', [address]: 'http://127.0.0.1:9/v1/' })[0]?.baseUrl).toBe('http://127.0.0.1:9/v1')
    expect(proposeProviders({ [key]: 'x', [address]: 'http://me:pw@host' })).toEqual([])
  }
  expect(proposeProviders({ GEMINI_API_KEY: 'x', OLLAMA_HOST: 'box' }).map(({ name }) => name)).toEqual(['ollama', 'gemini'])
})
