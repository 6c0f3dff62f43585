/** Asks the user of `onboard` for the provider, its address, the model and the key. */

import { autocomplete, cancel, intro, log, outro, password, select, text } from '@clack/prompts'
import type { Printer } from '../../channels/terminal/printer.ts'
import { editorStream } from '../../channels/terminal/screen/line-reader.ts'
import { isKey } from '../../config/keys-file.ts'
import { knownProvider, type Proposal, webAddress } from '../../config/known-providers.ts'
import type { Environment } from '../../host/api.ts'
import { ranked } from '../../host/setup/found-models.ts'
import { escapeHidden as safe } from '../../kit/escape.ts'
import { forms } from '../../kit/settings.ts'
import { count } from '../../kit/text.ts'
import type { Models, ServerModel } from '../../providers/probe-provider.ts'
import { CliExit, exitCodes } from '../exit.ts'

export type Candidate = {
  readonly proposal: Proposal
  /** A typed key that is to be stored. */
  readonly key?: { readonly name: string; readonly value: string }
}

/** Remembers the answers, so that a person who answers the questions again types nothing twice. */
export type Answers = {
  chosen?: string
  readonly addresses: Map<string, string>
  readonly keys: Map<string, string>
  /** The variables whose key a server refused. */
  readonly refused: Set<string>
}

export type Asking = {
  readonly prompts: Prompts
  readonly env: Environment
  readonly answers: Answers
  /** The servers of this machine that answer now, and how many models they have. */
  readonly running: ReadonlyMap<string, number>
  /** Returns the name of the provider's table in the configuration. */
  readonly nameFor: (proposal: Proposal) => string
  /** Asks the server of a candidate for its models. */
  readonly models: (candidate: Candidate) => Promise<Models>
}

/** The names shown to people, in the order of the list. The table of known providers holds addresses, variables and models. */
const labels: { readonly [name: string]: string } = {
  openai: 'OpenAI',
  anthropic: 'Anthropic',
  openrouter: 'OpenRouter',
  gemini: 'Gemini',
  groq: 'Groq',
  mistral: 'Mistral',
  deepseek: 'DeepSeek',
  xai: 'xAI',
  ollama: 'Ollama on this machine',
  lmstudio: 'LM Studio on this machine',
  llamacpp: 'llama.cpp on this machine',
  server: 'Another address that speaks the chat completions protocol',
  local: 'The offline helper (no language model)',
}

/** Limits the list; the name of a model beyond it can be typed. */
const maxModels = 10_000

/** Undefined: the offline helper. @throws Cancelled */
export async function askForProvider(asking: Asking): Promise<Candidate | undefined> {
  const { answers, prompts, nameFor } = asking
  const chosen = await prompts.pick('Which model should answer? (type to search)', providerChoices(asking))
  answers.chosen = chosen
  if (chosen === 'local') return undefined
  let proposal = draftOf(chosen, asking)
  let asksAddress = proposal.apiKeyEnv === undefined && !asking.running.has(chosen)
  for (;;) {
    if (asksAddress) {
      const baseUrl = webAddress(await prompts.write('What is its address?', isAddress, proposal.baseUrl))
      if (baseUrl === undefined) continue
      answers.addresses.set(chosen, baseUrl)
      proposal = { ...proposal, baseUrl }
    }
    const candidate = await withKey(proposal, asking)
    const listed = await listModels(candidate, asking)
    if (listed.ok) return withModel(candidate, listed.models, asking)
    prompts.say('error', listed.failure.message)
    if (listed.failure.code === 'auth') {
      const { apiKeyEnv = `${nameFor(proposal).toUpperCase().replaceAll('-', '_')}_API_KEY` } = candidate.proposal
      if (candidate.proposal.apiKeyEnv !== undefined) answers.refused.add(apiKeyEnv)
      proposal = { ...proposal, apiKeyEnv }
      asksAddress = false
      continue
    }
    const next = await prompts.choose('What now?', [
      ...(proposal.apiKeyEnv === undefined ? [{ value: 'address', label: 'Change the address' } as const] : []),
      { value: 'again', label: 'Try once more' },
      { value: 'other', label: 'Choose another provider' },
      { value: 'name', label: 'Continue: I know the name of a model' },
    ])
    if (next === 'other') return askForProvider(asking)
    if (next === 'name') return withModel(candidate, [], asking)
    asksAddress = next === 'address'
  }
}

