/** A newcomer is told who answers when nobody chose it, and how to choose: a note once a turn, or an error when a model was asked for by name. */

import { type Config, isWireProvider, providerNamed, type WireProvider } from '../../config/config.ts'
import { anyVariable, knownProvider, proposeProviders } from '../../config/known-providers.ts'
import { isOfflineDefault } from '../../config/offline-default.ts'
import { readConfigFile } from '../../config/text/read.ts'
import type { Environment, Setup } from '../world.ts'

export function introduce(setup: Setup): void {
  const said = setup.assumed === undefined ? offlineNote(setup) : assumedNote(setup.config, setup.assumed)
  if (said !== undefined) setup.context.process.stderr.write(`note: ${said}\n`)
}

function assumedNote({ defaultProvider, defaultModel }: Config, variable: string): string {
  return `${defaultProvider}/${defaultModel} answers, because ${variable} is set; to ask another: -m PROVIDER/MODEL; to keep your choice: braidclaw init`
}

function offlineNote({ file, config, context: { env } }: Setup): string | undefined {
  if (!isOffline(config, config.defaultProvider) || isOtherModel(config)) return undefined
  if (file !== undefined && !isInitsChoice(file)) return undefined
  return `the offline helper answers; to connect a real model, ${how(env)}`
}

/** The offline helper answers because init found nobody else. */
export function isInitsChoice(file: string): boolean {
  const read = readConfigFile(file)
  return read.state === 'text' && isOfflineDefault(read.text)
}

/** Who names a model wants an answer of that one: the helper must not answer in its name. Undefined when it may. */
export function notOffline({ config, context: { env } }: Pick<Setup, 'config' | 'context'>, name: string): string | undefined {
  if (name !== config.defaultProvider || !isOffline(config, name) || !isOtherModel(config)) return undefined
  const { defaultModel } = config
  const [first] = proposeProviders(env)
  const advice = first ? `name the provider too, such as -m ${first.name}/${defaultModel}` : how(env)
  return `no provider is configured for the model "${defaultModel}": "${name}" is the offline helper, and no model; ${advice}`
}

/** A vendor's own server answers nobody without a key: said before anything is asked. Undefined when there is a key, or none is needed. */
export function missingKey({ config, context: { env } }: Pick<Setup, 'config' | 'context'>, name: string): string | undefined {
  const found = providerNamed(config, name)
  if (!found || !isWireProvider(found) || !found.apiKeyEnv || env[found.apiKeyEnv] || !isVendors(found)) return undefined
  return `the provider "${name}" needs a key: ${found.apiKeyEnv} is not set. Set it (export ${found.apiKeyEnv}=…), or run "braidclaw onboard"`
}

function isVendors({ kind, baseUrl }: WireProvider): boolean {
  return baseUrl === undefined ? kind === 'openai' || kind === 'anthropic' : baseUrl === knownProvider('openrouter', {})?.baseUrl
}

/** The helper counts nothing, and is no model. */
export function isOffline(config: Config, name: string): boolean {
  const answers = providerNamed(config, name)
  return answers?.kind === 'mock' && answers.fixture === undefined
}

function isOtherModel(config: Config): boolean {
  const answers = providerNamed(config, config.defaultProvider)
  return answers?.kind === 'mock' && config.defaultModel !== answers.model
}

function how(env: Environment): string {
  const [first] = proposeProviders(env)
  return first ? `run "braidclaw init": ${first.because} is set` : `set ${anyVariable}, or run "braidclaw onboard"`
}
