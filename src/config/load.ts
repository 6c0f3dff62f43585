/** Merges the sources of configuration, from defaults up to flags, into one checked Config, or reports all problems at once. */

import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { defaultOf, type Rows, withDefaults } from '../kit/settings.ts'
import type { efforts } from '../providers/rows.ts'
import { quoteText } from '../security/command/syntax/quote.ts'
import type { AgentConfig, Config, ConfigProblem, ConfigSource, Origin, Origins } from './config.ts'
import { brokenAddress, knownNames, knownProvider, type Proposal, proposeProviders } from './known-providers.ts'
import {
  type ConfigEntry,
  draftLayer,
  type Entries,
  type Here,
  type Layer,
  type LayerContext,
  programNames,
  providerNames,
  put,
} from './layers/entries.ts'
import { backendLayer, envFileLayers, environmentLayer, variablesOf } from './layers/environment.ts'
import { agentLayer, type FileLayer, fileLayer, readAgents } from './layers/file.ts'
import { splitModel, withModel } from './layers/model.ts'
import type { overlayProject } from './layers/overlay-project.ts'
import { completeness, kindOf, lengths, membersOf, recordPlaces, references } from './layers/references.ts'
import { builtIn, unnamedWorkspace } from './paths.ts'
import { type ChannelRows, providerPrefix, rowsOfKind, sections, serverPrefix, settingOf, tableOf, topRows } from './table.ts'
import { check } from './text/check.ts'
import { type FileRead, readConfigFile } from './text/read-toml-file.ts'

export type LoadInput = {
  /** Absolute: BRAIDCLAW_HOME or ~/.braidclaw. */
  readonly home: string
  readonly env: { readonly [name: string]: string | undefined }
  readonly flags?: Flags
  /** Absolute. */
  readonly cwd: string
  /** The existing channels, each with the rows of its section. */
  readonly channels: readonly ChannelRows[]
  /** Returns whether the user has trusted this folder; called only when the folder has a config file. */
  readonly trusted: (folder: string) => boolean
  readonly readFile?: (path: string) => FileRead
  /** True for a background program: without workspace_dir it works in ~/braidclaw-workspace, wherever it was started. */
  readonly stays?: boolean
}

/**
 * `file` and `project` are the config files that were used. `assumed`: the variable that selected the provider because nobody named one.
 */
export type Loaded =
  | {
      readonly ok: true
      readonly config: Config
      readonly origins: Origins
      readonly notices: readonly string[]
      readonly file?: string
      readonly project?: string
      readonly assumed?: string
    }
  | { readonly ok: false; readonly problems: readonly ConfigProblem[] }

/**
 * Precedence: defaults < user file < trusted project's files < env file < environment < agents.json < flags. Reads files and changes
 * nothing, but keeps what a program returned; never throws because of their content.
 */
export function loadConfig(input: LoadInput): Loaded {
  const table = tableOf(input.channels)
  const around = { table, home: input.home, userHome: input.env.HOME || process.getBuiltinModule('node:os').homedir(), env: input.env }
  const where = { ...around, base: input.cwd, typed: true }
  const variables = variablesOf(input.env, table)
  const environment = environmentLayer(variables, where)
  const flags = flagLayer(input.flags ?? {}, where)
  const user = userLayer(input, around)
  // When the user file cannot be read, report that only once.
  const readFile = user.broken ? () => missing : (input.readFile ?? readConfigFile)
  const envFile = envFileLayers({ around, readFile })
  const project = projectLayer(input, around, overlay(envFile.settings.entries, environment.entries, flags.entries), user)
  const agents = readAgents(input.home, readFile)
  const agent = agentLayer(agents, overlay(user.entries, envFile.settings.entries, environment.entries, flags.entries), where)
  const backend = backendLayer(variables, where)
  const workspace = unnamedWorkspace({ ...input, ...around })
  const base = withDefaultProvider(overlay(defaultEntries(where), new Map([['workspace_dir', workspace]])), input.env)
  const own = overlay(base, user.entries)
  const merged = project.entries.size === 0 ? { entries: own, problems: [], notices: [] } : overlaid(table, own, project.entries)
  const shared = { ...merged, entries: withOnlyProvider(merged.entries) }
  const names = () => [...new Set([...providerNames(withProviderDefaults(shared.entries)), ...knownNames])]
  const standing = shared.entries.get('default_provider')?.value
  const split = [envFile.settings, environment, agent, flags].map((layer) => splitModel(layer.entries, names, standing))
  const stated = overlay(shared.entries, ...split.map((layer) => layer.entries), envFile.backend.entries, backend.entries)
  const entries = withModel(inProviders(withProviderDefaults(withKnownProviders(withStub(stated), input.env)), input))
  const layers = [user, project, envFile.settings, envFile.backend, environment, agent, flags, backend]
  // Skip wrong model names when a backend overrides the provider, or when the program llm resolves the names itself.
  const hasOtherBackend = overlay(envFile.backend.entries, backend.entries).size > 0 || entries.get('tools.backend')?.value === 'llm'
  const misnamed = hasOtherBackend ? [] : split.flatMap((layer) => layer.problems)
  const direct = [...layers.flatMap((layer) => layer.problems), ...misnamed, ...shared.problems, ...agents.problems]
  const known = { entries, mentioned: new Set(direct.map((problem) => problem.key)) }
  const broken = user.broken || project.broken
  const unusable = unusableAddress(entries, input.env)
  const found = () => [
    ...completeness(known),
    ...(unusable.length > 0 ? unusable : references(known)),
    ...lengths(known),
    ...recordPlaces(known),
  ]
  const problems = [...direct, ...(broken ? [] : found())]
  if (problems.length > 0) return { ok: false, problems: inOrder(problems) }
  const notices = [...layers.flatMap((layer) => layer.notices), ...shared.notices]
  return {
    ok: true,
    config: assemble({ entries, agents: agents.agents, channels: input.channels }),
    origins: originsOf(entries),
    notices,
    file: user.file,
    project: project.file,
    assumed: assumedFrom(entries.get('default_provider')?.origin),
  }
}

