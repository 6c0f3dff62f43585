import { expect, test } from 'bun:test'
import { parse } from 'smol-toml'
import { z } from 'zod'
import { channelRows } from '../../channels/list.ts'
import { load, loaded, minimum } from '../load.fixture.ts'
import { withProviderDefaults } from '../load.ts'
import { patternOf, tableOf, variablesOfSetting } from '../table.ts'
import { configDocs } from './docs.ts'
import { configSchema } from './json-schema.ts'
import { showConfig, showVariables, valueAt } from './show.ts'

const { settings } = tableOf(channelRows)

/** Sets every key to a value that is not its default. */
const everything = `workspace_dir = "/w"
default_provider = "o"
default_model = "dm"
default_agent = "coder"
continue_turns = "auto"
proof_of_done = "require"
proof_of_done_model = true
[security]
autonomy = "full"
workspace_only = false
forbidden_paths = ["/f"]
forbidden_reads = ["*.key"]
forbidden_commands = ["fc"]
allow_commands = ["ac"]
allow_tools = ["weather"]
allowed_domains = ["d.org"]
allowed_ports = [81]
approve_all_medium = true
ask = "before"
unlisted_commands = "block"
readonly_commands = "drop"
egress = "open"
direct = "allow"
tool_settings = "allow"
audit_log = false
[limits]
max_tool_rounds = 11
max_same_results = 12
max_response_bytes = 1212
tool_timeout_s = 13.5
shell_timeout_s = 14
shell_timeout_max_s = 14.5
max_background = 3
job_output_bytes = 5000
http_timeout_s = 15
max_output_bytes = 1616
max_result_bytes = 1617
context_tokens = 17
max_turns_at_once = 17
max_parallel = 18
max_run_seconds = 19
max_run_tokens = 20
max_run_usd = 0.21
max_conversation_tokens = 22
max_conversation_usd = 0.23
agent_daily_tokens = 24
agent_daily_usd = 0.25
channel_daily_tokens = 28
channel_daily_usd = 0.29
token_daily_tokens = 30
token_daily_usd = 0.31
daily_tokens = 26
daily_usd = 0.27
[providers.models.m]
kind = "mock"
model = "mm"
fixture = "/fix.json"
total_timeout_s = 21
price_input = 1
price_output = 2
price_cached = 3
price_cache_write = 4
[providers.models.o]
kind = "openai-compatible"
model = "om"
base_url = "http://h:1/v1"
api_key_env = "K"
stream = false
idle_timeout_s = 22
total_timeout_s = 23
max_concurrent = 9
dialect = "gemma4"
max_retries = 4
max_output_tokens = 25
context_tokens = 2600
temperature = 0.5
effort = "xhigh"
price_input = 1.5
price_output = 2.5
price_cached = 3.5
price_cache_write = 4.5
[providers.models.r]
kind = "reliable"
providers = ["m", "o"]
[providers.models.t]
kind = "router"
routes = { cheap = "m" }
default = "o"
[providers.models.f]
kind = "fifo"
model = "m"
dir = "/fifos"
total_timeout_s = 9
[providers.models.p]
kind = "plugin"
plugin = "mine"
model = "pm"
idle_timeout_s = 1
total_timeout_s = 2
max_concurrent = 3
max_retries = 4
[mcp.servers]
notes = { command = "notes", args = ["-v"] }
[channels.plugins]
enabled = true
names = ["irc"]
profile = "operator"
users = ["*"]
approvers = ["irc/ada"]
tools_allow = ["time"]
autonomy = "readonly"
memory = "own"
folder = "/plugins"
[channels.discord]
enabled = true
token_env = "BOT"
channel_ids = ["123456789012345678"]
profile = "operator"
users = ["*"]
approvers = ["223456789012345678"]
tools_allow = ["time"]
autonomy = "readonly"
memory = "own"
folder = "/chat"
api = "http://127.0.0.1:1/api"
[channels.telegram]
enabled = true
token_env = "TG"
api = "http://127.0.0.1:1"
tmp_dir = "/photos"
photo_max_mb = 3
photos_keep = 4
photos_keep_mb = 5
profile = "operator"
users = ["*"]
approvers = ["12"]
tools_allow = ["time"]
autonomy = "readonly"
memory = "own"
folder = "/telegram"
[channels.fifo]
profile = "chat"
users = ["me"]
approvers = ["local"]
tools_allow = ["http"]
autonomy = "supervised"
memory = "all"
folder = "/fifo"
[channels.http]
enabled = true
host = "::1"
port = 80
allowed_hosts = ["agent.example.org"]
token_file = "/token"
tls_cert = "/cert"
tls_key = "/key"
profile = "operator"
tools_allow = ["time"]
autonomy = "full"
memory = "all"
folder = "/http"
[channels.cli]
enabled = false
tools_allow = ["time"]
[vision]
provider = "o"
model = "sees"
max_images = 2
max_chars_per_image = 300
max_total_chars = 400
timeout_s = 5
[tools]
dir = "/t"
executables = ["weather"]
env = ["weather:WEATHER_KEY"]
backend = "bash"
web_search = "exa"
browser = true
skills_bytes = 77
[memory]
backend = "sqlite"
path = "/m.sqlite"
agent_dir = "/agent"
history_max = 260
history_keep = 30
results_max_bytes = 123
retention_days = 365
[changes]
keep_sets = 1
keep_mb = 2
keep_days = 3

[hooks]
timeout_s = 5
claude_code = false
[receipts]
enabled = false
hmac = false
path = "/r.log"
[log]
level = "debug"
`

