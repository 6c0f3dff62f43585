/** Decides which provider answers: the offline helper when the user has chosen no model, and never in place of a chosen model. */

import { type Config, isWireProvider, providerNamed, type WireProvider } from '../../config/config.ts'
import { anyVariable, isVendorAddress, proposeProviders } from '../../config/known-providers.ts'
import type { Environment, Setup } from '../api.ts'

type Answering = Pick<Setup, 'config' | 'context'> & Partial<Pick<Setup, 'origins'>>

/**
 * A user who names a model, or configures several, expects an answer of a model, so the offline helper must not answer instead. @returns the
 * problem; undefined when the provider may answer
 */
export function notOffline({ config, origins, context: { env } }: Answering, name: string): string | undefined {
  const models = Object.values(config.providers.models).filter(isWireProvider)
  if (name === 'local' && origins?.default_provider?.source === 'default' && models.length > 1) {
    const names = models.map((each) => each.name)
    return `several providers are configured (${names.join(', ')}), and none is the default; write default_provider = "${names[0]}" at the top of the config file, or ask one: -m ${names[0]}`
  }
  if (name !== config.defaultProvider || !isOffline(config, name) || !isOtherModel(config)) return undefined
  const { defaultModel } = config
  const [first] = proposeProviders(env)
  const advice = first ? `name the provider too, such as -m ${first.name}/${defaultModel}` : howToConnect(env)
  return `no provider is configured for the model "${defaultModel}": "${name}" is the offline helper, and no model; ${advice}`
}

/**
 * A vendor's own server rejects requests without a key, so this check runs before any request. @returns the problem; undefined when a key
 * is set or not needed
 */
export function missingKey({ config, context: { env } }: Pick<Setup, 'config' | 'context'>, name: string): string | undefined {
  const found = providerNamed(config, name)
  if (!found || !isWireProvider(found) || !found.apiKeyEnv || env[found.apiKeyEnv] || !isVendors(found)) return undefined
  return `the provider "${name}" needs a key: ${found.apiKeyEnv} is not set. Set it (export ${found.apiKeyEnv}=…), or run "braidclaw login ${name}"`
}

function isVendors({ kind, baseUrl }: WireProvider): boolean {
  return baseUrl === undefined ? kind === 'openai' || kind === 'anthropic' : isVendorAddress(baseUrl)
}

/** Returns the model that a provider is asked for; empty when only its server knows. */
export function modelOf({ defaultProvider, defaultModel }: Config, { name, model }: WireProvider): string {
  return name === defaultProvider ? defaultModel : model
}

/** The offline helper counts no tokens, and is not a model. */
export function isOffline(config: Config, name: string): boolean {
  const answers = providerNamed(config, name)
  return answers?.kind === 'mock' && answers.fixture === undefined
}

/** True when the user chose a model that is not the offline helper's. */
export function isOtherModel(config: Config): boolean {
  const answers = providerNamed(config, config.defaultProvider)
  return answers?.kind === 'mock' && config.defaultModel !== answers.model
}

/** Says what a person can do so that a model answers. */
export function howToConnect(env: Environment): string {
  const [first] = proposeProviders(env)
  return first ? `run "braidclaw init": ${first.because} is set` : `set ${anyVariable}, or run "braidclaw onboard"`
}
