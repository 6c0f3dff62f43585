/** A newcomer hears that no model is connected, and how to connect one: a note once a turn, or an error when one was asked for by name. */

import { type Config, providerNamed } from '../../config/config.ts'
import type { Environment, Setup } from '../world.ts'

export function introduce({ file, config, context: { env, process } }: Setup): void {
  if (file !== undefined || !isOffline(config, config.defaultProvider) || unheard(config)) return
  process.stderr.write(`note: the offline helper answers; to connect a real model, ${how(env)}\n`)
}

/** Who names a model wants an answer of that one: the helper must not answer in its name. Undefined when it may. */
export function notOffline({ config, context: { env } }: Pick<Setup, 'config' | 'context'>, name: string): string | undefined {
  if (name !== config.defaultProvider || !isOffline(config, name) || !unheard(config)) return undefined
  return `no provider is configured for the model "${config.defaultModel}": "${name}" is the offline helper, and no model; ${how(env)}`
}

/** The helper counts nothing, and is no model. */
export function isOffline(config: Config, name: string): boolean {
  const answers = providerNamed(config, name)
  return answers?.kind === 'mock' && answers.fixture === undefined
}

function unheard(config: Config): boolean {
  const answers = providerNamed(config, config.defaultProvider)
  return answers?.kind === 'mock' && config.defaultModel !== answers.model
}

function how(env: Environment): string {
  const key = ['OPENAI_API_KEY', 'ANTHROPIC_API_KEY', 'OPENROUTER_API_KEY', 'OLLAMA_HOST'].find((name) => env[name])
  return key
    ? `${key} is set: run "braidclaw init" to use it`
    : 'set OPENAI_API_KEY, ANTHROPIC_API_KEY, OPENROUTER_API_KEY or OLLAMA_HOST and run "braidclaw init"'
}
