/** Checks, before anything is created, that providers which name others name existing ones and never each other in a ring. */

import type { ProviderConfig } from './wire/provider-settings.ts'

type Configs = { readonly [name: string]: ProviderConfig }

/** One message for each fault; none when all is well. */
export function checkReferences(configs: Configs): readonly string[] {
  return Object.keys(configs).flatMap((name) => [...faultsOf(configs, name), ...ringOf(configs, name)])
}

function faultsOf(configs: Configs, name: string): readonly string[] {
  const config = configs[name]
  const known = Object.keys(configs).join(', ')
  const missing = named(config).filter((each) => !Object.hasOwn(configs, each))
  const empty = config?.kind === 'reliable' && config.providers.length === 0
  return [
    ...missing.map((each) => `provider "${name}" names "${each}", which is not configured; known: ${known}`),
    ...(empty ? [`provider "${name}" is reliable but lists no providers; add some to "providers"`] : []),
  ]
}

function ringOf(configs: Configs, start: string): readonly string[] {
  const seen = new Set<string>()
  const queue = [...named(configs[start])]
  for (let name = queue.pop(); name !== undefined; name = queue.pop()) {
    if (name === start) return [`provider "${start}" leads back to itself; take it out of the providers that it names`]
    if (seen.has(name)) continue
    seen.add(name)
    queue.push(...named(Object.hasOwn(configs, name) ? configs[name] : undefined))
  }
  return []
}

function named(config: ProviderConfig | undefined): readonly string[] {
  if (config?.kind === 'reliable') return config.providers
  return config?.kind === 'router' ? [config.default, ...Object.values(config.routes ?? {})] : []
}
