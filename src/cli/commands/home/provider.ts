/** Implements `provider list | test | models`. */

import type { CliSetup } from '../../../channels/terminal/context.ts'
import { isWireProvider, type ProviderConfig, providerNamed, type WireProvider } from '../../../config/config.ts'
import { type Fact, factsFileOf, factsOf, hasPrices, type KnownFacts } from '../../../host/access/cost/model-facts.ts'
import { missingKey } from '../../../host/setup/answering-provider.ts'
import { modelsOf } from '../../../host/setup/found-models.ts'
import { providerFor } from '../../../host/setup/provider-pool.ts'
import { loadSetup } from '../../../host/setup/setup.ts'
import { count, didYouMean, visible } from '../../../kit/text.ts'
import { type Models, probeProvider, type ServerModel } from '../../../providers/probe-provider.ts'
import { catalogueSource } from '../../../providers/wire/facts/catalogue.ts'
import { command } from '../../args/command.ts'
import { jsonFlag } from '../../args/turn-flags.ts'
import { CliExit, exitCodes, usageError } from '../../exit.ts'
import { printOne } from '../../print-list.ts'

export const list = command({
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
})

export const test = command({
  flags: jsonFlag,
  args: { name: { type: 'text', about: 'Name under [providers.models]', complete: 'providers' } },
  examples: [['local', 'exit 8 when it does not answer']],
  exits: [8],
  async run(context, { json = false }, { name }) {
    const setup = loadSetup(context)
    const known = Object.keys(setup.config.providers.models)
    if (!providerNamed(setup.config, name)) throw usageError(`no provider "${name}"; there are: ${known.join(', ')}`)
    const probe = setup.redactor.value(await probeProvider(await providerFor(setup, name), Date.now))
    const text = probe.ok ? `ok: ${name} (${probe.model}) answered in ${probe.ms} ms: ${probe.text.trim()}\n` : ''
    printOne(context, { json, value: probe, text })
    if (probe.ok) return
    const { message, code } = probe.failure
    throw new CliExit(exitCodes.provider, json ? '' : `error: ${name}: ${message} (${code}, after ${probe.ms} ms)`)
  },
})

/** Returns the model, or the providers that a wrapper passes requests to. */
function answering(provider: ProviderConfig): string {
  if (provider.kind === 'reliable') return provider.providers.join(', ')
  return provider.kind === 'router' ? Object.values(provider.routes).join(', ') : provider.model || '(its server is asked)'
}

type ModelChoice = Partial<ServerModel> & { readonly provider: WireProvider; readonly model: string }

/** Asks servers for their models, shows what is known of those that are configured, and where each fact comes from. */
export const models = command({
  flags: jsonFlag,
  args: {
    name: {
      type: 'text',
      optional: true,
      complete: 'providers',
      about:
        'A provider, whose server is asked; or PROVIDER/MODEL, what is known of one model; without it: every provider, and models.toml',
    },
  },
  examples: [
    ['ollama', 'the models that its server has'],
    ['', 'the models of every provider, and what is known of those that are configured'],
    ['openai/gpt-5.4', 'what is known of any model of a provider'],
  ],
  exits: [8],
  async run(context, { json = false }, { name }) {
    const setup = loadSetup(context)
    const { config, redactor } = setup
    const providers = Object.values(config.providers.models).filter(isWireProvider)
    const file = await factsFileOf(context.home)
    const { stdout, stderr } = context.process
    for (const { provider } of file.names)
      if (!Object.hasOwn(config.providers.models, provider))
        stderr.write(
          `warn: models.toml: unknown provider ${JSON.stringify(provider)}${didYouMean(provider, Object.keys(config.providers.models))}\n`,
        )
    const chosen = (name === undefined ? all(providers, config, file.names) : [one(providers, name)]).filter(({ model }) => model !== '')
    const asked = providers.filter((each) => each.kind !== 'plugin' && (name === undefined || each.name === name))
    const lists = await Promise.all(asked.map(async (provider) => ({ provider, answer: await askForModels(setup, provider) })))
    const listed = lists.flatMap(({ provider, answer }) =>
      answer.ok ? answer.models.map((each) => ({ provider, model: each.id, ...each })) : [],
    )
    const others = chosen.filter(({ provider, model }) => !listed.some((each) => each.provider === provider && each.model === model))
    const rows = await Promise.all(
      [...(json ? [...others, ...listed] : chosen)].map(async (row) => ({ ...row, known: await factsOf(row.provider, row.model, file) })),
    )
    if (json) {
      const items = rows.map(({ provider, id, known, ...row }) => ({ provider: provider.name, listed: id !== undefined, ...row, ...known }))
      stdout.write(`${JSON.stringify(items)}\n`)
    } else {
      if (providers.length === 0) stderr.write('no provider over the network is configured; the others (mock, stub, fifo) have no facts\n')
      for (const { provider, model, known } of rows)
        stdout.write(`${[`${visible(`${provider.name}/${model}`)}`, ...linesOf(known)].join('\n  ')}\n`)
      for (const { provider, answer } of lists) if (answer.ok) stdout.write(listText(provider, answer.models))
      stdout.write(
        `The table of this program is ${catalogueSource.name} of ${catalogueSource.date}; models.toml in the home overrides it (docs/cost.md).\n`,
      )
    }
    for (const { provider, answer } of lists) {
      if (answer.ok) continue
      const says = redactor.text(`the models of "${provider.name}" cannot be listed: ${answer.failure.message}`)
      if (name !== undefined) throw new CliExit(exitCodes.provider, `error: ${says}`)
      stderr.write(`warn: ${says}\n`)
    }
  },
})

async function askForModels(setup: CliSetup, provider: WireProvider): Promise<Models> {
  const message = missingKey(setup, provider.name)
  return message === undefined ? modelsOf(setup, provider) : { ok: false, failure: { code: 'auth', message } }
}

function listText({ name, baseUrl }: WireProvider, models: readonly ServerModel[]): string {
  const rows = models
    .toSorted((a, b) => (a.id < b.id ? -1 : 1))
    .map(({ id, isLoaded, isChat }) => `  ${visible(id)}${isLoaded ? '  (loaded)' : ''}${isChat ? '' : '  (does not chat)'}\n`)
  const where = baseUrl === undefined ? '' : ` at ${baseUrl}`
  return `${name}${where} has ${count(models.length, 'model')}${models.length > 0 ? `; to ask one: -m ${name}/MODEL` : ''}\n${rows.join('')}`
}

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
  const { contextTokens, maxOutputTokens, prices, sees, reasons } = known
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
    line('reasons', reasons, (value) => (value ? 'yes' : 'no')),
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
