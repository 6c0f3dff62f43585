/**
 * Gathers the rows of all owners: the top of the file, the sections, each provider kind, each channel. The settings above the first section,
 * [vision] and [log] have no other owner and stand here.
 */

import { type Row, type Rows, rowOf, seconds } from '../kit/settings.ts'
import { memoryRows } from '../memory/settings.ts'
import { providerKinds } from '../providers/list.ts'
import type { ProviderKind } from '../providers/provider-kind.ts'
import { receiptRows } from '../receipts/settings.ts'
import { limitRows } from '../runtime/settings.ts'
import { securityRows } from '../security/settings.ts'
import { toolRows } from '../tools/settings.ts'
import { changeRows } from '../workspace/changes/set/settings.ts'

const logLevels = ['debug', 'info', 'warn', 'error'] as const

export const topRows = {
  workspace_dir: {
    type: 'path',
    env: 'BRAIDCLAW_WORKSPACE',
    computed: 'the folder you are in; for the daemon and its bridges, and in your home folder itself, ~/braidclaw-workspace',
    example: '~/braidclaw-workspace',
    about: 'The folder the tools work in, wherever you are.',
  },
  default_provider: {
    type: 'text',
    form: 'provider',
    default: 'local',
    env: 'BRAIDCLAW_PROVIDER',
    project: 'free',
    about: 'Which of [providers.models.NAME] answers. "local", the offline helper, is always there.',
  },
  default_model: {
    type: 'text',
    env: 'BRAIDCLAW_MODEL',
    computed: "the provider's own model",
    project: 'free',
    about: 'The model asked of the default provider. Left aside when a stronger source (flag, environment) chooses another provider.',
  },
  default_agent: {
    type: 'text',
    form: 'agent',
    absent: '"default" for the filter, none for "agent"',
    example: 'coder',
    about: 'Whose soul, session and log a turn has: a folder under ~/.braidclaw/agents.',
  },
  continue_turns: {
    type: 'choice',
    values: ['ask', 'auto', 'never'],
    absent: '"ask" in a conversation at a terminal, "auto" for schedules, "never" elsewhere',
    example: 'auto',
    about:
      'Whether a turn that a crash or a stop interrupted continues at the next start. Its calls are judged again, and none is done twice.',
  },
  proof_of_done: {
    type: 'choice',
    values: ['off', 'show', 'require'],
    default: 'show',
    about:
      'Whether the claims of an answer ("all tests pass") are marked by what the turn proves; "require" sends the model back once, and a turn that still claims more ends with exit 11.',
  },
  proof_of_done_model: {
    type: 'boolean',
    default: false,
    about: 'Whether the model is asked, too, what its answer claims: it finds more, in any language, and costs a request a turn.',
  },
} as const satisfies Rows

/** The helper that reads the text of pictures which people send; the one that answers need not see. */
const visionRows = {
  provider: {
    type: 'text',
    form: 'provider',
    env: 'VISION_PROVIDER',
    absent: 'pictures are kept, and not read',
    example: 'openrouter',
    about: 'Which of [providers.models.NAME], openai-compatible, reads pictures; "openrouter" needs only OPENROUTER_API_KEY.',
  },
  model: { type: 'text', env: 'VISION_MODEL', default: 'nvidia/nemotron-nano-12b-v2-vl:free', about: 'The model that reads pictures.' },
  max_images: {
    type: 'whole',
    min: 0,
    max: 20,
    unit: 'pictures',
    env: 'VISION_MAX_IMAGES',
    default: 1,
    about: 'How many pictures of one message are read.',
  },
  max_chars_per_image: {
    type: 'whole',
    min: 100,
    max: 100_000,
    unit: 'characters',
    env: 'VISION_MAX_CHARS_PER_IMAGE',
    default: 4_000,
    about: 'The longest text of one picture that the model sees.',
  },
  max_total_chars: {
    type: 'whole',
    min: 100,
    max: 100_000,
    unit: 'characters',
    env: 'VISION_MAX_TOTAL_CHARS',
    default: 6_000,
    about: 'The longest text of all pictures of one message that the model sees.',
  },
  timeout_s: { ...seconds, default: 60, about: 'How long reading the pictures of one message may take.' },
} as const satisfies Rows

/** The hooks themselves are files; see host/toolset/hooks. */
const hookRows = {
  timeout_s: { ...seconds, max: 600, default: 10, about: 'How long a hook may take that names no time of its own.' },
  claude_code: { type: 'boolean', default: true, about: 'Whether the hooks in .claude/settings*.json of trusted folders run.' },
} as const satisfies Rows

const logRows = {
  level: { type: 'choice', values: logLevels, default: 'warn', project: 'free', about: 'The least important messages shown on stderr.' },
} as const satisfies Rows

/** In the order of the docs; providers and channels come between `first` and `last`. */
const first = { security: securityRows, limits: limitRows, hooks: hookRows } as const
const last = { vision: visionRows, tools: toolRows, memory: memoryRows, changes: changeRows, receipts: receiptRows, log: logRows } as const
export const sections = { ...first, ...last } as const satisfies { readonly [section: string]: Rows }

/** The rows of [channels.NAME]. The configuration knows no channel itself: the caller that loads it passes the existing ones. */
export type ChannelRows = { readonly name: string; readonly settings: Rows }

