/** Decides which provider reads pictures, and with which settings. */

import { type Config, isWireProvider, providerNamed, type WireProvider } from '../../config/config.ts'
import type { Provider } from '../../runtime/port.ts'
import type { Setup } from '../api.ts'
import { FailureError } from '../failure.ts'
import { providerFor, type SharedProviders } from './provider-pool.ts'

/** @returns what is wrong with the settings of the vision helper; undefined when it can be asked, or is off */
export function visionProblem({ config, context: { env } }: Pick<Setup, 'config' | 'context'>): string | undefined {
  const name = config.vision.provider
  if (name === undefined) return undefined
  const found = providerNamed(config, name)
  if (!found)
    return `vision.provider: unknown provider ${JSON.stringify(name)}; describe it in [providers.models.${name}], or use "openrouter"`
  if (!isWireProvider(found) || found.kind !== 'openai-compatible')
    return `vision.provider: "${name}" is of kind "${found.kind}"; pictures are read only by one of kind "openai-compatible"`
  const keyEnv = found.apiKeyEnv ?? (name === 'openrouter' ? 'OPENROUTER_API_KEY' : undefined)
  if (keyEnv === undefined || env[keyEnv]) return undefined
  return `vision.provider: "${name}" needs a key: ${keyEnv} is not set. Set it (export ${keyEnv}=…), or unset vision.provider (VISION_PROVIDER)`
}

/** @throws FailureError `provider` when the settings name none, or one that cannot be asked */
export async function visionProviderFor(setup: Setup, shared: SharedProviders): Promise<Provider> {
  const { provider: name, model } = setup.config.vision
  const problem = name === undefined ? 'vision.provider is not set, so no picture is read' : visionProblem(setup)
  if (problem !== undefined || name === undefined) throw new FailureError('provider', `${problem}`)
  return providerFor(withModel(setup, name, model), name, shared)
}

/** The facts and prices are those of the model that is asked. OpenRouter bills nothing for a model whose name ends in ":free". */
function withModel<S extends Pick<Setup, 'config'>>(setup: S, name: string, model: string): S {
  const found = providerNamed(setup.config, name)
  if (!found || !isWireProvider(found)) return setup
  const free = model.endsWith(':free') && found.priceInput === undefined ? { priceInput: 0, priceOutput: 0 } : {}
  const asked: WireProvider = { ...found, model, ...free }
  const config: Config = { ...setup.config, providers: { models: { ...setup.config.providers.models, [name]: asked } } }
  return { ...setup, config }
}
