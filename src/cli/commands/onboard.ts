/** `onboard`: connects a model by asking: who, where, which model, what key. It is tried before anything is written. */

import { cancel, intro, log, outro } from '@clack/prompts'
import { isTerminal } from '../../channels/tty.ts'
import { providerNamed } from '../../config/config.ts'
import { nameFor } from '../../config/extend.ts'
import { keepKey } from '../../config/keys-file.ts'
import { isOfflineDefault } from '../../config/offline-default.ts'
import { errorCode, explainErrno, readConfigFile } from '../../config/text/read.ts'
import { CliExit, exitCodes } from '../exit.ts'
import { configText, modelsOf, tryCandidate } from '../onboard/candidate.ts'
import { Cancelled, choose } from '../onboard/prompts.ts'
import { askForProvider, type Candidate } from '../onboard/questions.ts'
import { setUp } from '../setup/setup.ts'
import type { CliContext, Setup } from '../world.ts'
import { initialise } from './init.ts'

export async function onboard(this: CliContext): Promise<void> {
  if (!isTerminal(0) || !isTerminal(1)) {
    throw new CliExit(exitCodes.usage, 'error: onboard asks questions and needs a terminal; use "braidclaw init" in scripts')
  }
  const setup = setUp(this)
  intro('BraidClaw')
  try {
    const candidate = await findCandidate(this, setup)
    const answers = candidate === undefined || (await mayReplace(setup, candidate))
    await write(this, setup, { candidate, answers })
  } catch (error) {
    if (!(error instanceof Cancelled)) throw error
    cancel('Nothing was changed.')
    throw new CliExit(exitCodes.cancelled)
  }
}

/** One that works, or that its owner wants all the same. Undefined: the offline helper. */
async function findCandidate(context: CliContext, setup: Setup): Promise<Candidate | undefined> {
  const text = configText(context.home)
  const models = (candidate: Candidate) => modelsOf(context, setup, candidate)
  for (;;) {
    const candidate = await askForProvider({ env: context.env, models, nameFor: (proposal) => nameFor(text, proposal) })
    if (candidate === undefined || (await isWanted(context, setup, candidate))) return candidate
  }
}

async function isWanted(context: CliContext, setup: Setup, candidate: Candidate): Promise<boolean> {
  for (;;) {
    if (await works(context, setup, candidate)) return true
    const next = await choose('What now?', [
      { value: 'again', label: 'Try once more' },
      { value: 'other', label: 'Answer the questions again' },
      { value: 'keep', label: 'Write it to the config file all the same' },
    ])
    if (next !== 'again') return next === 'keep'
  }
}

async function works(context: CliContext, setup: Setup, candidate: Candidate): Promise<boolean> {
  const { name, model, apiKeyEnv } = candidate.proposal
  log.step(`Asking ${name}/${model} one short question`)
  const tried = await tryCandidate(context, setup, candidate)
  if (tried?.ok) log.success(`${name}/${model} answered in ${tried.ms} ms: ${setup.redactor.text(firstLine(tried.text))}`)
  else if (tried) log.error(setup.redactor.text(`${name}/${model} did not answer: ${tried.failure.message}`))
  else log.warn(`Not tried: ${apiKeyEnv} is not set here. Set it, and then: braidclaw provider test ${name}`)
  return tried === undefined || tried.ok
}

function firstLine(text: string): string {
  const [line = ''] = text.trim().split('\n')
  return line.length > 80 ? `${line.slice(0, 79).toWellFormed()}…` : line
}

/** Whoever a person chose earlier goes on answering unless they say otherwise. */
async function mayReplace({ config, file }: Setup, { proposal }: Candidate): Promise<boolean> {
  const { defaultProvider } = config
  const read = file === undefined ? undefined : readConfigFile(file)
  const chosen = read?.state === 'text' && /^\s*default_provider\s*=/m.test(read.text) && !isOfflineDefault(read.text)
  if (!chosen || defaultProvider === proposal.name || !providerNamed(config, defaultProvider)) return true
  const says = [
    { value: 'yes', label: `Yes, ${proposal.name} answers from now on` },
    { value: 'no', label: `No, ${defaultProvider} goes on answering; ${proposal.name} by its name: -m ${proposal.name}` },
  ] as const
  return (await choose(`Until now "${defaultProvider}" answers. Shall ${proposal.name} take its place?`, says)) === 'yes'
}

type Outcome = { readonly candidate: Candidate | undefined; readonly answers: boolean }

async function write(context: CliContext, { paths }: Setup, { candidate, answers }: Outcome): Promise<void> {
  const proposal = candidate?.proposal
  const choice = proposal ?? { name: 'local', model: 'mock' }
  if (candidate?.key) keep(paths.keys, candidate.key)
  await initialise(context, { json: false, proposals: proposal ? [proposal] : [], ...(answers ? { choice } : {}) })
  outro('Ready. Say hello: braidclaw agent')
}

function keep(path: string, { name, value }: NonNullable<Candidate['key']>): void {
  try {
    keepKey(path, name, value)
  } catch (error) {
    throw new CliExit(exitCodes.error, `error: the key cannot be kept in ${path}: ${explainErrno(errorCode(error))}`)
  }
  log.info(`The key is kept in ${path}, which only you can read.`)
}
