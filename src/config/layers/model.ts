/** Which model is asked: `provider/model` in one word, and a model that belongs to the provider it was chosen for. */

import type { Source } from '../config.ts'
import { nearest } from '../text/suggest.ts'
import type { Entries } from './entries.ts'
import { membersOf } from './references.ts'

/**
 * `--model provider/model` (or BRAIDCLAW_MODEL): when the part before the first slash names a provider, it chooses it, unless the same
 * layer names one itself. Otherwise the slash belongs to the model's own name. A provider's name alone chooses it with its own model.
 */
export function splitModel(
  entries: Entries,
  providerNames: () => readonly string[],
): { readonly entries: Entries; readonly notices: readonly string[] } {
  const model = entries.get('default_model')
  if (typeof model?.value !== 'string') return { entries, notices: [] }
  if (!model.value.includes('/')) return { entries: asProvider(entries, model.value, providerNames), notices: [] }
  const providers = providerNames()
  const slash = model.value.indexOf('/')
  const [provider, rest] = [model.value.slice(0, slash), model.value.slice(slash + 1)]
  const chosen = entries.get('default_provider')
  if (!providers.includes(provider) || rest === '' || (chosen !== undefined && chosen.value !== provider)) {
    return { entries, notices: chosen === undefined ? hint(provider, providers, model.origin.where) : [] }
  }
  const origin = model.origin
  return {
    entries: new Map([...entries, ['default_provider', chosen ?? { value: provider, origin }], ['default_model', { value: rest, origin }]]),
    notices: [],
  }
}

/** The name of a provider alone is that provider with the model of its own. */
function asProvider(entries: Entries, name: string, providerNames: () => readonly string[]): Entries {
  const model = entries.get('default_model')
  if (model === undefined || entries.has('default_provider') || !providerNames().includes(name)) return entries
  const rest = [...entries].filter(([key]) => key !== 'default_model')
  return new Map([...rest, ['default_provider', { value: name, origin: model.origin }] as const])
}

function hint(provider: string, providers: readonly string[], where: string): readonly string[] {
  const near = nearest(provider, providers)
  return near === undefined || near === provider
    ? []
    : [`${where}: no provider is called "${provider}", so the whole text is taken as the model's name; did you mean "${near}/…"?`]
}

const strength: readonly Source[] = ['default', 'user', 'project', 'environment', 'agent', 'flag']

/** A model chosen for one provider is not asked of another that a stronger source chose later. */
export function withModel(entries: Entries): Entries {
  const [provider, model] = [entries.get('default_provider'), entries.get('default_model')]
  if (provider === undefined) return entries
  if (model !== undefined && strength.indexOf(model.origin.source) >= strength.indexOf(provider.origin.source)) return entries
  const own = ownModel(entries, String(provider.value), [])
  return own === undefined ? entries : new Map([...entries, ['default_model', own]])
}

/** The model of a wrapper is that of the provider it asks first. */
function ownModel(entries: Entries, name: string, trail: readonly string[]): ReturnType<Entries['get']> {
  const [first] = membersOf(entries, name)
  if (first === undefined || trail.includes(first.name)) return entries.get(`providers.models.${name}.model`)
  return ownModel(entries, first.name, [...trail, name])
}
