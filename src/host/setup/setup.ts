/** Loads what every command needs first: the configuration, the redactor, the log. An invalid configuration ends the command here. */

import { appendFileSync, existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Config, describeProblem } from '../../config/config.ts'
import { programNames } from '../../config/layers/entries.ts'
import { type Flags, type Loaded, loadConfig } from '../../config/load.ts'
import { type HomePaths, homePaths } from '../../config/paths.ts'
import { rowsOfKind } from '../../config/table.ts'
import { createTrust } from '../../config/trust.ts'
import { hasCode } from '../../kit/errors.ts'
import { namesIn } from '../../kit/proc.ts'
import { camel, type Rows } from '../../kit/settings.ts'
import { sha256 } from '../../kit/sha256.ts'
import { weaknessOf } from '../../security/redaction/secret-forms.ts'
import type { HostContext, Setup } from '../api.ts'
import { FailureError } from '../failure.ts'
import { createLog } from './context.ts'

/** `stays`: see LoadInput. */
type How = { readonly stays?: boolean }

/** @throws FailureError that names every problem of the configuration at once: `error`, or `usage` when only flags are wrong. */
export function loadSetup<Context extends HostContext>(context: Context, flags: Flags = {}, how: How = {}): Setup<Context> {
  const { home, env, redactor } = context
  const paths = homePaths(home)
  const stamps = () => stampsOf(paths, flags.workspace ?? context.cwd)
  const before = stamps()
  const { config, origins, notices, file, assumed } = resolve(context, flags, how)
  for (const [name, value] of keysIn(config, context)) if (!weaknessOf(value)) redactor.register(value, name)
  const log = createLog({ request: env.BRAIDCLAW_LOG, level: config.log.level, write: context.say, redact: redactor.text, now: Date.now })
  for (const notice of [...notices, ...(context.keysProblem ? [context.keysProblem] : [])]) log('warn', notice)
  const changed = () => {
    const now = stamps()
    const security = now.config === before.config ? {} : otherThan(config.security, resolve(context, flags, how).config.security)
    return now.rules === before.rules && Object.keys(security).length === 0 ? undefined : security
  }
  return { config, origins, paths, log, redactor, context, changed, file, assumed }
}

/** Returns texts that are others once a file was changed that the configuration or the rules come from. Takes some microseconds a file. */
function stampsOf({ config, trustedFolders, agentsFiles, envFiles, home }: HomePaths, workspace: string) {
  const own = join(workspace, '.braidclaw')
  const rules = [join(home, 'rules'), join(own, 'rules')]
  const project = ['.braidclaw/config.toml', ...programNames].map((name) => join(workspace, name))
  return {
    config: [config, ...project, trustedFolders, ...agentsFiles, ...envFiles].map(stampOfFile).join(' '),
    rules: [...rules, ...rules.flatMap((folder) => namesIn(folder).map((name) => join(folder, name)))].map(stampOfFile).join(' '),
  }
}

function stampOfFile(path: string): string {
  try {
    const found = lstatSync(path, { bigint: true, throwIfNoEntry: false })
    return found ? `${found.ino}:${found.size}:${found.mtimeNs}:${found.ctimeNs}` : '-'
  } catch {
    return '?'
  }
}

function otherThan(then: Config['security'], now: Config['security']): Partial<Config['security']> {
  const before = new Map<string, unknown>(Object.entries(then))
  const others = Object.entries(now).filter(([key, value]) => JSON.stringify(value) !== JSON.stringify(before.get(key)))
  return Object.fromEntries(others)
}

/** Returns the configuration of that workspace as its files say now. @throws FailureError as loadSetup */
export function configFor({ context }: Pick<Setup, 'context'>, workspace: string): Config {
  return resolve(context, { workspace }).config
}

/** @throws FailureError that names every problem of the configuration at once: `error`, or `usage` when only flags are wrong. */
function resolve({ home, env, cwd, channels }: HostContext, flags: Flags, { stays = false }: How = {}): Extract<Loaded, { ok: true }> {
  const trusted = (folder: string) => createTrust(homePaths(home).trustedFolders).isTrusted(folder)
  const loaded = loadConfig({ home, env, cwd, channels, flags, trusted, stays })
  if (loaded.ok) return loaded
  const code = loaded.problems.every(({ file }) => file.startsWith('--')) ? 'usage' : 'error'
  throw new FailureError(code, loaded.problems.map(describeProblem))
}

