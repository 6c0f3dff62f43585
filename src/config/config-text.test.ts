import { describe, expect, test } from 'bun:test'
import { channelRows } from '../channels/list.ts'
import { defaultConfigToml, extendConfig } from './config-text.ts'
import { proposeProviders } from './known-providers.ts'
import { configOf } from './load.fixture.ts'

const openai = proposeProviders({ OPENAI_API_KEY: 'sk' })
const both = proposeProviders({ OPENAI_API_KEY: 'sk', ANTHROPIC_API_KEY: 'sk' })
const offline = defaultConfigToml({ channels: channelRows, proposals: [] })
const added =
  '\n# Added because OPENAI_API_KEY is set.\n[providers.models.openai]\nkind = "openai"\nmodel = "gpt-5.4-mini"\napi_key_env = "OPENAI_API_KEY"\n'

describe('what a person wrote stays', () => {
  test.each([
    [
      'comments, order and odd spacing',
      '# mine\n\n\tdefault_provider   = \'studio\' # why\n[log]\n  level="info"\n# the end\n[providers.models.studio]\nkind="mock"\n',
    ],
    ['no line feed at the end', '[log]\nlevel = "info"'],
    ['a provider that a person chose, be it the offline helper', 'default_provider = "local"\n'],
    ['the offline helper with another model', offline.replace('default_model = "mock"', 'default_model = "mock2"')],
    ['the offline helper without the comments of init', offline.replace(/# Which of .*\n/, '')],
    ['nothing at all', ''],
  ])('%s', (_, text) => {
    const { text: after, chosen } = extendConfig(text, { proposals: openai })
    expect(after).toStartWith(text)
    expect(after.slice(text.length).trimStart()).toBe(added.trimStart())
    expect(chosen).toBeUndefined()
    expect(configOf({ user: after }).providers.models.openai).toMatchObject({ kind: 'openai', apiKeyEnv: 'OPENAI_API_KEY' })
  })

  test('line ends of another system are kept, and used', () => {
    const text = offline.replaceAll('\n', '\r\n')
    const { text: after, chosen } = extendConfig(text, { proposals: openai })
    expect([after.replaceAll('\r\n', '').includes('\n'), chosen]).toEqual([false, 'openai'])
    expect(configOf({ user: after })).toMatchObject({ defaultProvider: 'openai', defaultModel: 'gpt-5.4-mini' })
  })
})

test('the offline helper that init chose by itself gives way, and nothing else changes', () => {
  const { text, chosen } = extendConfig(offline, { proposals: both })
  const lines = offline.split('\n')
  const changed = text
    .split('\n')
    .slice(0, lines.length)
    .filter((line, at) => line !== lines[at])
  expect([changed, chosen]).toEqual([['default_provider = "openai"', 'default_model = "gpt-5.4-mini"'], 'openai'])
  expect(configOf({ user: text }).defaultProvider).toBe('openai')
})

test('a file that init wrote in version 0.1.0 is understood too', () => {
  const old = `# BraidClaw.\n# The folder the tools work in.\nworkspace_dir = "~/ws"\n# Which of [providers.models.NAME] answers. "local", the offline helper, is always there.\ndefault_provider = "local"\n# The model asked of the default provider. Left aside when a stronger source (flag, environment) chooses another provider.\ndefault_model = "mock"\n\n[log]\n`
  expect(extendConfig(old, { proposals: openai }).chosen).toBe('openai')
})

describe('nothing is added twice', () => {
  test('the same again', () => {
    const once = extendConfig(offline, { proposals: both }).text
    expect(extendConfig(once, { proposals: both })).toEqual({ text: once, added: [], clashing: [] })
  })

  test.each([
    ['under another name', '[providers.models.gpt]\nkind = "openai"\nmodel = "m"\n'],
    ['with another model', '[providers.models.openai]\nkind = "openai"\nmodel = "m"\napi_key_env = "OPENAI_API_KEY"\n'],
    [
      'at another address',
      '[providers.models.openai]\nkind = "openai-compatible"\nmodel = "m"\nbase_url = "http://h/v1"\napi_key_env = "OPENAI_API_KEY"\n',
    ],
  ])('the same key %s', (_, text) => {
    expect(extendConfig(text, { proposals: openai }).text).toBe(text)
  })

  test('a name that is taken for another key stays taken', () => {
    const text = '[providers.models.openai]\nkind = "openai"\nmodel = "m"\napi_key_env = "WORK_KEY"\n'
    expect(extendConfig(text, { proposals: openai })).toEqual({ text, added: [], clashing: [...openai] })
  })

  test('the seed’s own server with the same key is another provider', () => {
    const text =
      '[providers.models.far]\nkind = "openai-compatible"\nbase_url = "http://localhost:1234/v1"\nmodel = "m"\napi_key_env = "OPENAI_API_KEY"\n'
    expect(extendConfig(text, { proposals: openai }).added).toEqual([...openai])
  })

  test('one that stands there already becomes the default with its own model', () => {
    const text = `${offline}\n[providers.models.gpt]\nkind = "openai"\nmodel = "gpt-mine"\n`
    const after = extendConfig(text, { proposals: openai })
    expect([after.added, after.chosen]).toEqual([[], 'gpt'])
    expect(configOf({ user: after.text })).toMatchObject({ defaultProvider: 'gpt', defaultModel: 'gpt-mine' })
  })
})

test('the offline helper that a person chose stays', () => {
  const { text } = extendConfig(offline, { proposals: [], choice: { name: 'local', model: 'mock' } })
  expect(configOf({ user: text })).toMatchObject({ defaultProvider: 'local', defaultModel: 'mock' })
  expect(extendConfig(text, { proposals: openai }).chosen).toBeUndefined()
})

describe('a choice of now', () => {
  const choice = { name: 'openai', model: 'gpt-$x' }

  test.each([
    [
      'default_provider = "studio" # mine\ndefault_model = \'m\' # too\n[log]\nlevel = "info"\n',
      'default_provider = "openai" # mine\ndefault_model = "gpt-$$x" # too\n[log]\nlevel = "info"\n',
    ],
    ['# mine\n[log]\nlevel = "info"\n', 'default_provider = "openai"\ndefault_model = "gpt-$$x"\n# mine\n[log]\nlevel = "info"\n'],
    ['\ufeff[log]\nlevel = "info"\n', '\ufeffdefault_provider = "openai"\ndefault_model = "gpt-$$x"\n[log]\nlevel = "info"\n'],
    ['\n\n# ä\ndefault_provider = """local"""\n', 'default_model = "gpt-$$x"\n\n\n# ä\ndefault_provider = "openai"\n'],
  ])('%j', (before, after) => {
    const { text } = extendConfig(before, { proposals: openai, choice })
    expect(text).toBe(after + added)
    expect(configOf({ user: text })).toMatchObject({ defaultProvider: 'openai', defaultModel: 'gpt-$x' })
  })
})
