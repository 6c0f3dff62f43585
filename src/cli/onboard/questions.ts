/** Asks the user of `onboard` for the provider, its address, the model and the key. */

import { autocomplete, cancel, intro, log, outro, password, select, text } from '@clack/prompts'
import { editorStream } from '../../channels/terminal/line-editor.ts'
import type { Printer } from '../../channels/terminal/printer.ts'
import { isKey } from '../../config/keys-file.ts'
import { knownProvider, type Proposal, withKeys } from '../../config/known-providers.ts'
import type { Environment } from '../../host/api.ts'
import { escapeHidden as safe } from '../../kit/escape.ts'
import { forms } from '../../kit/settings.ts'

export type Candidate = {
  readonly proposal: Proposal
  /** A typed key that is to be stored. */
  readonly key?: { readonly name: string; readonly value: string }
}

export type Asking = {
  readonly prompts: Prompts
  readonly env: Environment
  /** Returns the name of the provider's table in the configuration. */
  readonly nameFor: (proposal: Proposal) => string
  /** Returns the models that a server lists; none when it does not answer. */
  readonly models: (candidate: Candidate) => Promise<readonly string[]>
}

/** Programs that serve a model on this machine, with their usual addresses. */
const local = [
  { value: 'ollama', label: 'Ollama on this machine', address: 'http://127.0.0.1:11434/v1', model: 'qwen3:8b' },
  { value: 'lmstudio', label: 'LM Studio on this machine', address: 'http://127.0.0.1:1234/v1', model: '' },
  { value: 'llamacpp', label: 'llama.cpp on this machine', address: 'http://127.0.0.1:8080/v1', model: '' },
  { value: 'server', label: 'Another server that speaks the chat completions protocol', address: '', model: '' },
] as const

/** Undefined: the offline helper. @throws Cancelled */
export async function askForProvider(asking: Asking): Promise<Candidate | undefined> {
  const { env, prompts } = asking
  const known = withKeys.map(({ name, label, keyEnv }) => ({ value: name, label, hint: env[keyEnv] ? `${keyEnv} is set` : 'needs a key' }))
  const offline = { value: 'local', label: 'The offline helper (no language model)' }
  const ready =
    withKeys.find(({ keyEnv }) => env[keyEnv])?.name ?? local.find(({ value }) => env[knownProvider(value, {})?.because ?? ''])?.value
  const chosen = await prompts.choose('Which model should answer?', [...known, ...local, offline], ready)
  if (chosen === 'local') return undefined
  const server = local.find(({ value }) => value === chosen)
  return server ? askForServer(server, asking) : askForVendor(chosen, asking)
}

async function askForVendor(name: string, asking: Asking): Promise<Candidate | undefined> {
  const { env, nameFor, prompts } = asking
  const proposal = knownProvider(name, env) ?? knownProvider(name, {})
  if (proposal === undefined) return undefined
  const given = await askForKey(proposal.apiKeyEnv ?? '', asking)
  const model = await prompts.write('Which model?', isGiven, proposal.model)
  const whole: Proposal = { ...proposal, model, because: '', apiKeyEnv: given.name }
  return { proposal: { ...whole, name: nameFor(whole) }, ...(given.value ? { key: { name: given.name, value: given.value } } : {}) }
}

async function askForServer({ value, address, model }: (typeof local)[number], asking: Asking): Promise<Candidate> {
  const { env, nameFor, prompts } = asking
  const usual = knownProvider(value, env)?.baseUrl ?? address
  const baseUrl = (await prompts.write('What is its address?', isAddress, usual)).replace(/\/+$/, '')
  const server: Proposal = { name: value, kind: 'openai-compatible', model, baseUrl, because: '' }
  const keyed =
    value === 'server' &&
    (await prompts.choose('Does it want a key?', [
      { value: 'no', label: 'No' },
      { value: 'yes', label: 'Yes' },
    ])) === 'yes'
  const given = keyed ? await askForKey(`${nameFor(server).toUpperCase().replaceAll('-', '_')}_API_KEY`, asking) : undefined
  const proposal: Proposal = { ...server, ...(given ? { apiKeyEnv: given.name } : {}) }
  const candidate = { proposal, ...(given?.value ? { key: { name: given.name, value: given.value } } : {}) }
  return { ...candidate, proposal: { ...proposal, name: nameFor(proposal), model: await askForModel(candidate, asking) } }
}

async function askForModel(candidate: Candidate, { models, prompts }: Asking): Promise<string> {
  prompts.say('step', 'Asking which models it has')
  const names = await models(candidate)
  if (names.length === 0) prompts.say('warn', 'It does not say which models it has')
  return names.length > 0
    ? prompts.pick('Which model? (type to search)', names)
    : prompts.write('Which model? As the server spells it', isGiven, candidate.proposal.model)
}

/** Asks only when the usual variable is not set. */
async function askForKey(usual: string, { env, prompts }: Asking): Promise<{ readonly name: string; readonly value?: string }> {
  if (env[usual]) return { name: usual }
  const how = await prompts.choose(`${usual} is not set. Where is the key?`, [
    { value: 'type', label: 'I paste it now', hint: 'kept in ~/.braidclaw/keys.env, which only you can read' },
    { value: 'name', label: 'In an environment variable', hint: 'you say which' },
  ])
  if (how === 'name') return { name: await prompts.write('What is the variable called?', isVariable, usual) }
  const value = await prompts.writeHidden('The key', (key) => (isKey(key) ? undefined : 'A key is one word, without spaces and quotes'))
  return { name: usual, value }
}

function isGiven(model: string): string | undefined {
  return model === '' ? 'The name of a model is needed' : undefined
}

function isVariable(name: string): string | undefined {
  return new RegExp(forms.variable.pattern).test(name)
    ? undefined
    : 'The NAME of a variable, such as OPENAI_API_KEY, and not the key itself'
}

function isAddress(address: string): string | undefined {
  const url = URL.parse(address)
  // A scheme in front of an address that has one makes it the name of a host.
  const good =
    url !== null && /^https?:$/.test(url.protocol) && !/^(?:https?)?$/.test(url.hostname) && url.username === '' && !/[?#\s]/.test(address)
  return good ? undefined : 'An address such as http://127.0.0.1:1234/v1, without user, password, "?" and "#"'
}

/** The user pressed Ctrl-C or Escape: nothing may be changed. */
export class Cancelled extends Error {}

type Choice<T> = { readonly value: T; readonly label: string; readonly hint?: string }

export type Prompts = ReturnType<typeof createPrompts>

/** The stream passes the colours and cursor movements of the questions, so every text in them is escaped first. */
export function createPrompts(printer: Pick<Printer, 'editor'>) {
  const output = editorStream(printer)

  async function choose<T extends string>(message: string, options: readonly Choice<T>[], first?: T): Promise<T> {
    const shown = options.map(({ value, label, hint }) => ({
      value: String(value),
      label: safe(label),
      ...(hint ? { hint: safe(hint) } : {}),
    }))
    const picked = answered(
      await select<string>({ message: safe(message), options: shown, output, ...(first ? { initialValue: String(first) } : {}) }),
    )
    const found = options.find(({ value }) => value === picked)
    if (found === undefined) throw new Cancelled()
    return found.value
  }

  return {
    choose,
    /** Lets the user pick one of many names by typing a part of it. */
    pick: async (message: string, names: readonly string[]): Promise<string> =>
      answered(
        await autocomplete<string>({
          message: safe(message),
          maxItems: 8,
          output,
          options: names.map((value) => ({ value, label: safe(value) })),
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