function providerChoices({ env, running, answers: { chosen } }: Asking): readonly Choice<string>[] {
  const isReady = (name: string) => Boolean(env[knownProvider(name, {})?.because ?? ''])
  const rank = (name: string) => (name === chosen ? 3 : running.has(name) ? 2 : isReady(name) ? 1 : 0)
  const hintOf = (name: string) => {
    const { apiKeyEnv = '', because } = knownProvider(name, {}) ?? {}
    const found = running.get(name)
    return found !== undefined ? `running, ${count(found, 'model')}` : isReady(name) ? `${because} is set` : apiKeyEnv && 'needs a key'
  }
  return Object.entries(labels)
    .map(([value, label]) => ({ value, label: [label, hintOf(value)].filter(Boolean).join(' – ') }))
    .sort((a, b) => rank(b.value) - rank(a.value))
}

function draftOf(name: string, { env, answers }: Asking): Proposal {
  const usual = name === 'llamacpp' ? 'http://127.0.0.1:8080/v1' : ''
  const unknown = { name, kind: 'openai-compatible', model: '', baseUrl: usual } as const
  const known = knownProvider(name, env) ?? knownProvider(name, {}) ?? unknown
  return { ...known, baseUrl: answers.addresses.get(name) ?? known.baseUrl, because: '' }
}

/** Returns no models when nobody can say which there are: the key is not set here, or the server has no list. */
async function listModels(candidate: Candidate, { prompts, env, models }: Asking): Promise<Models> {
  const { apiKeyEnv } = candidate.proposal
  if (apiKeyEnv !== undefined && candidate.key === undefined && !env[apiKeyEnv]) return { ok: true, models: [] }
  prompts.say('step', 'Asking which models it has')
  const listed = await models(candidate)
  if (listed.ok ? listed.models.some(({ isChat }) => isChat) : ['auth', 'network', 'timeout'].includes(listed.failure.code)) return listed
  prompts.say('warn', `It does not say which models it has${listed.ok ? '' : `: ${listed.failure.message}`}`)
  return { ok: true, models: [] }
}

async function withModel({ proposal, key }: Candidate, models: readonly ServerModel[], { prompts, nameFor }: Asking): Promise<Candidate> {
  const named = ranked(models, proposal.model).slice(0, maxModels)
  const choices = named.map(({ id, isLoaded }) => ({ value: id, label: isLoaded ? `${id} (loaded)` : id }))
  const other = { value: '', label: 'Another, whose name I type' }
  const picked = choices.length === 0 ? '' : await prompts.pick('Which model? (type to search)', [...choices, other])
  const isGiven = (name: string) => (name === '' ? 'The name of a model is needed' : undefined)
  const model = picked || (await prompts.write('Which model? As the server spells it', isGiven, proposal.model))
  return { proposal: { ...proposal, model, name: nameFor(proposal) }, key }
}

