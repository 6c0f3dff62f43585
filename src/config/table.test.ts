import { describe, expect, test } from 'bun:test'
import type { Rows } from '../kit/settings.ts'
import { channelSettings, describeProblem } from './config.ts'
import { defaultConfigToml } from './config-text.ts'
import { problemsOf } from './load.fixture.ts'
import { loadConfig } from './load.ts'
import { configDocs } from './output/docs.ts'
import { configSchema } from './output/json-schema.ts'
import { showConfig } from './output/show.ts'

const rows = {
  enabled: { type: 'boolean', default: false, about: 'Whether it is on.' },
  forgotten: { type: 'whole', min: 1, max: 9, unit: 'apples', default: 3, about: 'A row that says nothing of projects.' },
  open: { type: 'choice', values: ['few', 'some', 'many'], default: 'some', project: 'free', about: 'A row that projects may set.' },
  less: { type: 'choice', values: ['few', 'some', 'many'], default: 'some', project: 'stricter', about: 'A row that projects may lower.' },
  more: { type: 'words', form: 'tool', default: ['a'], project: 'union', about: 'A list that projects may add to.' },
  token_env: { type: 'text', form: 'variable', absent: 'none', about: 'The NAME of a variable.' },
} as const satisfies Rows
const made = { name: 'made', settings: rows }
const channels = [made]

function load({ user, project, env = {} }: { user?: string; project?: string; env?: { readonly [name: string]: string } }) {
  const files = new Map([
    ['/h/config.toml', user],
    ['/w/.braidclaw/config.toml', project],
  ])
  const readFile = (path: string) => {
    const text = files.get(path)
    return text === undefined ? ({ state: 'missing' } as const) : ({ state: 'text', text, worldWritable: false } as const)
  }
  return loadConfig({ home: '/h', cwd: '/w', env: { HOME: '/u', ...env }, channels, trusted: () => true, readFile })
}

function wrongIn(given: Parameters<typeof load>[0]): readonly string[] {
  const result = load(given)
  return result.ok ? [] : result.problems.map(describeProblem)
}

function valuesOf(given: Parameters<typeof load>[0]) {
  const result = load(given)
  if (!result.ok) throw new Error(result.problems.map(describeProblem).join('\n'))
  return channelSettings(result.config, made)
}

describe("a project's file", () => {
  test('may not set a row that says nothing of projects: a forgotten word opens nothing', () => {
    expect(wrongIn({ project: '[channels.made]\nforgotten = 2' })).toEqual([
      '/w/.braidclaw/config.toml:2:13: channels.made.forgotten: a project may not set this; move it to your own config file (it says where keys, records and permissions go)',
    ])
  })

  test('may only lower what is to become stricter, in the order of the choices', () => {
    expect(wrongIn({ project: '[channels.made]\nless = "many"' })).toEqual([
      expect.stringContaining('stricter than your own setting ("some")'),
    ])
    expect(valuesOf({ project: '[channels.made]\nless = "few"' }).less).toBe('few')
  })

  test('sets what is free, and adds to a union whatever its key is called', () => {
    const user = '[channels.made]\nmore = ["b"]'
    expect(valuesOf({ user, project: '[channels.made]\nopen = "many"\nmore = ["c", "b"]' })).toMatchObject({
      open: 'many',
      more: ['b', 'c'],
    })
  })
})

describe('the names that every object has', () => {
  test.each(['constructor', 'toString', '__proto__', 'hasOwnProperty'])('%s is an unknown key everywhere', (name) => {
    const user = `${name} = 1\n[limits]\n${name} = 1\n[channels.cli]\n${name} = 1\n[providers.models.p]\nkind = "mock"\n${name} = 1`
    const problems = problemsOf({ user })
    expect(problems).toHaveLength(4)
    for (const problem of problems) expect(problem).toContain(`${name}: unknown key`)
  })

  test.each(['constructor', 'toString'])('%s is no kind of provider, and no section', (name) => {
    expect(problemsOf({ user: `[providers.models.p]\nkind = "${name}"` })).toEqual([
      expect.stringContaining('2:8 providers.models.p.kind: "'),
    ])
    expect(problemsOf({ user: `[channels.${name}]\nx = 1` })).toEqual([expect.stringContaining(`channels.${name}: unknown key`)])
  })
})

describe('a table of rows is all that a channel needs', () => {
  test('its faults are told at once, with line, column, range and the nearest name, and no secret', () => {
    const user = '[channels.made]\nforgotten = 20\nopn = "few"\nless = "sone"\ntoken_env = "sk-123 secret"'
    expect(wrongIn({ user })).toEqual([
      '/h/config.toml:2:13: channels.made.forgotten: 20 is out of range; must be from 1 to 9 (apples)',
      '/h/config.toml:3:1: channels.made.opn: unknown key; did you mean "open"?',
      '/h/config.toml:4:8: channels.made.less: "sone" is not allowed; allowed values: "few", "some", "many"; did you mean "some"?',
      expect.stringContaining('/h/config.toml:5:13: channels.made.token_env: must be the NAME of an environment variable'),
    ])
    expect(wrongIn({ user }).join()).not.toContain('secret"')
  })

  test('a variable sets it, and a misspelled one is mentioned', () => {
    expect(valuesOf({ env: { BRAIDCLAW_CHANNELS_MADE_FORGOTTEN: '4' } }).forgotten).toBe(4)
    const result = load({ env: { BRAIDCLAW_CHANNELS_MADE_FORGOTEN: '4' } })
    expect(result.ok && result.notices).toEqual([expect.stringContaining('did you mean BRAIDCLAW_CHANNELS_MADE_FORGOTTEN?')])
  })

  test('its section of another program is refused there: the channels are those that the loader names', () => {
    expect(wrongIn({ user: '[channels.discord]\nenabled = true' })).toEqual([expect.stringContaining('channels.discord: unknown key')])
  })

  test('it stands in what is shown, in the schema, in the docs and in a new file', () => {
    const result = load({ user: '[channels.made]\nforgotten = 4' })
    const shown = result.ok ? showConfig(result.config, result.origins, { origin: true, json: false, channels }) : ''
    expect(shown).toContain('[channels.made]\nenabled = false  # default: built in\nforgotten = 4  # user: /h/config.toml:2\n')
    expect(shown).toContain('# token_env is not set: none')
    expect(configSchema(channels)).toMatchObject({
      properties: {
        channels: { properties: { made: { properties: { forgotten: { type: 'integer', minimum: 1, maximum: 9, default: 3 } } } } },
      },
    })
    expect(configDocs(channels)).toContain(
      '| `forgotten` | whole number 1 to 9, apples | `3` | `BRAIDCLAW_CHANNELS_MADE_FORGOTTEN` | user only |',
    )
    expect(defaultConfigToml({ channels, proposals: [] })).toContain('[channels.made]\n# Whether it is on.\n# enabled = false\n')
    expect(defaultConfigToml({ channels, proposals: [] })).toContain('# token_env: The NAME of a variable. Not set: none.\n\n')
  })
})
