import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { load, minimum, problemsOf } from './load.fixture.ts'

const one = (user: string, env = {}) => problemsOf({ user, env }).join('\n')

test('an autonomy nobody knows is refused with the allowed values', () => {
  expect(one(minimum.replace('"supervised"', '"godmode"'))).toBe(
    '6:12 security.autonomy: "godmode" is not allowed; allowed values: "readonly", "supervised", "full"',
  )
  expect(one('[security]\nautonomy = "supervized"')).toContain('did you mean "supervised"?')
})

test('everything wrong is told at once, in the order of the file', () => {
  const user = `workspce_dir = "/x"
workspace_dir = "rel"
max_tool_rounds = 3
default_model = supervised
[securty]
[security]
autonomy = "godmode"
default_model = "x"
workspace_only = "true"
[limits]
maxToolRounds = 3
max_parallel = 3.5
[[memory]]
path = "x"
[channels.telegraph]
`
  expect(problemsOf({ user, env: { BRAIDCLAW_LOG_LEVEL: 'loud' } })).toEqual([
    '1:1 workspce_dir: unknown key; did you mean "workspace_dir"?',
    '2:17 workspace_dir: "rel" is not absolute; start it with "/", "~/" or a variable such as "$HOME/"',
    '3:1 max_tool_rounds: unknown key here; "max_tool_rounds" belongs to [limits]',
    '4:17 : not valid TOML: invalid value; text needs quotes (name = "text"), true and false are written small',
    '5:1 securty: unknown key; did you mean "security"?',
    '7:12 security.autonomy: "godmode" is not allowed; allowed values: "readonly", "supervised", "full"',
    '8:1 security.default_model: unknown key here; "default_model" belongs to the top of the file, above the first [section]',
    '9:18 security.workspace_only: must be true or false, found the text "true"; write it without quotes',
    '11:1 limits.maxToolRounds: unknown key; did you mean "max_tool_rounds"?',
    '12:16 limits.max_parallel: must be a whole number from 1 to 64 (calls), found 3.5',
    '13:1 memory: must be a section, written [memory] once and with single brackets',
    '15:1 channels.telegraph: unknown key; did you mean "telegram"?',
    'BRAIDCLAW_LOG_LEVEL log.level: "loud" is not allowed; allowed values: "debug", "info", "warn", "error"',
  ])
})

test('a secret in the file is refused, the variable is named, the secret never shown', () => {
  const provider = '[providers.models.x]\nkind = "openai"\nmodel = "m"\n'
  for (const line of [
    'api_key = "sk-SECRET1"',
    'apiKey = "sk-SECRET1"',
    'token = "sk-SECRET1"',
    'api-key = "sk-SECRET1"',
    'password = ["sk-SECRET1"]',
  ]) {
    expect(one(provider + line)).toContain('secrets do not belong in this file')
    expect(one(provider + line)).not.toContain('SECRET1')
  }
  expect(one(`${provider}api_key = "$MY_KEY"`)).toContain('write api_key_env = "MY_KEY"')
  for (const line of [
    'api_key_env = "sk-SECRET1"',
    'base_url = "https://u:SECRET1@h/v1"',
    'base_url = "https://h/v1?key=SECRET1"',
    'model = "SECRET1',
    'model = SECRET1',
  ])
    expect(one(provider + line)).not.toContain('SECRET1')
})

test('a variable hidden in an address does not come out in the message', () => {
  const user = '[providers.models.x]\nkind = "openai"\nmodel = "m"\nbase_url = "https://$U@h/v1"'
  expect(one(user, { U: 'me:SECRET1' })).toContain('must hold no user')
  expect(one(user, { U: 'me:SECRET1' })).not.toContain('SECRET1')
})