export type HookSetup = Pick<Setup, 'config' | 'paths' | 'context'>

/** Finds out whether there may be hooks, without loading what reads them. */
export function hasHooks({ paths, config: { workspaceDir } }: HookSetup): boolean {
  const own = ['.braidclaw/hooks', '.claude/settings.json', '.claude/settings.local.json'].map((name) => `${workspaceDir}/${name}`)
  return [`${paths.home}/hooks`, `${paths.home}/plugins/approved.json`, ...own].some((path) => existsSync(path))
}

export type RuleSetup = Pick<Setup, 'config' | 'paths' | 'context' | 'log' | 'ownRules'>

/** Finds out whether there may be rules of the operator or the caller, without loading what reads them. */
export function hasRules({ paths, config, ownRules = [] }: RuleSetup): boolean {
  const project = `${config.copyOf ?? config.workspaceDir}/.braidclaw`
  return ownRules.length > 0 || [`${paths.home}/rules`, `${project}/rules`, `${project}/structure.toml`].some((place) => existsSync(place))
}

export type WeakKey = { readonly name: string; readonly why: string }

export function weakKeys({ config, context }: Pick<Setup, 'config' | 'context'>): readonly WeakKey[] {
  return keysIn(config, context).flatMap(([name, value]) => {
    const why = weaknessOf(value)
    return why === undefined ? [] : [{ name, why }]
  })
}

export function sayWeakKey({ name, why }: WeakKey): string {
  return `the key in ${name} ${why}, so it looks like a placeholder and is not hidden: it may appear in what is shown, stored or sent to a model. A real key can be set with: braidclaw onboard`
}

/** Returns every variable that the configuration names as a secret's, with its value; the context already knows the usual ones. */
export function keysIn(
  { providers, channels }: Config,
  { env, channels: known }: Pick<HostContext, 'env' | 'channels'>,
): [string, string][] {
  const named = [
    ...Object.values(providers.models).flatMap((model) => variablesIn(rowsOfKind(model.kind), model)),
    ...known.flatMap(({ name, settings }) => variablesIn(settings, channels[name])),
  ]
  return named.flatMap((name): [string, string][] => (env[name] ? [[name, env[name]]] : []))
}

function variablesIn(rows: Rows = {}, values: { readonly [key: string]: unknown } = {}): readonly string[] {
  return Object.entries(rows).flatMap(([key, row]) => {
    const value = row.type === 'text' && row.form === 'variable' ? values[camel(key)] : undefined
    return typeof value === 'string' ? [value] : []
  })
}

/** Tells a note once a day in a home, also when several processes have it at once. */
export function noteDaily({ paths, context: { say } }: Setup, note: string, tell?: (line: string) => void): void {
  const today = `${new Date().toISOString().slice(0, 10)}-`
  const folder = join(paths.home, 'run')
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    const written = readdirSync(folder).filter((name) => name.startsWith('note-'))
    writeFileSync(join(folder, `note-${today}${sha256(note).slice(0, 16)}`), '', { flag: 'wx', mode: 0o600 })
    for (const name of written) if (!name.includes(today)) rmSync(join(folder, name), { force: true })
  } catch (error) {
    if (hasCode(error, 'EEXIST')) return
  }
  if (tell) tell(`note: ${note}`)
  else say(`note: ${note}\n`)
}

/**
 * Warns once per home that a provider's key is too weak to redact, and why. A home that does not exist yet, or is not writable, gets the
 * warning again.
 */
export function warnOfWeakKeys(setup: Setup): void {
  const path = `${setup.paths.home}/weak-keys`
  for (const weak of weakKeys(setup)) {
    if (existsSync(path) && readFileSync(path, 'utf8').split('\n').includes(weak.name)) continue
    setup.log('warn', sayWeakKey(weak))
    try {
      appendFileSync(path, `${weak.name}\n`, { mode: 0o600 })
    } catch {}
  }
}
