/** Implements `onboard`: it asks for provider, address, model and key, and tests the answer before it writes anything. */

import type { CliContext, CliSetup } from '../../../channels/terminal/context.ts'
import { isTerminal } from '../../../channels/terminal/tty.ts'
import { isWireProvider, providerNamed } from '../../../config/config.ts'
import { defaultConfigToml, extendConfig, nameFor } from '../../../config/config-text.ts'
import { keepKey } from '../../../config/keys-file.ts'
import { loadConfig } from '../../../config/load.ts'
import { isOfflineDefault } from '../../../config/offline-default.ts'
import { homePaths } from '../../../config/paths.ts'
import { errorCode, explainErrno, readConfigFile } from '../../../config/text/read-toml-file.ts'
import { idsOf } from '../../../host/setup/found-models.ts'
import { providerFor } from '../../../host/setup/provider-pool.ts'
import { loadSetup } from '../../../host/setup/setup.ts'
import { type Probe, probeProvider } from '../../../providers/probe-provider.ts'
import { weaknessOf } from '../../../security/redaction/secret-forms.ts'
import { command } from '../../args/command.ts'
import { CliExit, commandError, exitCodes, usageError } from '../../exit.ts'
import { askForProvider, Cancelled, type Candidate, createPrompts, type Prompts } from '../../onboard/questions.ts'
import { initialise } from './init.ts'

type Onboarding = { readonly context: CliContext; readonly setup: CliSetup; readonly prompts: Prompts }

export const onboard = command({
  examples: [['', 'in a terminal']],
  exits: [130],
  async run(context) {
    if (!isTerminal(0) || !isTerminal(1)) {
      throw usageError('onboard asks questions and needs a terminal; use "braidclaw init" in scripts')
    }
    const prompts = createPrompts(context.process.stdout)
    const onboarding: Onboarding = { context: context, setup: loadSetup(context), prompts }
    prompts.begin('BraidClaw')
    try {
      const candidate = await findCandidate(onboarding)
      const answers = candidate === undefined || (await mayReplace(onboarding, candidate))
      await write(onboarding, { candidate, answers })
    } catch (error) {
      if (!(error instanceof Cancelled)) throw error
      prompts.cancel('Nothing was changed.')
      throw new CliExit(exitCodes.cancelled)
    }
  },
})

/** Returns a provider that works, or that the user wants anyway. Undefined: the offline helper. */
async function findCandidate(onboarding: Onboarding): Promise<Candidate | undefined> {
  const { context, setup, prompts } = onboarding
  const text = configText(context)
  const models = (candidate: Candidate) => {
    const { name, baseUrl, apiKeyEnv } = candidate.proposal
    return idsOf({ log: setup.log, context: { env: withKey(context, candidate) } }, { name, kind: 'openai-compatible', baseUrl, apiKeyEnv })
  }
  for (;;) {
    const candidate = await askForProvider({ prompts, env: context.env, models, nameFor: (proposal) => nameFor(text, proposal) })
    if (candidate === undefined || (await isWanted(onboarding, candidate))) return candidate
  }
}

async function isWanted(onboarding: Onboarding, candidate: Candidate): Promise<boolean> {
  for (;;) {
    if (await works(onboarding, candidate)) return true
    const next = await onboarding.prompts.choose('What now?', [
      { value: 'again', label: 'Try once more' },
      { value: 'other', label: 'Answer the questions again' },
      { value: 'keep', label: 'Write it to the config file all the same' },
    ])
    if (next !== 'again') return next === 'keep'
  }
}

async function works({ context, setup, prompts }: Onboarding, candidate: Candidate): Promise<boolean> {
  const { name, model, apiKeyEnv } = candidate.proposal
  prompts.say('step', `Asking ${name}/${model} one short question`)
  const tried = await tryCandidate(context, setup, candidate)
  if (tried?.ok) prompts.say('success', `${name}/${model} answered in ${tried.ms} ms: ${setup.redactor.text(firstLine(tried.text))}`)
  else if (tried) prompts.say('error', setup.redactor.text(`${name}/${model} did not answer: ${tried.failure.message}`))
  else prompts.say('warn', `Not tried: ${apiKeyEnv} is not set here. Set it, and then: braidclaw provider test ${name}`)
  return tried === undefined || tried.ok
}

function firstLine(text: string): string {
  const [line = ''] = text.trim().split('\n')
  return line.length > 80 ? `${line.slice(0, 79).toWellFormed()}…` : line
}

/** Asks before it replaces a default provider that the user chose earlier. */
async function mayReplace({ setup, prompts }: Onboarding, { proposal }: Candidate): Promise<boolean> {
  const { config, file } = setup
  const { defaultProvider } = config
  const read = file === undefined ? undefined : readConfigFile(file)
  const chosen = read?.state === 'text' && /^\s*default_provider\s*=/m.test(read.text) && !isOfflineDefault(read.text)
  if (!chosen || defaultProvider === proposal.name || !providerNamed(config, defaultProvider)) return true
  const says = [
    { value: 'yes', label: `Yes, ${proposal.name} answers from now on` },
    { value: 'no', label: `No, keep ${defaultProvider}; -m ${proposal.name} asks ${proposal.name}` },
  ] as const
  return (await prompts.choose(`Until now "${defaultProvider}" answers. Use ${proposal.name} instead?`, says)) === 'yes'
}

type Outcome = { readonly candidate: Candidate | undefined; readonly answers: boolean }

async function write({ context, setup, prompts }: Onboarding, { candidate, answers }: Outcome): Promise<void> {
  const proposal = candidate?.proposal
  const choice = proposal ?? { name: 'local', model: 'mock' }
  if (candidate?.key) {
    keep(setup.paths.keys, candidate.key)
    prompts.say('info', `The key is kept in ${setup.paths.keys}, which only you can read.`)
  }
  await initialise(context, { json: false, proposals: proposal ? [proposal] : [], ...(answers ? { choice } : {}) })
  prompts.end('Ready. Say hello: braidclaw agent')
}

function keep(path: string, { name, value }: NonNullable<Candidate['key']>): void {
  try {
    keepKey(path, name, value)
  } catch (error) {
    throw commandError(`the key cannot be kept in ${path}: ${explainErrno(errorCode(error))}`)
  }
}

/** How long the test may take: a server may first load the model, but a person is waiting. */
const trySeconds = 90

/** Asks one short question. Undefined when the key is not set yet. @throws Error when the configuration would not be valid with it */
async function tryCandidate(context: CliContext, setup: CliSetup, candidate: Candidate): Promise<Probe | undefined> {
  const { proposal, key } = candidate
  const env = withKey(context, candidate)
  if (proposal.apiKeyEnv !== undefined && !env[proposal.apiKeyEnv]) return undefined
  if (key && !weaknessOf(key.value)) context.redactor.register(key.value, key.name)
  const config = configWith(context, candidate)
  return probeProvider(await providerFor({ config, log: setup.log, context: { ...context, env } }, proposal.name), Date.now)
}

function withKey({ env }: CliContext, { key }: Candidate): CliContext['env'] {
  return key ? { ...env, [key.name]: key.value } : env
}

/** Returns the config file as it is, or as `init` would write it. */
function configText({ home, channels }: CliContext): string {
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
