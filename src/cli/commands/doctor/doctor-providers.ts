/** Checks for `doctor` the providers: their keys, and whether limits of money can hold with the prices that are known. */

import type { CliSetup } from '../../../channels/terminal/context.ts'
import { isWireProvider, type LimitsConfig, reachableProviders, type WireProvider } from '../../../config/config.ts'
import { proposeProviders } from '../../../config/known-providers.ts'
import { factsFileOf, factsOf, hasPrices, type KnownFacts } from '../../../host/access/cost/model-facts.ts'
import { assumed, windowOf, wireModel } from '../../../host/access/cost/model-window.ts'
import { FailureError } from '../../../host/failure.ts'
import { withFoundModels } from '../../../host/setup/provider-pool.ts'
import { sayWeakKey, weakKeys } from '../../../host/setup/setup.ts'
import { proseBytes } from '../../../kit/content/tokens.ts'
import type { Memory } from '../../../memory/memory.ts'
import { isInitsChoice } from '../../offline-notice.ts'
import { bad, type Finding, note, ok } from './doctor-home.ts'

export function providerFindings(setup: CliSetup): Finding[] {
  const weak = weakKeys(setup).map((key) => note('key', sayWeakKey(key)))
  return [...providers(setup), ...unusedKeys(setup), ...weak]
}

function providers({ config, context }: CliSetup): Finding[] {
  return Object.values(config.providers.models).map((model): Finding => {
    const what = model.name === config.defaultProvider ? 'provider *' : 'provider'
    if (!isWireProvider(model) || !model.apiKeyEnv || context.env[model.apiKeyEnv]) return ok(what, `${model.name} (${model.kind})`)
    const state = model.name === config.defaultProvider ? 'bad' : 'note'
    const remedy = state === 'bad' ? [`export ${model.apiKeyEnv}=…, or store it: braidclaw login ${model.name}`] : []
    return { what, state, says: `${model.name} (${model.kind}): ${model.apiKeyEnv} is not set`, remedy }
  })
}

/** Asks servers for the models that nobody named. Returns the setup with them. */
export async function foundModels(setup: CliSetup): Promise<{ readonly setup: CliSetup; readonly findings: readonly Finding[] }> {
  try {
    const filled = await withFoundModels(setup)
    const says = filled.found
    return { setup: filled, findings: says === undefined ? [] : [ok('model', says)] }
  } catch (error) {
    if (!(error instanceof FailureError)) throw error
    return { setup, findings: [bad('model', error.message)] }
  }
}

/** Reports a key that is set although another provider answers: its owner most likely thinks that it is used. */
function unusedKeys({ config, context, file }: CliSetup): Finding[] {
  const used = reachableProviders(config, config.defaultProvider).flatMap((model) => [
    model.name,
    ...(isWireProvider(model) ? [model.apiKeyEnv] : []),
  ])
  const unused = proposeProviders(context.env).filter(({ name, apiKeyEnv }) => !used.includes(apiKeyEnv ?? name))
  const byInit = file !== undefined && isInitsChoice(file)
  return unused.map(({ name, model, because }): Finding => {
    const advice = byInit ? `"braidclaw init" makes "${name}" answer` : `to ask "${name}": -m ${name}/${model}`
    return note('key', `${because} is set and unused: "${config.defaultProvider}" answers; ${advice}`)
  })
}

/** Looks at every model that can be asked without naming one. */
export async function costFindings({ config, context }: CliSetup): Promise<Finding[]> {
  const asked = reachableProviders(config, config.defaultProvider).filter(isWireProvider)
  try {
    const file = await factsFileOf(context.home)
    const each = asked.map(async (provider) => {
      const model = provider.name === config.defaultProvider ? config.defaultModel : provider.model
      const known = await factsOf(provider, model, file)
      return [...priceFindings({ provider, model, known, limits: config.limits }), ...ageFindings(model, known, Date.now())]
    })
    return (await Promise.all(each)).flat()
  } catch (error) {
    if (!(error instanceof FailureError)) throw error
    return [bad('cost', error.message, 'correct models.toml (docs/cost.md); until then no model is asked')]
  }
}

/** Says how long the requests of each model can be, and from what that is known. */
export async function windowFindings({ config, context }: CliSetup, memory: Pick<Memory, 'windows'> | undefined): Promise<Finding[]> {
  const asked = reachableProviders(config, config.defaultProvider).filter(isWireProvider)
  // An error in models.toml is a finding of its own.
  const models = await Promise.all(asked.map((provider) => wireModel({ config, context }, provider))).catch(() => [])
  return models.map((model): Finding => {
    const { provider, model: name } = model.key
    const learnt = memory?.windows.get(model.key)
    const { tokens, from } = windowOf(model, learnt?.window)
    const dense = learnt ? `; about ${(proseBytes / learnt.factor).toFixed(1)} bytes of prose a token` : ''
    const remedy = from === assumed ? [`[providers.models.${provider}] context_tokens = …, where you know it`] : []
    const says = `${provider}/${name}: ${tokens.toLocaleString('en')} tokens (${from})${dense}`
    return { what: 'window', state: from === assumed ? 'note' : 'ok', says, remedy }
  })
}

type Priced = { readonly provider: WireProvider; readonly model: string; readonly known: KnownFacts; readonly limits: LimitsConfig }

function priceFindings({ provider, model, known, limits }: Priced): Finding[] {
  if (hasPrices(known)) return []
  const set = moneyLimits.filter(([, money]) => limits[money] !== undefined)
  if (set.length === 0) return []
  const unbounded = set.filter(([, , tokens]) => tokens === undefined || limits[tokens] === undefined).map(([key]) => `limits.${key}`)
  const names = set.map(([key]) => `limits.${key}`).join(', ')
  const remedy = [
    `[providers.models.${provider.name}] price_input = … and price_output = … (US dollars per million tokens; 0 when it costs nothing)`,
    'or list the model in models.toml (docs/cost.md)',
  ]
  const says = `the prices of ${provider.name}/${model} are not known, so ${names} cannot hold`
  if (unbounded.length === 0) return [note('cost', `${says}; only the limits of tokens do`, ...remedy)]
  return [bad('cost', says, ...remedy)]
}

/** The key, and the names of the money and of the tokens. The run's limit of tokens does not replace the one of money. */
const moneyLimits = [
  ['daily_usd', 'dailyUsd', 'dailyTokens'],
  ['channel_daily_usd', 'channelDailyUsd', 'channelDailyTokens'],
  ['token_daily_usd', 'tokenDailyUsd', 'tokenDailyTokens'],
  ['agent_daily_usd', 'agentDailyUsd', 'agentDailyTokens'],
  ['max_conversation_usd', 'maxConversationUsd', 'maxConversationTokens'],
  ['max_run_usd', 'maxRunUsd', 'maxRunTokens'],
] as const

const yearMs = 365 * 86_400_000

export function ageFindings(model: string, known: KnownFacts, now: number): Finding[] {
  const dates = [known.prices, known.contextTokens, known.maxOutputTokens].flatMap((fact) => fact?.origin.date ?? [])
  const [oldest] = dates.toSorted()
  if (oldest === undefined || now - Date.parse(oldest) <= yearMs) return []
  const says = `what is known of ${model} is of ${oldest}, over a year ago; its prices may have changed`
  return [note('cost', says, 'update BraidClaw, or write the facts of today into models.toml (docs/cost.md)')]
}