/** The provider kinds and channels of a fresh clone: each of their rows has a value in `everything`. A further one has rows of its own. */
const ours = 'mock openai-compatible anthropic openai reliable router stub fifo plugin discord telegram http plugins cli'.split(' ')

/** Returns the kinds or the channel that a key belongs to; none for a key of any other section. */
function ownersOf({ key, kinds }: (typeof settings)[number]): readonly string[] {
  return kinds?.map(({ kind }) => kind) ?? /^channels\.([^.]+)/.exec(key)?.slice(1) ?? []
}

test('every key of the file arrives in the Config under its own name, and comes out again', () => {
  const { config, origins } = loaded({ user: everything })
  const shown = JSON.parse(showConfig(config, origins, { origin: false, json: true, channels: channelRows }))
  delete shown.providers.models.local
  expect(shown).toEqual(JSON.parse(JSON.stringify(parse(everything))))
  const keys = Object.keys(origins)
  const own = settings.filter((setting) => ownersOf(setting).length === 0 || ownersOf(setting).some((name) => ours.includes(name)))
  for (const { key } of own) expect([key, keys.some((given) => patternOf(given) === key)]).toEqual([key, true])
  for (const key of keys) expect([key, valueAt(config, key)]).not.toEqual([key, undefined])
})

test('the variables are lines that a shell reads back exactly: they give the same configuration', () => {
  const odd = `it's "$(touch owned)"; \\ \`id\` ü #`
  const { config } = loaded({ user: everything, env: { BRAIDCLAW_MODEL: odd, BRAIDCLAW_SECURITY_FORBIDDEN_PATHS: '["/a,b","/c d"]' } })
  const text = showVariables(config, { home: '/home/ann/.braidclaw', channels: channelRows, redact: (value) => value })
  const { stdout } = Bun.spawnSync(['sh', '-c', `set -a; ${text} env -0`], { env: { PATH: '/usr/bin:/bin' } })
  const env = Object.fromEntries([...stdout.toString().matchAll(/([^=\0]+)=([^\0]*)\0/g)].map(([, name, value]) => [name, value]))
  expect([env.SHELLCLAW_MODEL, env.SHELLCLAW_HOME, env.SHELLCLAW_TOOL_BACKEND]).toEqual([odd, '/home/ann/.braidclaw', 'bash'])
  const again = loaded({ user: everything.slice(everything.indexOf('[providers'), everything.indexOf('[channels')), env })
  expect(again.config).toEqual(config)
})

test('what is shown is itself a valid config that means the same', () => {
  for (const user of [undefined, minimum, everything]) {
    const first = loaded({ user })
    const again = loaded({ user: showConfig(first.config, first.origins, { origin: true, json: false, channels: channelRows }) })
    expect(again.config).toEqual(first.config)
  }
})