/** `key` is dotted, as in TOML; `*` stands for the name of a provider. */
export type Setting = Row & {
  readonly key: string
  /** For a provider's key: the kinds that have it, each with its own default. */
  readonly kinds?: readonly { readonly kind: string; readonly row: Row }[]
}

export type Table = {
  /** Every key once, in the order of the docs. */
  readonly settings: readonly Setting[]
  readonly byKey: ReadonlyMap<string, Setting>
}

export const providerPrefix = 'providers.models.'
export const serverPrefix = 'mcp.servers.'

/** The fields are read by host/toolset/guests/mcp. Nothing of a project's table starts before it was approved. */
const serverRow = {
  type: 'table',
  project: 'free',
  about: 'An MCP server: `command`, `args`, `env` or `url`, `headers`, and its `permissions` (docs/mcp.md).',
  example: '{ command = "mcp-server-memory" }',
} as const satisfies Row

export const kinds: readonly ProviderKind[] = providerKinds

const kindRow = {
  type: 'choice',
  values: kinds.map(({ kind }) => kind),
  required: true,
  about: 'What the provider is.',
} as const satisfies Row

export function tableOf(channels: readonly ChannelRows[]): Table {
  const settings = [
    ...settingsIn('', topRows),
    ...Object.entries(first).flatMap(([name, rows]) => settingsIn(`${name}.`, rows)),
    ...providerSettings(),
    { ...serverRow, key: `${serverPrefix}*` },
    ...channels.flatMap(({ name, settings: rows }) => settingsIn(`channels.${name}.`, rows)),
    ...Object.entries(last).flatMap(([name, rows]) => settingsIn(`${name}.`, rows)),
  ]
  return { settings, byKey: new Map(settings.map((setting) => [setting.key, setting])) }
}

function settingsIn(prefix: string, rows: Rows): readonly Setting[] {
  return Object.entries(rows).map(([key, row]) => ({ ...row, key: prefix + key }))
}

/** Kinds whose key has the same type and meaning share one setting. */
function providerSettings(): readonly Setting[] {
  const groups = new Map<string, { readonly key: string; readonly kinds: { readonly kind: string; readonly row: Row }[] }>()
  for (const { kind, settings } of kinds)
    for (const [leaf, row] of Object.entries(settings)) {
      const same = `${leaf} ${row.type} ${row.about}`
      const group = groups.get(same) ?? { key: `${providerPrefix}*.${leaf}`, kinds: [] }
      groups.set(same, group)
      group.kinds.push({ kind, row })
    }
  return [{ ...kindRow, key: `${providerPrefix}*.kind` }, ...[...groups.values()].flatMap(shared)]
}

function shared(group: { readonly key: string; readonly kinds: readonly { readonly kind: string; readonly row: Row }[] }): Setting[] {
  return group.kinds.slice(0, 1).map(({ row }) => ({ ...row, ...group }))
}

/**
 * Returns the row of a key. For a provider's key, returns the row of its kind; if the kind is unknown or lacks the key, the first kind that
 * has it decides.
 */
export function settingOf({ byKey }: Table, key: string, kind?: string): Setting | undefined {
  if (key.startsWith(serverPrefix) && key.split('.').length === 3) return byKey.get(`${serverPrefix}*`)
  return key.startsWith(providerPrefix) ? providerSetting(key, kind) : byKey.get(key)
}

export function providerSetting(key: string, kind: string | undefined): Setting | undefined {
  const [, leaf = ''] = /^providers\.models\.[^.]+\.([^.]+)$/.exec(key) ?? []
  const row = leaf === 'kind' ? kindRow : rowOf(rowsOfKind(kind) ?? {}, leaf)
  const found = row ?? kinds.map(({ settings }) => rowOf(settings, leaf)).find((each) => each !== undefined)
  return found && { ...found, key: `${providerPrefix}*.${leaf}` }
}

export function rowsOfKind(kind: string | undefined): Rows | undefined {
  return kinds.find((each) => each.kind === kind)?.settings
}

/** `providers.models.local.kind` → `providers.models.*.kind`, `mcp.servers.notes` → `mcp.servers.*`. */
export function patternOf(key: string): string {
  return key.replace(/^(providers\.models|mcp\.servers)\.[^.]+/, '$1.*')
}

/** Returns the last part of a dotted key. */
export function leafOf(key: string): string {
  return key.slice(key.lastIndexOf('.') + 1)
}

/** Returns the section of a key; empty for a key at the top. */
export function sectionOf(key: string): string {
  return key.includes('.') ? key.slice(0, key.lastIndexOf('.')) : ''
}

/**
 * Returns `BRAIDCLAW_LIMITS_MAX_TOOL_ROUNDS`, for example. Keys of providers have no variable, because a provider's name may contain any
 * character.
 */
function variableOf({ key }: Setting): string | undefined {
  return key.includes('*') ? undefined : `BRAIDCLAW_${key.replaceAll('.', '_').toUpperCase()}`
}

/** Returns every variable that sets this key. */
export function variablesOfSetting(setting: Setting): readonly string[] {
  return [setting.env, variableOf(setting)].filter((name) => name !== undefined)
}
