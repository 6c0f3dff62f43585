/** Implements `provider list | test`. */

import { isWireProvider, type ProviderConfig, providerNamed, type WireProvider } from '../../../config/config.ts'
import { type Fact, factsFileOf, factsOf, hasPrices, type KnownFacts } from '../../../host/cost/model-facts.ts'
import { providerFor } from '../../../host/setup/provider-pool.ts'
import { loadSetup } from '../../../host/setup/setup.ts'
import { didYouMean, visible } from '../../../kit/text.ts'
import { probeProvider } from '../../../providers/probe-provider.ts'
import { catalogueSource } from '../../../providers/wire/facts/catalogue.ts'
import type { Arguments, Command } from '../../args/command.ts'
import { jsonFlag } from '../../args/turn-flags.ts'
import { CliExit, exitCodes, usageError } from '../../exit.ts'

const args = { name: { type: 'text', about: 'Name under [providers.models]', complete: 'providers' } } as const satisfies Arguments

export const list = {
  flags: jsonFlag,
  examples: [['', '* marks the default']],
  run(context, { json = false }) {
    const { config } = loadSetup(context)
    const rows = Object.values(config.providers.models).map((model) => ({
      name: model.name,
      kind: model.kind,
      model: answering(model),
      default: model.name === config.defaultProvider,
      ...(isWireProvider(model) && model.apiKeyEnv ? { apiKeyEnv: model.apiKeyEnv, keySet: Boolean(context.env[model.apiKeyEnv]) } : {}),
    }))
    if (json) return void context.process.stdout.write(`${JSON.stringify(rows)}\n`)
    for (const row of rows) {
      const key = row.apiKeyEnv ? `  ${row.apiKeyEnv} ${row.keySet ? 'is set' : 'is not set'}` : ''
      context.process.stdout.write(`${row.default ? '*' : ' '} ${row.name.padEnd(20)} ${row.kind.padEnd(18)} ${row.model}${key}\n`)
    }
  },
} as const satisfies Command<typeof jsonFlag>

export const test = {
  flags: jsonFlag,
  args: args,
  examples: [['local', 'exit 8 when it does not answer']],
  exits: [8],
  async run(context, { json = false }, { name }) {
    const setup = loadSetup(context)
    const known = Object.keys(setup.config.providers.models)
    if (!providerNamed(setup.config, name)) throw usageError(`no provider "${name}"; there are: ${known.join(', ')}`)
    const probe = await probeProvider(await providerFor(setup, name), Date.now)
    if (json) context.process.stdout.write(`${setup.redactor.text(JSON.stringify(probe))}\n`)
    else if (probe.ok)
      context.process.stdout.write(`ok: ${name} (${probe.model}) answered in ${probe.ms} ms: ${setup.redactor.text(probe.text.trim())}\n`)
    if (!probe.ok)
      throw new CliExit(
        exitCodes.provider,
        json ? '' : setup.redactor.text(`error: ${name}: ${probe.failure.message} (${probe.failure.code}, after ${probe.ms} ms)`),
      )
  },
} as const satisfies Command<typeof jsonFlag, typeof args>

/** Returns the model, or the providers that a wrapper passes requests to. */
function answering(provider: ProviderConfig): string {
  if (provider.kind === 'reliable') return provider.providers.join(', ')
  return provider.kind === 'router' ? Object.values(provider.routes).join(', ') : provider.model
}

/** Implements `provider models`: it shows what is known of the models that are configured, and where each fact comes from. */
const modelArgs = {
  name: {
    type: 'text',
    optional: true,
    about: 'A provider, or PROVIDER/MODEL; without it: the model of each provider, and all of models.toml',
  },
} as const satisfies Arguments

type ModelChoice = { readonly provider: WireProvider; readonly model: string }