function assumedFrom(origin: Origin | undefined): string | undefined {
  return origin?.source === 'default' && origin.where !== 'built in' ? origin.where : undefined
}

/** Reports a known provider that was chosen although its variable contains an invalid address. */
function unusableAddress(entries: Entries, env: LoadInput['env']): readonly ConfigProblem[] {
  const name = String(entries.get('default_provider')?.value)
  const variable = providerNames(entries).includes(name) ? undefined : brokenAddress(name, env)
  if (variable === undefined) return []
  return [{ file: variable, key: '', message: 'is not an address; write one such as "https://api.example.org/v1", without a password' }]
}

type ReadLayer = FileLayer & { readonly file?: string }

const missing: FileRead = { state: 'missing' }

const nothing: ReadLayer = { entries: new Map(), problems: [], notices: [], broken: false }

function userLayer({ home, readFile = readConfigFile }: LoadInput, around: LayerContext): ReadLayer {
  const file = join(home, 'config.toml')
  return fromRead({ file, source: 'user', around, read: readFile(file) })
}

/**
 * Reads the project of -C/--workspace or of the current folder. Its `.braidclaw` may be the user's own home folder, which is not a project.
 */
function projectLayer(input: LoadInput, around: LayerContext, given: Entries, { entries }: Layer): ReadLayer {
  const chosen = given.get('workspace_dir')?.value
  const folder = typeof chosen === 'string' ? chosen : input.cwd
  const toml = projectFile(input, around, folder)
  const [file, other] = programNames.map((name) => join(folder, name)).filter((path) => existsSync(path))
  if (!file) return toml
  if (!input.trusted(folder)) return { ...toml, notices: [...toml.notices, untrusted(file, folder)] }
  const { withProgram }: typeof import('./layers/program.ts') = require('./layers/program.ts')
  return withProgram({ file, other, folder, toml, user: entries, around })
}

function projectFile(input: LoadInput, around: LayerContext, folder: string): ReadLayer {
  const file = join(folder, '.braidclaw', 'config.toml')
  if (file === join(input.home, 'config.toml')) return nothing
  const read = (input.readFile ?? readConfigFile)(file)
  if (read.state === 'missing') return nothing
  if (!input.trusted(folder)) return { ...nothing, notices: [untrusted(file, folder)] }
  return fromRead({ file, source: 'project', around, read })
}

function untrusted(file: string, folder: string): string {
  return `${file} is ignored: this folder is not trusted. Read it, then trust the folder with: braidclaw trust ${quoteText(folder)}`
}

type FromRead = { readonly file: string; readonly source: ConfigSource; readonly around: LayerContext; readonly read: FileRead }

function fromRead({ file, source, around, read }: FromRead): ReadLayer {
  if (read.state === 'missing') return nothing
  if (read.state === 'unusable')
    return { ...nothing, file, broken: true, problems: [{ file, line: read.line, key: '', message: `this file ${read.why}` }] }
  const notices = read.worldWritable ? [`${file} can be changed by every user of this machine; run: chmod o-w ${file}`] : []
  return { ...fileLayer({ file, text: read.text, source, around }), file, notices }
}

