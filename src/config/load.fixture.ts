/** Loads configuration from text in tests, with files that exist only in memory. */

import { channelRows } from '../channels/list.ts'
import type { Config } from './config.ts'
import type { Flags } from './load.ts'
import { type Loaded, loadConfig } from './load.ts'

export type LayerFixture = {
  readonly user?: string
  readonly project?: string
  readonly trusted?: boolean
  readonly env?: { readonly [name: string]: string | undefined }
  readonly flags?: Flags
  readonly home?: string
  readonly cwd?: string
}

export const userFile = '/home/ann/.braidclaw/config.toml'
export const projectFile = '/work/.braidclaw/config.toml'

export function load({
  user,
  project,
  trusted = true,
  env = {},
  flags,
  home = '/home/ann/.braidclaw',
  cwd = '/work',
}: LayerFixture): Loaded {
  const files = new Map([
    [`${home}/config.toml`, user],
    [projectFile, project],
  ])
  return loadConfig({
    home,
    cwd,
    flags,
    channels: channelRows,
    env: { HOME: '/home/ann', ...env },
    trusted: () => trusted,
    readFile: (path) => {
      const text = files.get(path)
      return text === undefined ? { state: 'missing' } : { state: 'text', text, worldWritable: false }
    },
  })
}

export function loaded(fixture: LayerFixture): Extract<Loaded, { ok: true }> {
  const result = load(fixture)
  if (!result.ok) throw new Error(`should load, but: ${JSON.stringify(result.problems, null, 1)}`)
  return result
}

export function configOf(fixture: LayerFixture): Config {
  return loaded(fixture).config
}

/** Returns `line:column key: message` for every problem; without a line, the source's name replaces the position. */
export function problemsOf(fixture: LayerFixture): readonly string[] {
  const result = load(fixture)
  if (result.ok) throw new Error('should be refused, but it loads')
  return result.problems.map(
    ({ file, line, column, key, message }) => `${line === undefined ? file : `${line}:${column}`} ${key}: ${message}`,
  )
}

/** The smallest complete config, valid without changes. */
export const minimum = `workspace_dir = "~/braidclaw-workspace"
default_provider = "local"
default_model = "mock"

[security]
autonomy = "supervised"
workspace_only = true
forbidden_paths = ["/etc", "/sys", "/boot", "~/.ssh"]
forbidden_commands = ["rm", "shutdown", "reboot", "mkfs", "dd"]
audit_log = true

[providers.models.local]
kind = "mock"
model = "mock"

[providers.models.openai_compatible]
kind = "openai-compatible"
base_url = "http://localhost:1234/v1"
model = "local-model"
api_key_env = "OPENAI_API_KEY"

[channels.cli]
enabled = true
tools_allow = ["file_read", "file_list", "time", "memory_search", "shell"]

[memory]
backend = "sqlite"
path = "~/.braidclaw/memory.sqlite"

[receipts]
enabled = true
path = "~/.braidclaw/tool_receipts.log"
`
