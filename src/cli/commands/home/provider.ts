/** Implements `provider list | test`. */

import { isWireProvider, type ProviderConfig, providerNamed } from '../../../config/config.ts'
import { providerFor } from '../../../host/setup/provider-pool.ts'
import { loadSetup } from '../../../host/setup/setup.ts'
import { probeProvider } from '../../../providers/probe-provider.ts'
import type { Arguments, Command } from '../../args/command.ts'
import { proposeProviders } from '../../args/completions.ts'
import { jsonFlag } from '../../args/flags.ts'
import { CliExit, exitCodes, usageError } from '../../exit.ts'

const args = { name: { type: 'text', about: 'Name under [providers.models]', complete: proposeProviders } } as const satisfies Arguments

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