export const models = {
  flags: jsonFlag,
  args: modelArgs,
  examples: [
    ['', 'the models that are configured'],
    ['openai/gpt-5.4', 'any model of a provider'],
  ],
  async run(context, { json = false }, { name }) {
    const { config } = loadSetup(context)
    const providers = Object.values(config.providers.models).filter(isWireProvider)
    const file = await factsFileOf(context.home)
    const { stdout, stderr } = context.process
    for (const { provider } of file.names)
      if (!Object.hasOwn(config.providers.models, provider))
        stderr.write(
          `warn: models.toml: unknown provider ${JSON.stringify(provider)}${didYouMean(provider, Object.keys(config.providers.models))}\n`,
        )
    const asked = name === undefined ? all(providers, config, file.names) : [one(providers, name)]
    const rows = await Promise.all(
      asked.map(async ({ provider, model }) => ({ provider, model, known: await factsOf(provider, model, file) })),
    )
    if (json)
      return void stdout.write(
        `${JSON.stringify(rows.map(({ provider, model, known }) => ({ provider: provider.name, model, ...known })))}\n`,
      )
    if (rows.length === 0) stderr.write('no provider over the network is configured; the others (mock, stub, fifo) have no facts\n')
    for (const { provider, model, known } of rows)
      stdout.write(`${[`${visible(`${provider.name}/${model}`)}`, ...linesOf(known)].join('\n  ')}\n`)
    stdout.write(
      `The table of this program is ${catalogueSource.name} of ${catalogueSource.date}; models.toml in the home overrides it (docs/cost.md).\n`,
    )
  },
} as const satisfies Command<typeof jsonFlag, typeof modelArgs>

function all(
  providers: readonly WireProvider[],
  { defaultProvider, defaultModel }: { readonly defaultProvider: string; readonly defaultModel: string },
  more: readonly { provider: string; model: string }[],
): ModelChoice[] {
  const own = providers.map((provider) => ({ provider, model: provider.name === defaultProvider ? defaultModel : provider.model }))
  const named = more.flatMap(({ provider: name, model }) =>
    providers.flatMap((provider) => (provider.name === name ? [{ provider, model }] : [])),
  )
  return [...new Map([...own, ...named].map((each) => [`${each.provider.name}/${each.model}`, each])).values()]
}

function one(providers: readonly WireProvider[], wanted: string): ModelChoice {
  const slash = wanted.indexOf('/')
  const [name, model] = slash < 0 ? [wanted, undefined] : [wanted.slice(0, slash), wanted.slice(slash + 1)]
  const provider = providers.find((each) => each.name === name)
  const names = providers.map((each) => each.name)
  if (provider) return { provider, model: model || provider.model }
  const there = names.length === 0 ? 'none is configured' : `there are: ${names.join(', ')}`
  throw usageError(`no provider ${JSON.stringify(name)} over the network${didYouMean(name, names) || `; ${there}`}`)
}

function linesOf(known: KnownFacts): string[] {
  const { contextTokens, maxOutputTokens, prices, sees } = known
  return [
    line('context window', contextTokens, (tokens) => `${tokens.toLocaleString('en')} tokens`),
    line('longest answer', maxOutputTokens, (tokens) => `${tokens.toLocaleString('en')} tokens`),
    hasPrices(known)
      ? line('price per million tokens', prices, ({ input, output, cached, cacheWrite }) =>
          [`$${input} in`, `$${output} out`, ...also(cached, 'read from the cache'), ...also(cacheWrite, 'written to the cache')].join(
            ', ',
          ),
        )
      : 'price: unknown, so that no limit of money can hold',
    line('sees', sees, (kinds) => kinds.join(', ')),
  ]
}

function also(price: number | undefined, what: string): string[] {
  return price === undefined ? [] : [`$${price} ${what}`]
}

function line<Value>(what: string, fact: Fact<Value> | undefined, text: (value: Value) => string): string {
  if (fact === undefined) return `${what}: unknown`
  const { name, date } = fact.origin
  return `${what}: ${text(fact.value)}  (${name}${date ? `, ${date}` : ''})`
}
