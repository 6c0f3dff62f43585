import { describe, expect, test } from 'bun:test'
import { channelRows } from '../channels/list.ts'
import { describeProblem } from './config.ts'
import type { Flags } from './load.ts'
import { loadConfig } from './load.ts'
import { showConfig } from './output/show.ts'
import { homePaths } from './paths.ts'

const home = '/home/ann/.braidclaw'
const [agentsFile = '', seedAgentsFile = ''] = homePaths(home).agentsFiles
const [shellFile = '', envFile = ''] = homePaths(home).envFiles

type Given = {
  readonly files?: { readonly [path: string]: string }
  readonly env?: { readonly [name: string]: string }
  readonly flags?: Flags
}

function load({ files = {}, env = {}, flags = {} }: Given) {
  return loadConfig({
    home,
    cwd: '/work',
    channels: channelRows,
    env: { HOME: '/home/ann', ...env },
    flags,
    trusted: () => false,
    readFile: (path) => (path in files ? { state: 'text', text: files[path] ?? '', worldWritable: false } : { state: 'missing' }),
  })
}

function whole(given: Given) {
  const found = load(given)
  if (!found.ok) throw new Error(found.problems.map(describeProblem).join('\n'))
  return found
}

function problems(given: Given): readonly string[] {
  const found = load(given)
  return found.ok ? ['none'] : found.problems.map(describeProblem)
}

describe('agents.json', () => {
  const agents = (value: unknown) => ({ files: { [agentsFile]: typeof value === 'string' ? value : JSON.stringify(value) } })

  test.each([
    ['{oops', 'must hold JSON such as'],
    ['[]', 'must hold JSON such as'],
    [{ 'A/../b': {} }, 'lower-case letters, digits and "-"'],
    [{ a: 'soul.md' }, 'a: must be an object'],
    [{ a: { modle: 'x' } }, 'a.modle: unknown key; did you mean "model"?'],
    [{ a: { soul: 3 } }, 'a.soul: must be text or null'],
    [{ a: { model: '' } }, 'a.model: must be text or null'],
    [{ a: { soul: '../../etc/passwd' } }, 'leads out of /home/ann/.braidclaw'],
    [{ a: { soul: '/etc/passwd' } }, 'leads out of'],
    [{ a: { soul: 'agents/../../x' } }, 'leads out of'],
    [{ a: { soul: '.' } }, 'leads out of'],
  ])('%j is refused', (value, says) => {
    const [first = ''] = problems(agents(value))
    expect(first).toStartWith(`${agentsFile}: `)
    expect(first).toContain(says)
  })

  test('a soul is a path in the home; null is as good as absent', () => {
    const { config } = whole(agents({ a: { soul: 'souls/a.md', model: null }, b: { soul: null } }))
    expect(config.agents).toEqual({ a: { soul: '/home/ann/.braidclaw/souls/a.md' }, b: {} })
  })

  test('its model is above the environment and below the flag, for the chosen agent alone', () => {
    const given = { ...agents({ coder: { model: 'gpt-x' } }), env: { SHELLCLAW_MODEL: 'global' } }
    expect(whole(given).config.defaultModel).toBe('global')
    const chosen = whole({ ...given, flags: { agent: 'coder' } })
    expect([chosen.config.defaultAgent, chosen.config.defaultModel]).toEqual(['coder', 'gpt-x'])
    expect(chosen.origins.default_model).toEqual({ source: 'agent', where: agentsFile })
    expect(whole({ ...given, flags: { agent: 'coder', model: 'flag' } }).config.defaultModel).toBe('flag')
    expect(whole({ ...given, env: { BRAIDCLAW_DEFAULT_AGENT: 'coder' } }).config.defaultModel).toBe('gpt-x')
    expect(problems({ flags: { agent: '../x' } })[0]).toContain('--agent: default_agent: "../x" must be the name of an agent')
  })

  test('it may lie in config/, as long as there is none above', () => {
    const text = (model: string) => JSON.stringify({ default: { model } })
    expect(whole({ files: { [seedAgentsFile]: text('below') } }).config.defaultModel).toBe('below')
    expect(whole({ files: { [seedAgentsFile]: text('below'), [agentsFile]: text('above') } }).config.defaultModel).toBe('above')
  })
})