/** Sets BRAIDCLAW_MOCK_FIXTURE and --effort in every provider whose kind has that row. */
function inProviders(entries: Entries, { env: { BRAIDCLAW_MOCK_FIXTURE: fixture }, cwd, flags }: LoadInput): Entries {
  const set = (key: string, value: string | undefined, origin: Origin) =>
    providerNames(entries).flatMap((name): [string, ConfigEntry][] =>
      value && rowsOfKind(kindOf(entries, name))?.[key] ? [[`${providerPrefix}${name}.${key}`, { value, origin }]] : [],
    )
  const fixtures = set('fixture', fixture && resolve(cwd, fixture), { source: 'environment', where: 'BRAIDCLAW_MOCK_FIXTURE' })
  const rows = [...fixtures, ...set('effort', flags?.effort, { source: 'flag', where: '--effort' })]
  return rows.length === 0 ? entries : overlay(entries, new Map(rows))
}

/** Sorts problems by file, each from top to bottom; problems without a line come last. */
function inOrder(problems: readonly ConfigProblem[]): readonly ConfigProblem[] {
  const files = [...new Set(problems.map((problem) => problem.file))]
  const isLast = ({ line }: ConfigProblem) => Number(line === undefined)
  const inFile = ({ line = 0, column = 0 }: ConfigProblem) => line * 1e6 + column
  return problems.toSorted((a, b) => isLast(a) - isLast(b) || files.indexOf(a.file) - files.indexOf(b.file) || inFile(a) - inFile(b))
}

function originsOf(entries: Entries): Origins {
  return Object.fromEntries([...entries].map(([key, { origin }]) => [key, origin]))
}

type Assembling = {
  /** Every entry has passed its checks, so its value has the type of its row. */
  readonly entries: Entries
  readonly agents: { readonly [id: string]: AgentConfig }
  readonly channels: readonly ChannelRows[]
}

/** Turns checked entries into the typed Config; only this file maps TOML keys such as `max_tool_rounds` to `maxToolRounds`. */
function assemble({ entries, agents, channels }: Assembling): Config {
  const values = (prefix: string, rows: Rows = {}) => withDefaults(rows, (key) => entries.get(prefix + key)?.value)
  const provider = (name: string) => {
    const kind = kindOf(entries, name)
    return [name, { kind, name, ...values(`${providerPrefix}${name}.`, rowsOfKind(kind)) }]
  }
  return {
    ...values('', topRows),
    ...Object.fromEntries(Object.entries(sections).map(([name, rows]) => [name, values(`${name}.`, rows)])),
    agents,
    providers: { models: Object.fromEntries(providerNames(entries).map(provider)) },
    mcp: { servers: Object.fromEntries([...entries].flatMap(([key, { value }]) => serverIn(key, value))) },
    channels: Object.fromEntries(channels.map(({ name, settings }) => [name, values(`channels.${name}.`, settings)])),
  } as Config
}

function serverIn(key: string, value: unknown): readonly (readonly [id: string, table: unknown])[] {
  return key.startsWith(serverPrefix) ? [[key.slice(serverPrefix.length), value]] : []
}

/** Sets the default provider that is used when the user has named none. */
function withDefaultProvider(base: Entries, env: LoadInput['env']): Entries {
  const [first] = proposeProviders(env)
  if (first === undefined) return base
  return overlay(base, new Map([['default_provider', entry(first.name, first.because)]]))
}

/** Makes the only provider of the config file the default when nobody named one. A provider that others pass requests to does not count. */
function withOnlyProvider(entries: Entries): Entries {
  const configured = providerNames(entries).filter((name) => name !== 'local')
  const members = new Set(configured.flatMap((name) => membersOf(entries, name).map((member) => member.name)))
  const [only, ...others] = configured.filter((name) => !members.has(name))
  const kind = entries.get(`${providerPrefix}${only}.kind`)
  if (only === undefined || kind === undefined || others.length > 0 || entries.get('default_provider')?.origin.source !== 'default')
    return entries
  return new Map([...entries, ['default_provider', { value: only, origin: kind.origin }] as const])
}

/**
 * Adds the providers that need no table: those whose key is in the environment, and a known provider chosen by name. A user's table with
 * one of their names stays unchanged.
 */
function withKnownProviders(entries: Entries, env: LoadInput['env']): Entries {
  const configured = providerNames(entries)
  const named = new Set([...namedIn(entries, configured), ...proposeProviders(env).map(({ name }) => name)])
  const missing = knownNames.filter((name) => named.has(name) && !configured.includes(name))
  const tables = missing.flatMap((name) => knownProvider(name, env) ?? []).flatMap(rowsOf)
  return tables.length === 0 ? entries : new Map([...entries, ...tables])
}

function namedIn(entries: Entries, configured: readonly string[]): readonly string[] {
  const members = configured.flatMap((name) => membersOf(entries, name).map((member) => member.name))
  return [...['default_provider', 'vision.provider'].map((key) => String(entries.get(key)?.value)), ...members]
}