/** Asks only when the usual variable is not set, or its key was refused. */
async function withKey(proposal: Proposal, { env, prompts, answers }: Asking): Promise<Candidate> {
  const { apiKeyEnv: usual } = proposal
  if (usual === undefined) return { proposal }
  const isRefused = answers.refused.has(usual)
  const typed = answers.keys.get(usual)
  if (!isRefused && env[usual]) return { proposal }
  if (!isRefused && typed) return { proposal, key: { name: usual, value: typed } }
  const question = isRefused ? `${usual} was refused. Where is the right key?` : `${usual} is not set. Where is the key?`
  const how = await prompts.choose(question, [
    { value: 'type', label: 'I paste it now', hint: 'kept in ~/.braidclaw/keys.env, which only you can read' },
    { value: 'name', label: 'In an environment variable', hint: 'you say which' },
  ])
  if (how === 'name')
    return { proposal: { ...proposal, apiKeyEnv: await prompts.write('What is the variable called?', isVariable, usual) } }
  const value = await askHidden(prompts)
  // A variable of the environment counts more than a stored key of that name.
  const name = isExported(usual) ? `OWN_${usual}` : usual
  answers.refused.delete(name)
  answers.keys.set(name, value)
  return { proposal: { ...proposal, apiKeyEnv: name }, key: { name, value } }
}

/** Reads a key without showing it. */
export function askHidden(prompts: Prompts): Promise<string> {
  return prompts.writeHidden('The key', (key) => (isKey(key) ? undefined : 'A key is one word, without spaces and quotes'))
}

/** Tells whether the variable is set outside of the keys file; the environment of a context holds both. */
export function isExported(name: string): boolean {
  return Boolean(process.env[name])
}

function isVariable(name: string): string | undefined {
  if (new RegExp(forms.variable.pattern).test(name)) return undefined
  return 'The NAME of a variable, such as OPENAI_API_KEY, and not the key itself'
}

function isAddress(address: string): string | undefined {
  return webAddress(address) ? undefined : 'An address such as http://127.0.0.1:1234/v1, without user, password, "?" and "#"'
}

/** The user pressed Ctrl-C or Escape: nothing may be changed. */
export class Cancelled extends CliExit {
  constructor() {
    super(exitCodes.cancelled)
  }
}

type Choice<T> = { readonly value: T; readonly label: string; readonly hint?: string }

export type Prompts = ReturnType<typeof createPrompts>

/** The stream passes the colours and cursor movements of the questions, so every text in them is escaped first. */
export function createPrompts(printer: Pick<Printer, 'editor'>) {
  const output = editorStream(printer)

  async function choose<T extends string>(message: string, options: readonly Choice<T>[]): Promise<T> {
    const shown = options.map(({ value, label, hint }) => ({ value: String(value), label: safe(label), ...(hint && { hint: safe(hint) }) }))
    const picked = answered(await select<string>({ message: safe(message), options: shown, output }))
    const found = options.find(({ value }) => value === picked)
    if (found === undefined) throw new Cancelled()
    return found.value
  }

  return {
    choose,
    /** Lets the user pick one of many by typing a part of its name; a choice with an empty value matches everything. */
    pick: async (message: string, choices: readonly Choice<string>[]): Promise<string> =>
      answered(
        await autocomplete<string>({
          message: safe(message),
          maxItems: 8,
          output,
          options: choices.map(({ value, label }) => ({ value, label: safe(label) })),
          filter: (typed, { value, label = '' }) =>
            value === '' || label.replace(/ – .*/, '').toLowerCase().includes(typed.trim().toLowerCase()),
        }),
      ),
    /** `wrong` returns a sentence for an invalid answer. */
    write: async (message: string, wrong: (answer: string) => string | undefined, initialValue = ''): Promise<string> =>
      answered(await text({ message: safe(message), initialValue, output, validate: (answer = '') => wrong(answer.trim()) })).trim(),
    /** Does not show the typed text. */
    writeHidden: async (message: string, wrong: (answer: string) => string | undefined): Promise<string> =>
      answered(await password({ message: safe(message), output, validate: (answer = '') => wrong(answer.trim()) })).trim(),
    begin: (title: string) => intro(safe(title), { output }),
    end: (message: string) => outro(safe(message), { output }),
    cancel: (message: string) => cancel(safe(message), { output }),
    say: (how: 'step' | 'success' | 'error' | 'warn' | 'info', message: string) => log[how](safe(message), { output }),
  }
}

function answered(answer: string | symbol): string {
  if (typeof answer === 'symbol') throw new Cancelled()
  return answer
}