describe('the env file', () => {
  const lines = (text: string, more: Given = {}) => ({ ...more, files: { [envFile]: text, ...more.files } })

  test('what is no assignment, no setting or no place for a key is reported by line, and nothing of it shown', () => {
    const text = 'source x\nBRAIDCLAW_MODLE=m\nOPENAI_API_KEY=sk-123\nBRAIDCLAW_HOME=/elsewhere\nSHELLCLAW_MODEL=good\nX=1; id'
    const { notices, config } = whole(lines(text))
    expect(notices.map((notice) => notice.slice(envFile.length))).toEqual([
      ':1: this line is not an assignment NAME=value; nothing is run from this file',
      ':2: BRAIDCLAW_MODLE is not a setting and was ignored; did you mean BRAIDCLAW_MODEL?',
      ':3: OPENAI_API_KEY is not read from this file; only settings of ours are, and keys belong into the environment',
      ':4: BRAIDCLAW_HOME cannot move the folder that this file lies in; set it in the environment',
      ':6: this line has an unquoted ";"; put the value into quotes. Nothing is run from this file',
    ])
    expect(config.defaultModel).toBe('good')
  })

  test('a substitution stays text', () => {
    expect(whole(lines('SHELLCLAW_MODEL=$(touch owned)')).config.defaultModel).toBe('$(touch owned)')
  })

  test('a wrong value is a problem of the file', () => {
    expect(problems(lines('BRAIDCLAW_AUTONOMY=godmode'))[0]).toStartWith(`${envFile}:1: security.autonomy: "godmode" is not allowed`)
    expect(problems(lines('SHELLCLAW_DEFAULT_AGENT=../x'))[0]).toStartWith(`${envFile}:1: default_agent: "../x"`)
  })

  test('it is below the environment, above config.toml, and our own name wins over the seed', () => {
    const files = { [`${home}/config.toml`]: 'default_model = "toml"', [shellFile]: 'SHELLCLAW_MODEL=shell' }
    const origin = (given: Given) => whole(given).origins.default_model
    expect(origin({ files })).toEqual({ source: 'environment', where: shellFile, line: 1 })
    expect(whole(lines('\nBRAIDCLAW_MODEL=ours', { files })).config.defaultModel).toBe('ours')
    const { config, origins } = whole(lines('SHELLCLAW_MODEL=later', { files }))
    expect(config.defaultModel).toBe('later')
    expect(showConfig(config, origins, { origin: true, json: false, channels: channelRows })).toContain(
      `default_model = "later"  # environment: ${envFile}:1\n`,
    )
    expect(origin(lines('BRAIDCLAW_MODEL=x', { files, env: { SHELLCLAW_MODEL: 'env' } }))).toEqual({
      source: 'environment',
      where: 'SHELLCLAW_MODEL',
    })
  })
})

describe('the backend', () => {
  test('stub answers whatever flag, agent or environment ask for', () => {
    for (const name of ['BRAIDCLAW_LLM_BACKEND', 'SHELLCLAW_LLM_BACKEND']) {
      const files = { [agentsFile]: '{"default":{"model":"local/mock"}}' }
      const { config, origins } = whole({ files, env: { [name]: 'stub', BRAIDCLAW_PROVIDER: 'local' }, flags: { model: 'local/mock' } })
      expect(config.defaultProvider).toBe('stub')
      expect(config.providers.models.stub).toEqual({ kind: 'stub', name: 'stub', model: 'stub' })
      expect(origins.default_provider).toEqual({ source: 'environment', where: name })
    }
  })

  test('one nobody knows is a problem that names those there are', () => {
    expect(problems({ env: { BRAIDCLAW_LLM_BACKEND: 'stup' } })[0]).toContain('unknown provider "stup"')
    expect(Object.keys(whole({}).config.providers.models)).toEqual(['local'])
  })
})
