/** `provider list | test`. */

import type { CliContext } from '../../../channels/terminal/context.ts'
import { isWireProvider, type ProviderConfig, providerNamed } from '../../../config/config.ts'
import { providerFor } from '../../../host/setup/provider-pool.ts'
import { setUp } from '../../../host/setup/setup.ts'
import { probeProvider } from '../../../providers/probe-provider.ts'
import type { Json } from '../../args/flags.ts'
import { CliExit, exitCodes } from '../../exit.ts'

export function list(this: CliContext, { json = false }: Json): void {
  const { config } = setUp(this)
  const rows = Object.values(config.providers.models).map((model) => ({
    name: model.name,
    kind: model.kind,
    model: answering(model),
    default: model.name === config.defaultProvider,
    ...(isWireProvider(model) && model.apiKeyEnv ? { apiKeyEnv: model.apiKeyEnv, keySet: Boolean(this.env[model.apiKeyEnv]) } : {}),
  }))
  if (json) return void this.process.stdout.write(`${JSON.stringify(rows)}\n`)
  for (const row of rows) {
    const key = row.apiKeyEnv ? `  ${row.apiKeyEnv} ${row.keySet ? 'is set' : 'is not set'}` : ''
    this.process.stdout.write(`${row.default ? '*' : ' '} ${row.name.padEnd(20)} ${row.kind.padEnd(18)} ${row.model}${key}\n`)
  }
}

export async function test(this: CliContext, { json = false }: Json, name: string): Promise<void> {
  const setup = setUp(this)
  const known = Object.keys(setup.config.providers.models)
  if (!providerNamed(setup.config, name)) throw new CliExit(exitCodes.usage, `error: no provider "${name}"; there are: ${known.join(', ')}`)
  const probe = await probeProvider(await providerFor(setup, name), Date.now)
  if (json) this.process.stdout.write(`${setup.redactor.text(JSON.stringify(probe))}\n`)
  else if (probe.ok)
    this.process.stdout.write(`ok: ${name} (${probe.model}) answered in ${probe.ms} ms: ${setup.redactor.text(probe.text.trim())}\n`)
  if (!probe.ok)
    throw new CliExit(
      exitCodes.provider,
      json ? '' : setup.redactor.text(`error: ${name}: ${probe.failure.message} (${probe.failure.code}, after ${probe.ms} ms)`),
    )
}

/** The model, or the providers that a wrapper hands the question to. */
function answering(provider: ProviderConfig): string {
  if (provider.kind === 'reliable') return provider.providers.join(', ')
  return provider.kind === 'router' ? Object.values(provider.routes).join(', ') : provider.model
}
