/** Implements `init`: creates the home folder, keeps every existing file, and adds the detected providers to an existing config file. */

import { chmodSync, existsSync, mkdirSync, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { defaultSoul } from '../memory/conversations/summary-words.ts'
import type { ConfigProblem } from './config.ts'
import { defaultConfigToml, type Extension, type ExtensionRequest, extendConfig, providerTable, seedValues } from './config-text.ts'
import { type Proposal, proposeProviders } from './known-providers.ts'
import { type Loaded, type LoadInput, loadConfig } from './load.ts'
import { type HomePaths, homePaths, ownWorkspace } from './paths.ts'
import { sections } from './table.ts'
import { errorCode, explainErrno, type FileRead, readConfigFile } from './text/read-toml-file.ts'
import { writeConfig } from './text/write-files.ts'

/** `tightened`: others could read the existing folder, and now they cannot. `extended`: init added something to the existing file. */
export type InitStep = {
  readonly what: string
  readonly path: string
  readonly state: 'created' | 'kept' | 'tightened' | 'extended'
  /** Says what was added, or why nothing was added. */
  readonly note?: string
}

type HomeInput = Omit<LoadInput, 'flags' | 'trusted' | 'readFile'>

export type InitInput = HomeInput & {
  /** Used for a new config file; a relative path starts at the current folder. An existing file keeps its own workspace_dir. */
  readonly workspace?: string
  /** True: a new file sets the limits of the first specification. */
  readonly seedDefaults?: boolean
  /** True: also creates the files of the second specification: sessions/ of the default agent, agents.json and shellclaw.env. */
  readonly agentFiles?: boolean
  /**
   * The providers for a new config file (the first is the default), or to add to an existing one; by default the environment suggests them.
   */
  readonly proposals?: readonly Proposal[]
  /** The provider that a person chose as the default. */
  readonly choice?: ExtensionRequest['choice']
  /** Creates the database at this path in an existing folder; not called when the file exists. May throw. */
  readonly createDatabase: (path: string) => void | Promise<void>
}

/** Completed steps stay in place when a later step fails: both shapes list them in `steps`. */
export type InitResult =
  | { readonly ok: true; readonly steps: readonly InitStep[]; readonly notices: readonly string[] }
  | { readonly ok: false; readonly steps: readonly InitStep[]; readonly problems: readonly ConfigProblem[] }

/** Can be run again at any time. Reports file system errors as problems instead of throwing. */
export async function initHome(input: InitInput): Promise<InitResult> {
  const steps: InitStep[] = []
  const paths = homePaths(input.home)
  const doing = { path: paths.home }
  try {
    steps.push(privateFolder('home', paths.home))
    doing.path = paths.config
    const config = configFile(paths.config, input)
    steps.push(config)
    const loaded = loadConfig({ ...input, trusted: () => false, stays: true })
    if (!loaded.ok) return { ok: false, steps, problems: loaded.problems }
    if (config.state === 'kept') steps[steps.length - 1] = { ...config, ...extendFile(paths.config, input) }
    const { memory, receipts, workspaceDir } = loaded.config
    const records = new Set([memory.path, receipts.path].map(dirname).filter((path) => path !== paths.home))
    const folders = [...Array.from(records, (path) => ['records', path]), ['logs', paths.logs], ['workspace', workspaceDir]] as const
    for (const [what = '', path = ''] of folders) {
      doing.path = path
      // A folder that contains only our files becomes private; a folder that the user chose elsewhere keeps its mode.
      steps.push(what === 'logs' ? privateFolder(what, path) : sharedFolder(what, path))
    }
    doing.path = join(paths.agents, 'default', 'soul.md')
    steps.push(privateFolder('agent', dirname(doing.path)), newFile({ what: 'soul', path: doing.path, text: `${defaultSoul}\n` }))
    doing.path = join(paths.home, 'config')
    if (input.agentFiles) steps.push(...agentFiles(paths))
    doing.path = memory.path
    const isThere = existsSync(memory.path)
    if (!isThere) await input.createDatabase(memory.path)
    steps.push({ what: 'memory', path: memory.path, state: isThere ? 'kept' : 'created' })
    return { ok: true, steps, notices: [...loaded.notices, ...everywhere(config, loaded, input), ...seedNotice(config, input)] }
  } catch (error) {
    return { ok: false, steps, problems: [cannot(doing.path, error)] }
  }
}

/**
 * In version 0.1.0 `init` itself wrote workspace_dir, so the user may not know that this line keeps the tools out of every other folder.
 */
function everywhere(
  { state, path }: InitStep,
  { config, origins }: Extract<Loaded, { ok: true }>,
  { workspace }: InitInput,
): readonly string[] {
  if (state === 'created' || workspace !== undefined || origins.workspace_dir?.source !== 'user') return []
  if (!config.workspaceDir.endsWith(`/${ownWorkspace}`)) return []
  const remedy = `to have them work in the folder you are in, take workspace_dir out of ${path}`
  return [`the tools work in ${config.workspaceDir} wherever you are; ${remedy}`]
}

function seedNotice({ state, path }: InitStep, { seedDefaults }: InitInput): readonly string[] {
  if (!seedDefaults || state === 'created') return []
  const lines = Object.entries(seedValues(sections.limits)).map(([key, value]) => `${key} = ${value}`)
  return [`--seed-defaults writes only a new file; write these limits into [limits] of ${path} yourself: ${lines.join(', ')}`]
}

/** Formats a step as one line for a person: `created  workspace  /home/me/braidclaw-workspace`. */
export function describeStep({ state, what, path, note }: InitStep): string {
  return `${state.padEnd(9)} ${what.padEnd(9)} ${path}${note === undefined ? '' : `: ${note}`}`
}

/** The lines of shellclaw.env are comments, because a variable there would win over config.toml. */
function agentFiles({ home, agents, agentsFiles, envFiles: [variables = ''] }: HomePaths): readonly InitStep[] {
  const folder = join(home, 'config')
  const agentsFile = agentsFiles.find((path) => existsSync(path)) ?? join(folder, 'agents.json')
  const row = { default: { soul: 'agents/default/soul.md', model: null } }
  const lines = ['MODEL=', 'DEFAULT_AGENT=default', 'TOOL_BACKEND=native'].map((line) => `# SHELLCLAW_${line}\n`)
  const text = `# BraidClaw reads this file and never runs it. A line here wins over config.toml.\n${lines.join('')}`
  return [
    privateFolder('sessions', join(agents, 'default', 'sessions')),
    privateFolder('settings', folder),
    newFile({ what: 'agents', path: agentsFile, text: `${JSON.stringify(row, null, 2)}\n` }),
    newFile({ what: 'variables', path: variables, text }),
  ]
}

function privateFolder(what: string, path: string): InitStep {
  const step = sharedFolder(what, path)
  if ((statSync(path).mode & 0o077) === 0) return step
  chmodSync(path, 0o700)
  return step.state === 'created' ? step : { ...step, state: 'tightened' }
}

function sharedFolder(what: string, path: string): InitStep {
  const there = existsSync(path)
  if (there && !statSync(path).isDirectory()) throw Object.assign(new Error('not a folder'), { code: 'ENOTDIR' })
  if (!there) mkdirSync(path, { recursive: true, mode: what === 'workspace' ? 0o755 : 0o700 })
  return { what, path, state: there ? 'kept' : 'created' }
}

function configFile(path: string, input: InitInput): InitStep {
  const { env, cwd, channels, choice, seedDefaults, proposals = proposeProviders(env) } = input
  const workspace = input.workspace === undefined ? undefined : resolve(cwd, input.workspace)
  const text = defaultConfigToml({ channels, proposals, workspace, seedDefaults })
  return newFile({ what: 'config', path, text: choice ? extendConfig(text, { proposals: [], choice }).text : text })
}

function newFile({ what, path, text }: { readonly what: string; readonly path: string; readonly text: string }): InitStep {
  return { what, path, state: writeConfig(path, undefined, text) ? 'created' : 'kept' }
}

function cannot(path: string, error: unknown): ConfigProblem {
  const code = errorCode(error)
  const why = /^E[A-Z]/.test(code) || !(error instanceof Error) ? explainErrno(code) : error.message
  return { file: path, key: '', message: `cannot be made: ${why}` }
}

type ExtendInput = HomeInput & Partial<ExtensionRequest>

/**
 * Adds providers to an existing config file: replaces it atomically, follows symbolic links, and keeps its owner and mode. Expects an
 * existing, valid file.
 * @throws Error with an errno when the file cannot be replaced; its content is then unchanged
 */
function extendFile(path: string, input: ExtendInput): Pick<InitStep, 'state' | 'note'> {
  const read = readConfigFile(path)
  if (read.state !== 'text') return { state: 'kept', note: 'it cannot be read any more' }
  const request = { proposals: input.proposals ?? proposeProviders(input.env), choice: input.choice }
  const extension = extendConfig(read.text, request)
  if (extension.text === read.text) return { state: 'kept', note: nothingToAdd(extension, request, input) }
  if (!loadWith(path, extension.text, input).ok) return { state: 'kept', note: byHand(extension.added) }
  return writeConfig(path, read.text, extension.text)
    ? { state: 'extended', note: whatChanged(extension, input) }
    : { state: 'kept', note: 'nothing was added, because somebody else changed it meanwhile; run init again' }
}

function whatChanged({ added, chosen }: Extension, input: ExtendInput): string {
  const tables = added.map(({ name, because }) => `added provider ${name}${because === '' ? '' : ` (${because} is set)`}`)
  const by = chosen === undefined ? `default_provider stays "${defaultIn(input)}"` : `default_provider is now "${chosen}"`
  return [...tables, by].join(', ')
}

function nothingToAdd({ clashing }: Extension, { proposals }: ExtensionRequest, input: ExtendInput): string {
  const why = clashing.map(({ name, because }) => `${because} is set, but [providers.models.${name}] is yours and does not read it`)
  const none = proposals.length === 0 ? ['no variable of docs/models.md is set'] : why
  return ['nothing to add', ...none, `default_provider is "${defaultIn(input)}"`].join('; ')
}

/** TOML forbids further tables after `providers = { models = { … } }`. */
function byHand(added: readonly Proposal[]): string {
  const lines = added.flatMap((proposal) => ['', ...providerTable(proposal)])
  return `nothing was added, because the providers stand in an inline table; add by hand:\n${lines.join('\n')}\n`
}

/** Loads the configuration as if the file held this text. */
export function loadWith(path: string, text: string, input: HomeInput): Loaded {
  const draft: FileRead = { state: 'text', text, worldWritable: false }
  const readFile = (file: string) => (file === path ? draft : readConfigFile(file))
  return loadConfig({ ...input, trusted: () => false, readFile })
}

function defaultIn(input: ExtendInput): string {
  const loaded = loadConfig({ ...input, trusted: () => false })
  return loaded.ok ? loaded.config.defaultProvider : 'local'
}
