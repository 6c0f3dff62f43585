/** Decides which model is used: splits `provider/model`, and keeps a model with the provider it was chosen for. */

import { nearest } from '../../kit/text.ts'
import type { ConfigProblem, ConfigSource, Origin } from '../config.ts'
import { quote } from '../text/toml.ts'
import type { Entries } from './entries.ts'
import { membersOf } from './references.ts'

/**
 * Splits `--model provider/model` (or BRAIDCLAW_MODEL) at the first slash. If the layer itself names another provider, the slash belongs to
 * the model's name. The name of a provider alone selects that provider with its own model. An unknown provider before the slash is a
 * problem, because otherwise a different model would answer and cost money. `standing`: the provider that answers otherwise.
 */
export function splitModel(entries: Entries, providerNames: () => readonly string[], standing?: unknown): Split {
  const model = entries.get('default_model')
  if (typeof model?.value !== 'string') return { entries, problems: [] }
  if (!model.value.includes('/')) return { entries: asProvider(entries, model.value, providerNames), problems: [] }
  const chosen = entries.get('default_provider')
  const slash = model.value.indexOf('/')
  const [provider, rest] = [model.value.slice(0, slash), model.value.slice(slash + 1)]
  if (chosen !== undefined && chosen.value !== provider) return { entries, problems: [] }
  const origin = model.origin
  const providers = providerNames()
  if (!providers.includes(provider))
    return { entries, problems: [problem(origin, unknown(provider, model.value, { providers, standing }))] }
  if (rest === '')
    return { entries, problems: [problem(origin, `${quote(model.value)} names no model; write ${quote(provider)} for its own`)] }
  return {
    entries: new Map([...entries, ['default_provider', chosen ?? { value: provider, origin }], ['default_model', { value: rest, origin }]]),
    problems: [],
  }
}

export type Split = { readonly entries: Entries; readonly problems: readonly ConfigProblem[] }

/** Reads the name of a provider alone as that provider with its own model. */
function asProvider(entries: Entries, name: string, providerNames: () => readonly string[]): Entries {
  const model = entries.get('default_model')
  if (model === undefined || entries.has('default_provider') || !providerNames().includes(name)) return entries
  const rest = [...entries].filter(([key]) => key !== 'default_model')
  return new Map([...rest, ['default_provider', { value: name, origin: model.origin }] as const])
}

function problem({ where, line }: Origin, message: string): ConfigProblem {
  return { file: where, line, key: 'default_model', message }
}

type Others = { readonly providers: readonly string[]; readonly standing?: unknown }

function unknown(provider: string, whole: string, { providers, standing }: Others): string {
  const near = nearest(provider, providers)
  const advice = near === undefined ? `there are: ${providers.join(', ')}.` : `did you mean "${near}/${whole.slice(provider.length + 1)}"?`
  const slashed = standing === 'local' ? '' : ` If ${quote(whole)} is a model of ${standing}: "${standing}/${whole}"`
  return `unknown provider ${quote(provider)}; ${advice}${slashed}`
}

const strength: readonly ConfigSource[] = ['default', 'user', 'project', 'environment', 'agent', 'flag']

/** Drops a model that was chosen for one provider when a stronger source chose another provider. */
export function withModel(entries: Entries): Entries {
  const [provider, model] = [entries.get('default_provider'), entries.get('default_model')]
  if (provider === undefined) return entries
  if (model !== undefined && strength.indexOf(model.origin.source) >= strength.indexOf(provider.origin.source)) return entries
  const own = ownModel(entries, String(provider.value), [])
  return own === undefined ? entries : new Map([...entries, ['default_model', own]])
}

/** Returns the model of a provider; for a wrapper, the model of the provider it asks first. */
function ownModel(entries: Entries, name: string, trail: readonly string[]): ReturnType<Entries['get']> {
  const [first] = membersOf(entries, name)
  if (first === undefined || trail.includes(first.name)) return entries.get(`providers.models.${name}.model`)
  return ownModel(entries, first.name, [...trail, name])
}
