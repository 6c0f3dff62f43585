/** Implements `onboard`: it asks for provider, address, model and key, and tests the answer before it writes anything. */

import { terminalPrompt } from '../../../channels/terminal/audience.ts'
import type { CliContext, CliSetup } from '../../../channels/terminal/context.ts'
import { onInterrupt } from '../../../channels/terminal/signals.ts'
import { isTerminal } from '../../../channels/terminal/tty.ts'
import { isWireProvider, providerNamed } from '../../../config/config.ts'
import { defaultConfigToml, extendConfig, nameFor } from '../../../config/config-text.ts'
import { loadWith } from '../../../config/init.ts'
import { knownProvider } from '../../../config/known-providers.ts'
import { isOfflineDefault } from '../../../config/offline-default.ts'
import { homePaths } from '../../../config/paths.ts'
import { readConfigFile } from '../../../config/text/read-toml-file.ts'
import { modelsOf } from '../../../host/setup/found-models.ts'
import { providerFor } from '../../../host/setup/provider-pool.ts'
import { loadSetup } from '../../../host/setup/setup.ts'
import { isLoopback } from '../../../http/listen.ts'
import { attempt } from '../../../kit/errors.ts'
import { type Models, type Probe, probeProvider } from '../../../providers/probe-provider.ts'
import { weaknessOf } from '../../../security/redaction/secret-forms.ts'
import { command } from '../../args/command.ts'
import { usageError } from '../../exit.ts'
import { isUnanswered } from '../../offline-notice.ts'
import { type Asking, askForProvider, Cancelled, type Candidate, createPrompts } from '../../onboard/questions.ts'
import { initialise } from './init.ts'
import { storeKey } from './login.ts'

type Onboarding = Pick<Asking, 'prompts' | 'answers'> & { readonly context: CliContext; readonly setup: CliSetup }

export const onboard = command({
  examples: [['', 'in a terminal']],
  exits: [130],
  async run(context) {
    if (!isTerminal(0) || !isTerminal(1)) throw usageError('onboard asks questions and needs a terminal; use "braidclaw init" in scripts')
    await connect(context, 'Ready. Say hello: braidclaw agent')
  },
})

/**
 * Offers in one line to connect a model where only the offline helper would answer; a configuration with errors gets no offer.
 * @returns the context to continue with; undefined after a no
 */
export async function offerModel(context: CliContext): Promise<CliContext | undefined> {
  const setup = isTerminal(0) && isTerminal(1) && context.env.TERM !== 'dumb' ? attempt(() => loadSetup(context)) : undefined
  if (!setup || !isUnanswered(setup)) return undefined
  using interrupt = onInterrupt(() => {})
  const line = await terminalPrompt(context)?.('No model is connected yet. Connect one now? [Y/n] ', interrupt.signal)
  if (interrupt.signal.aborted) throw new Cancelled()
  return line === undefined || /^\s*n/i.test(line) ? undefined : connect(context, 'Ready.')
}

/** Asks, tries and writes. @returns the context with the typed key @throws CliExit 130 when the user left; then nothing was written */
async function connect(context: CliContext, done: string): Promise<CliContext> {
  const prompts = createPrompts(context.process.stdout)
  const answers = { addresses: new Map(), keys: new Map(), refused: new Set<string>() }
  const onboarding: Onboarding = { context, setup: loadSetup(context), prompts, answers }
  const { promise: interrupted, reject } = Promise.withResolvers<never>()
  using interrupt = onInterrupt(() => reject(new Cancelled()))
  prompts.begin('BraidClaw')
  try {
    const candidate = await Promise.race([findCandidate(onboarding), interrupted])
    const replaces = candidate === undefined || (await Promise.race([mayReplace(onboarding, candidate), interrupted]))
    interrupt.stop()
    await write(onboarding, candidate, replaces)
    prompts.end(done)
    const env = candidate ? withKey(context, candidate) : context.env
    return { ...context, env, process: { ...context.process, env } }
  } catch (error) {
    if (error instanceof Cancelled) prompts.cancel('Nothing was changed.')
    throw error
  }
}

