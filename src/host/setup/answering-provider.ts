/** Who answers: the offline helper when nobody chose, and never in the name of a model that somebody did choose. */

import { type Config, isWireProvider, providerNamed, type WireProvider } from '../../config/config.ts'
import { anyVariable, knownProvider, proposeProviders } from '../../config/known-providers.ts'
import type { Environment, Setup } from '../api.ts'

/** Who names a model wants an answer of that one: the helper must not answer in its name. Undefined when it may. */
export function notOffline({ config, context: { env } }: Pick<Setup, 'config' | 'context'>, name: string): string | undefined {
  if (name !== config.defaultProvider || !isOffline(config, name) || !isOtherModel(config)) return undefined
  const { defaultModel } = config
  const [first] = proposeProviders(env)
  const advice = first ? `name the provider too, such as -m ${first.name}/${defaultModel}` : howToConnect(env)
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

/** A model was chosen that the helper is not. */
export function isOtherModel(config: Config): boolean {
  const answers = providerNamed(config, config.defaultProvider)
  return answers?.kind === 'mock' && config.defaultModel !== answers.model
}

/** What a person can do to have a model answer. */
export function howToConnect(env: Environment): string {
  const [first] = proposeProviders(env)
  return first ? `run "braidclaw init": ${first.because} is set` : `set ${anyVariable}, or run "braidclaw onboard"`
}