test('origins stand behind the values: flag, variable, file with line, default', () => {
  const { config, origins } = loaded({ user: minimum, flags: { maxTurns: 3 }, env: { BRAIDCLAW_AUTONOMY: 'full' } })
  const text = showConfig(config, origins, { origin: true, json: false, channels: channelRows })
  expect(text).toContain('max_tool_rounds = 3  # flag: --max-turns\n')
  expect(text).toContain('autonomy = "full"  # environment: BRAIDCLAW_AUTONOMY\n')
  expect(text).toContain('audit_log = true  # user: /home/ann/.braidclaw/config.toml:10\n')
  expect(text).toContain('allow_commands = []  # default: built in\n')
  expect(text).toContain('# max_run_usd is not set: no limit\n')
})

test('as JSON it has the names of the file; with origins these stand beside it', () => {
  const { config, origins } = loaded({ user: minimum })
  expect(JSON.parse(showConfig(config, origins, { origin: false, json: true, channels: channelRows })).security.forbidden_paths).toContain(
    '/etc',
  )
  const both = JSON.parse(showConfig(config, origins, { origin: true, json: true, channels: channelRows }))
  expect(both.origins['memory.path']).toEqual({ source: 'user', where: '/home/ann/.braidclaw/config.toml', line: 28, column: 8 })
})

test('a hostile file name cannot break out of its comment', () => {
  const { config } = loaded({})
  const text = showConfig(
    config,
    { 'log.level': { source: 'user', where: '/a\n[evil]\u001b' } },
    { origin: true, json: false, channels: channelRows },
  )
  expect(Object.keys(parse(text))).not.toContain('evil')
})

test('no key of the environment is shown', () => {
  const env = { OPENAI_API_KEY: 'sk-SECRET1' }
  const { config, origins } = loaded({ user: minimum, env })
  for (const json of [true, false])
    expect(showConfig(config, origins, { origin: true, json, channels: channelRows })).not.toContain('SECRET1')
})

test('the JSON Schema refuses and accepts what loading refuses and accepts', () => {
  const schema = z.fromJSONSchema(JSON.parse(JSON.stringify(configSchema(channelRows))))
  const accepts = (text: string) => schema.safeParse(JSON.parse(JSON.stringify(parse(text)))).success
  const bad = [
    'x = 1',
    '[security]\nautonomy = "godmode"',
    '[limits]\nmax_parallel = 65',
    '[providers.models.a]\nkind = "mock"\nbase_url = "http://x"',
    '[providers.models.a]\nkind = "reliable"\nproviders = []',
  ]
  for (const text of bad) expect([text, accepts(text), load({ user: text }).ok]).toEqual([text, false, false])
  for (const text of ['', minimum, everything]) expect([accepts(text), load({ user: text }).ok]).toEqual([true, true])
})

test('docs/config.md is what the table says; if not, write configDocs() there again', async () => {
  expect(await Bun.file(`${import.meta.dir}/../../../docs/config.md`).text()).toBe(configDocs(channelRows))
})

test('every variable works, stands in the docs, and no two settings share one', () => {
  const wished = loaded({ user: everything }).config
  const rows = settings.filter(({ key }) => !key.includes('*') && !key.startsWith('default_'))
  for (const setting of rows) {
    for (const variable of variablesOfSetting(setting)) {
      const value = valueAt(wished, setting.key)
      const { config } = loaded({ env: { [variable]: Array.isArray(value) ? value.join(',') : String(value) } })
      expect([variable, valueAt(config, setting.key)]).toEqual([variable, value])
      expect(configDocs(channelRows)).toContain(`\`${variable}\``)
    }
  }
  const variables = settings.flatMap(variablesOfSetting)
  expect(new Set(variables).size).toBe(variables.length)
})

test('a provider of the user called local replaces the offline helper', () => {
  const user = '[providers.models.local]\nkind = "anthropic"\nmodel = "m"'
  expect(loaded({ user }).config).toMatchObject({
    defaultProvider: 'local',
    defaultModel: 'm',
    providers: { models: { local: { kind: 'anthropic' } } },
  })
  expect([...withProviderDefaults(new Map()).keys()]).toContain('providers.models.local.kind')
})