function rowsOf({ name, kind, model, baseUrl, apiKeyEnv, because }: Proposal): [string, ConfigEntry][] {
  const values = { kind, model, base_url: baseUrl, api_key_env: apiKeyEnv }
  return Object.entries(values).flatMap(([leaf, value]): [string, ConfigEntry][] =>
    value === undefined ? [] : [[`providers.models.${name}.${leaf}`, entry(value, because)]],
  )
}

function entry(value: string, where: string): ConfigEntry {
  return { value, origin: { source: 'default', where } }
}

/** Loads the rules for a project's settings, which few folders have. */
function overlaid(...given: Parameters<typeof overlayProject>) {
  const { overlayProject }: typeof import('./layers/overlay-project.ts') = require('./layers/overlay-project.ts')
  return overlayProject(...given)
}

/** Merges layers: the stronger layer wins, but a project's file may only tighten the settings that protect the user. Later layers win. */
function overlay(...layers: readonly Entries[]): Entries {
  const merged = new Map<string, ConfigEntry>()
  for (const layer of layers) for (const [key, entry] of layer) merged.set(key, entry)
  return merged
}

/** The settings that the command line may override. A relative path starts at the current folder. `model` may be `provider/model`. */
export type Flags = {
  readonly workspace?: string
  readonly provider?: string
  readonly model?: string
  readonly agent?: string
  readonly autonomy?: string
  readonly maxTurns?: number
  readonly approveAllMedium?: boolean
  readonly toolsAllow?: readonly string[]
  readonly logLevel?: string
  readonly toolEnv?: readonly string[]
  readonly proof?: 'require' | undefined
  readonly effort?: (typeof efforts)[number] | undefined
}

const flagKeys: { readonly [flag in Exclude<keyof Flags, 'effort'>]: readonly [key: string, spelling: string] } = {
  workspace: ['workspace_dir', '--workspace'],
  provider: ['default_provider', '--provider'],
  model: ['default_model', '--model'],
  agent: ['default_agent', '--agent'],
  autonomy: ['security.autonomy', '--autonomy'],
  maxTurns: ['limits.max_tool_rounds', '--max-turns'],
  approveAllMedium: ['security.approve_all_medium', '--approve-all-medium'],
  toolsAllow: ['channels.cli.tools_allow', '--tools'],
  logLevel: ['log.level', '--log-level'],
  toolEnv: ['tools.env', '--tool-env'],
  proof: ['proof_of_done', '--require-proof'],
}

function flagLayer(flags: Flags, where: Here): Layer {
  const draft = draftLayer()
  const given = new Map<string, unknown>(Object.entries(flags))
  if (given.size === 0) return draft
  for (const [flag, [key, spelling]] of Object.entries(flagKeys)) {
    const setting = settingOf(where.table, key)
    const raw = given.get(flag)
    if (raw !== undefined && setting !== undefined) put(draft, { setting, raw, where, origin: { source: 'flag', where: spelling } })
  }
  return draft
}

/** Checks only the defaults that are paths, because they depend on the user. */
function defaultEntries(where: Here): Entries {
  const entries = new Map<string, ConfigEntry>()
  for (const setting of where.table.settings) {
    if (setting.key.includes('*')) continue
    const value = setting.type === 'path' || setting.type === 'paths' ? check(setting, defaultOf(setting), where).value : defaultOf(setting)
    if (value !== undefined) entries.set(setting.key, { value, origin: builtIn })
  }
  return entries
}

/** Adds the provider `stub` when it is the default provider and the user has defined none of that name. */
function withStub(entries: Entries): Entries {
  if (entries.get('default_provider')?.value !== 'stub' || providerNames(entries).includes('stub')) return entries
  return new Map([...entries, ['providers.models.stub.kind', { value: 'stub', origin: builtIn }] as const])
}

/** Adds `local`, unless the user has defined it, and the default values of each provider's kind. */
export function withProviderDefaults(entries: Entries): Entries {
  const all = new Map<string, ConfigEntry>()
  const names = providerNames(entries)
  const given = names.includes('local') ? entries : new Map([...entries, ['providers.models.local.kind', localKind] as const])
  for (const name of names.includes('local') ? names : [...names, 'local']) fill(all, given, name)
  for (const [key, entry] of given) all.set(key, entry)
  return all
}

const localKind: ConfigEntry = { value: 'mock', origin: builtIn }

/** Adds the defaults of one provider's kind. */
function fill(all: Map<string, ConfigEntry>, entries: Entries, name: string): void {
  const kind = kindOf(entries, name)
  for (const [leaf, row] of Object.entries(rowsOfKind(kind) ?? {})) {
    const value = defaultOf(row)
    if (value !== undefined) all.set(`${providerPrefix}${name}.${leaf}`, { value, origin: builtIn })
  }
}