test('variables that are not set, and tildes that mean nothing', () => {
  expect(one('workspace_dir = "$NOPE/x"')).toContain('the environment variable NOPE is not set')
  expect(one('workspace_dir = "$' + '{EMPTY}/x"', { EMPTY: '' })).toContain('the environment variable EMPTY is not set')
  expect(one('workspace_dir = "$' + '{NOPE"')).toContain('never closed')
  expect(one('workspace_dir = "~bob/x"')).toContain('"~name" is not supported')
  expect(one('[security]\nforbidden_paths = ["/a", "b", 3, ""]').split('\n')).toEqual([
    expect.stringContaining('item 2: "b" is not absolute'),
    expect.stringContaining('item 3: must be a path in quotes, found the number 3'),
    expect.stringContaining('item 4: "" is not a path'),
  ])
})

test('numbers out of range, of every strange sort', () => {
  for (const value of ['0', '-1', '1001', '99999999999999999999', 'inf', 'nan'])
    expect(one(`[limits]\nmax_tool_rounds = ${value}`)).toContain('out of range; must be from 1 to 1000')
  expect(one('[limits]\nmax_run_usd = 1979-05-27')).toContain('found a date')
  expect(one('[limits]\nmax_response_bytes = "1 MB"')).toContain(
    'must be a whole number from 1024 to 100000000 (bytes), found the text "1 MB"',
  )
  expect(one('[security]\nallowed_ports = [0, 80, 65536]')).toContain('item 3: 65536 is out of range')
})

test('words that could never match are refused', () => {
  expect(one('[security]\nforbidden_commands = ["rm -rf", "/bin/rm"]').split('\n')).toHaveLength(2)
  for (const host of ['https://x.org', 'x.org:80', '*', 'x/y', '*.', 'a b', '-x.org'])
    expect(one(`[security]\nallowed_domains = ["${host}"]`)).toContain('must be a host name')
  expect(load({ user: '[security]\nallowed_domains = ["*.x.org", "localhost", "1.2.3.4", "xn--bcher-kva.example"]' }).ok).toBe(true)
})

test('keys that only look like known ones are unknown', () => {
  expect(one('"security.autonomy" = "full"')).toContain('unknown key')
  expect(one('__proto__ = 1')).toContain('__proto__: unknown key')
  expect(one('[__proto__]\nautonomy = "full"')).toContain('unknown key')
  expect(one('constructor = 1')).toContain('unknown key')
  expect(one('[providers.models."a/b"]\nkind = "mock"')).toContain('"a/b" cannot be the name of a provider')
  expect(one('[providers.models.__proto__]\nkind = "mock"')).toContain('cannot be the name of a provider')
  expect(one('[security.autonomy]\nx = 1')).toContain('must be one of "readonly", "supervised", "full", found a table')
})

test('a value where a section should be is refused, of whatever type', () => {
  for (const value of ['1', '"full"', '[]', '1979-05-27', 'true'])
    expect(one(`security = ${value}`)).toBe(
      `1:1 security: must be a section, written [security]${value === '[]' ? ' once and with single brackets' : ''}`,
    )
})

test('control and direction marks in a value are shown escaped', () => {
  expect(one('[security]\nautonomy = "a\\u001b[31m\\u202eb"')).toContain('"a\\u001b[31m\\u202eb" is not allowed')
})

test('nothing that can be typed makes it throw', () => {
  const scraps = fc.constantFrom(
    '[',
    ']',
    '=',
    '"',
    "'",
    '\n',
    '#',
    '{',
    '}',
    ',',
    '.',
    'security',
    'autonomy',
    'providers.models.x',
    'kind',
    '"mock"',
    '1e999',
    '[[a]]',
    '\\',
    '"""',
    '\u0000',
    '\ud800',
    '$X',
    '~',
  )
  fc.assert(
    fc.property(fc.array(fc.oneof(scraps, fc.string({ maxLength: 8 })), { maxLength: 25 }), (parts) => {
      const result = load({ user: parts.join('') })
      return result.ok || result.problems.length > 0
    }),
    { numRuns: 1500 },
  )
})
