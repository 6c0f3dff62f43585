/** Which model is asked: `provider/model` in one word, and a model that belongs to the provider it was chosen for. */

import { nearest } from '../../kit/did-you-mean.ts'
import type { ConfigProblem, Origin, Source } from '../config.ts'
import { quote } from '../text/toml-quote.ts'
import type { Entries } from './entries.ts'
import { membersOf } from './references.ts'

/**
 * `--model provider/model` (or BRAIDCLAW_MODEL): the part before the first slash names the provider, unless the same layer names one
 * itself: then the slash belongs to the model's own name. A provider's name alone chooses it with its own model. A part before the slash
 * that names no provider is a problem: another model than the one meant would answer, and cost. `standing`: who answers otherwise.
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

/** The name of a provider alone is that provider with the model of its own. */
function asProvider(entries: Entries, name: string, providerNames: () => readonly string[]): Entries {
  const model = entries.get('default_model')
  if (model === undefined || entries.has('default_provider') || !providerNames().includes(name)) return entries
  const rest = [...entries].filter(([key]) => key !== 'default_model')
  return new Map([...rest, ['default_provider', { value: name, origin: model.origin }] as const])
}

function problem({ where, line }: Origin, message: string): ConfigProblem {
  return { file: where, ...(line === undefined ? {} : { line }), key: 'default_model', message }
}

type Others = { readonly providers: readonly string[]; readonly standing?: unknown }

function unknown(provider: string, whole: string, { providers, standing }: Others): string {
  const near = nearest(provider, providers)
  const advice = near === undefined ? `there are: ${providers.join(', ')}.` : `did you mean "${near}/${whole.slice(provider.length + 1)}"?`
  const slashed = standing === 'local' ? '' : ` If ${quote(whole)} is a model of ${standing}: "${standing}/${whole}"`
  return `there is no provider ${quote(provider)}; ${advice}${slashed}`
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
