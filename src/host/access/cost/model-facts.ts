/**
 * Resolves what is known of a provider's model. The most specific source counts: the model's table in models.toml, then the provider's rows
 * in the configuration, then the table in this program.
 */

import { existsSync } from 'node:fs'
import type { WireProvider } from '../../../config/config.ts'
import { homePaths } from '../../../config/paths.ts'
import type { FactsFile } from '../../../config/text/facts-file.ts'
import { catalogueFacts, type FactsOrigin, isPriced, type ModelFacts, type Prices } from '../../../providers/wire/facts/model-facts.ts'
import { baseUrlOf, pricesOf } from '../../../providers/wire/provider-settings.ts'
import { FailureError } from '../../failure.ts'

/** A value and where it comes from. */
export type Fact<Value> = { readonly value: Value; readonly origin: FactsOrigin }

export type KnownFacts = {
  readonly contextTokens: Fact<number> | undefined
  readonly maxOutputTokens: Fact<number> | undefined
  readonly prices: Fact<Prices> | undefined
  readonly sees: Fact<readonly string[]> | undefined
  readonly reasons: Fact<boolean> | undefined
}

type FactsSource = { readonly facts: ModelFacts; readonly origin: FactsOrigin }

/** @throws FailureError `usage` when models.toml has an error: a limit of money could not count on it */
export async function factsFileOf(home: string): Promise<Pick<FactsFile, 'find' | 'names'>> {
  const path = homePaths(home).models
  if (!existsSync(path)) return { find: () => undefined, names: [] }
  const { readFactsFile } = await import('../../../config/text/facts-file.ts')
  const file = readFactsFile(path)
  if (file.problems.length > 0) throw new FailureError('usage', file.problems)
  return file
}

/** @param model the model that is asked, which need not be the one of the rows */
export async function factsOf(found: WireProvider, model: string, file: Pick<FactsFile, 'find'>): Promise<KnownFacts> {
  const own = file.find(found.name, model)
  const table = await catalogueFacts(baseUrlOf(found), model)
  const sources: FactsSource[] = [
    ...(own ? [{ facts: own, origin: { name: 'models.toml' } }] : []),
    { facts: factsInRows(found), origin: { name: `[providers.models.${found.name}]` } },
    ...(table ? [{ facts: table, origin: { name: table.name, date: table.date } }] : []),
  ]
  return {
    contextTokens: first(sources, 'contextTokens'),
    maxOutputTokens: first(sources, 'maxOutputTokens'),
    prices: first(sources, 'prices'),
    sees: first(sources, 'sees'),
    reasons: first(sources, 'reasons'),
  }
}

/** A half of the prices hides the other sources: prices of two sources together would be a guess. */
function factsInRows({ contextTokens, ...rows }: WireProvider): ModelFacts {
  const prices = pricesOf(rows)
  const isSet = prices.input !== undefined || prices.output !== undefined
  return { contextTokens, ...(isSet ? { prices } : {}) }
}

function first<Name extends keyof ModelFacts>(
  sources: readonly FactsSource[],
  name: Name,
): Fact<NonNullable<ModelFacts[Name]>> | undefined {
  for (const { facts, origin } of sources) {
    const value = facts[name]
    if (value !== undefined) return { value, origin }
  }
}

/** Returns the provider's table with what is known filled in. */
export function withFacts(found: WireProvider, { contextTokens, prices }: KnownFacts): WireProvider {
  const { input, output, cached, cacheWrite } = prices?.value ?? {}
  return {
    ...found,
    ...(contextTokens ? { contextTokens: contextTokens.value } : {}),
    ...(prices ? { priceInput: input, priceOutput: output, priceCached: cached, priceCacheWrite: cacheWrite } : {}),
  }
}

export function hasPrices({ prices }: KnownFacts): boolean {
  return prices !== undefined && isPriced(prices.value)
}
