/** Tests a provider that is not configured yet: with the config file as it would become, and a key that is not stored yet. */

import type { CliContext, CliSetup } from '../../channels/terminal/context.ts'
import { isWireProvider, providerNamed } from '../../config/config.ts'
import { extendConfig } from '../../config/extend.ts'
import { loadConfig } from '../../config/load.ts'
import { defaultConfigToml } from '../../config/output/template.ts'
import { homePaths } from '../../config/paths.ts'
import { readConfigFile } from '../../config/text/read-toml-file.ts'
import { providerFor } from '../../host/setup/provider-pool.ts'
import { type Probe, probeProvider } from '../../providers/probe-provider.ts'
import { listModels, type Models } from '../../providers/wire/list-models.ts'
import { weaknessOf } from '../../security/redaction/secret-strength.ts'
import { pause } from '../../service/sleep.ts'
import { createProviderFetch } from '../../workspace/net/provider-fetch.ts'
import type { Candidate } from './questions.ts'

/** How long the test may take: a server may first load the model, but a person is waiting. */
const trySeconds = 90

/** Asks one short question. Undefined when the key is not set yet. @throws Error when the configuration would not be valid with it */
export async function tryCandidate(context: CliContext, setup: CliSetup, candidate: Candidate): Promise<Probe | undefined> {
  const { proposal, key } = candidate
  const env = withKey(context, candidate)
  if (proposal.apiKeyEnv !== undefined && !env[proposal.apiKeyEnv]) return undefined
  if (key && !weaknessOf(key.value)) context.redactor.register(key.value, key.name)
  const config = configWith(context, candidate)
  return probeProvider(await providerFor({ config, log: setup.log, context: { ...context, env } }, proposal.name), Date.now)
}

/** Returns the models that the server lists. */
export async function modelsOf(context: CliContext, setup: CliSetup, candidate: Candidate): Promise<readonly string[]> {
  const { baseUrl = '', apiKeyEnv } = candidate.proposal
  const apiKey = apiKeyEnv ? withKey(context, candidate)[apiKeyEnv] : undefined
  const config = { kind: 'openai-compatible' as const, model: '', baseUrl, totalTimeoutS: 5, ...(apiKey ? { apiKey } : {}) }
  const deps = { fetch: createProviderFetch({ baseUrl }), log: setup.log, sleep: pause, random: Math.random, now: Date.now }
  const found: Models = await listModels(candidate.proposal.name, config, deps)
  return found.ok ? found.models : []
}

function withKey({ env }: CliContext, { key }: Candidate): CliContext['env'] {
  return key ? { ...env, [key.name]: key.value } : env
}

/** Returns the config file as it is, or as `init` would write it. */
export function configText({ home, channels }: CliContext): string {
  const read = readConfigFile(homePaths(home).config)
  return read.state === 'text' ? read.text : defaultConfigToml({ channels, proposals: [] })
}

function configWith(context: CliContext, { proposal }: Candidate) {
  const { home, env, cwd, channels } = context
  const path = homePaths(home).config
  const draft = extendConfig(configText(context), { proposals: [proposal], choice: proposal }).text
  const readFile = (file: string) =>
    file === path ? ({ state: 'text', text: draft, worldWritable: false } as const) : readConfigFile(file)
  const loaded = loadConfig({ home, env, cwd, channels, trusted: () => false, readFile })
  if (!loaded.ok) throw new Error(loaded.problems.map(({ message }) => message).join('; '))
  const { config } = loaded
  const found = providerNamed(config, proposal.name)
  if (!found || !isWireProvider(found)) return config
  const impatient = { ...found, totalTimeoutS: trySeconds, maxRetries: 0 }
  return { ...config, providers: { models: { ...config.providers.models, [proposal.name]: impatient } } }
}