/** Returns a provider that works, or that the user wants anyway. Undefined: the offline helper. */
async function findCandidate(onboarding: Onboarding): Promise<Candidate | undefined> {
  const { context, setup, prompts, answers } = onboarding
  const text = configText(context)
  const asking: Asking = {
    prompts,
    answers,
    env: context.env,
    running: await runningServers(setup),
    models: (candidate) => modelsFor(onboarding, candidate),
    nameFor: (proposal) => nameFor(text, proposal),
  }
  for (;;) {
    const candidate = await askForProvider(asking)
    if (candidate === undefined || (await isWanted(onboarding, candidate))) return candidate
  }
}

async function runningServers({ log, context: { env } }: CliSetup): Promise<ReadonlyMap<string, number>> {
  const servers = ['ollama', 'lmstudio'].flatMap((name) => knownProvider(name, env) ?? [])
  const local = servers.filter(({ baseUrl = '' }) => isLoopback(new URL(baseUrl).hostname))
  const lists = local.map(async ({ name, kind, baseUrl }) => {
    const listed = await modelsOf({ log, context: { env } }, { name, kind, baseUrl, totalTimeoutS: 0.7 })
    return listed.ok ? [[name, listed.models.length] as const] : []
  })
  return new Map((await Promise.all(lists)).flat())
}

async function modelsFor({ context, setup: { log, redactor } }: Onboarding, candidate: Candidate): Promise<Models> {
  // Messages may quote a typed key.
  if (candidate.key && !weaknessOf(candidate.key.value)) redactor.register(candidate.key.value, candidate.key.name)
  const listed = await modelsOf({ log, context: { env: withKey(context, candidate) } }, candidate.proposal)
  return listed.ok ? listed : { ...listed, failure: { ...listed.failure, message: redactor.text(listed.failure.message) } }
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

async function works({ context, setup, prompts, answers }: Onboarding, candidate: Candidate): Promise<boolean> {
  const { name, model, apiKeyEnv } = candidate.proposal
  prompts.say('step', `Asking ${name}/${model} one short question`)
  const tried = await tryCandidate(context, setup, candidate)
  if (tried?.ok) prompts.say('success', `${name}/${model} answered in ${tried.ms} ms: ${setup.redactor.text(firstLine(tried.text))}`)
  else if (tried) prompts.say('error', setup.redactor.text(`${name}/${model} did not answer: ${tried.failure.message}`))
  else prompts.say('warn', `Not tried: ${apiKeyEnv} is not set here. Set it, and then: braidclaw provider test ${name}`)
  if (tried?.ok === false && tried.failure.code === 'auth' && apiKeyEnv) answers.refused.add(apiKeyEnv)
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

async function write({ context, setup, prompts }: Onboarding, candidate: Candidate | undefined, answers: boolean): Promise<void> {
  const proposal = candidate?.proposal
  const choice = proposal ?? { name: 'local', model: 'mock' }
  if (candidate?.key) {
    await storeKey(context, candidate.key)
    prompts.say('info', `The key is kept in ${setup.paths.keys}, which only you can read.`)
  }
  await initialise(context, { json: false, proposals: proposal ? [proposal] : [], choice: answers ? choice : undefined })
}

/** How long the test may take: a server may first load the model, but a person is waiting. */
const trySeconds = 90

/** Asks one short question. Undefined when the key is not set yet. @throws Error when the configuration would not be valid with it */
async function tryCandidate(context: CliContext, setup: CliSetup, candidate: Candidate): Promise<Probe | undefined> {
  const { proposal } = candidate
  const env = withKey(context, candidate)
  if (proposal.apiKeyEnv !== undefined && !env[proposal.apiKeyEnv]) return undefined
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
  const draft = extendConfig(configText(context), { proposals: [proposal], choice: proposal }).text
  const loaded = loadWith(homePaths(context.home).config, draft, context)
  if (!loaded.ok) throw new Error(loaded.problems.map(({ message }) => message).join('; '))
  const { config } = loaded
  const found = providerNamed(config, proposal.name)
  if (!found || !isWireProvider(found)) return config
  const impatient = { ...found, totalTimeoutS: trySeconds, maxRetries: 0 }
  return { ...config, providers: { models: { ...config.providers.models, [proposal.name]: impatient } } }
}
