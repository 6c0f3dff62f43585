/** Lists the providers that need no table in the config file: each works as soon as its environment variable is set. */

import type { ProviderKindName } from './config.ts'

export type Proposal = {
  readonly name: string
  readonly kind: ProviderKindName
  /** Empty: the server is asked which model it has. */
  readonly model: string
  readonly baseUrl?: string
  readonly apiKeyEnv?: string
  /** The environment variable that suggested this provider. */
  readonly because: string
}

type ProviderEnv = { readonly [name: string]: string | undefined }

type Vendor = Proposal & {
  /** The name shown to people. */
  readonly label: string
  /** A variable that replaces the address; the vendor's own programs read it too. */
  readonly addressEnv?: string
}

/** In order of preference: the first vendor whose variable is set becomes the default provider. */
const vendors = [
  vendor({
    name: 'openai',
    label: 'OpenAI',
    kind: 'openai',
    model: 'gpt-5.4-mini',
    apiKeyEnv: 'OPENAI_API_KEY',
    addressEnv: 'OPENAI_BASE_URL',
  }),
  vendor({
    name: 'anthropic',
    label: 'Anthropic',
    kind: 'anthropic',
    model: 'claude-sonnet-5',
    apiKeyEnv: 'ANTHROPIC_API_KEY',
    addressEnv: 'ANTHROPIC_BASE_URL',
  }),
  vendor({
    name: 'openrouter',
    label: 'OpenRouter',
    kind: 'openai-compatible',
    model: 'openrouter/auto',
    baseUrl: 'https://openrouter.ai/api/v1',
    apiKeyEnv: 'OPENROUTER_API_KEY',
  }),
  localServer('ollama', 'Ollama', 'http://127.0.0.1:11434/v1', 'OLLAMA_HOST'),
  localServer('lmstudio', 'LM Studio', 'http://127.0.0.1:1234/v1', 'LMSTUDIO_HOST'),
]

/** The variable of its key, or else that of its address, suggests a vendor. */
function vendor(row: Omit<Vendor, 'because'>): Vendor {
  return { ...row, because: row.apiKeyEnv ?? row.addressEnv ?? '' }
}

function localServer(name: string, label: string, baseUrl: string, addressEnv: string): Vendor {
  return vendor({ name, label, kind: 'openai-compatible', model: '', baseUrl, addressEnv })
}

/** The vendors that need a key, with the names shown to people. */
export const withKeys: readonly { readonly name: string; readonly label: string; readonly keyEnv: string }[] = vendors.flatMap(
  ({ name, label, apiKeyEnv }) => (apiKeyEnv === undefined ? [] : [{ name, label, keyEnv: apiKeyEnv }]),
)

export const knownNames: readonly string[] = vendors.map(({ name }) => name)

/** Each variable makes one provider usable. In order of preference. */
export const providerVariables: readonly string[] = vendors.map(({ because }) => because)

/** `OPENAI_API_KEY, … or OLLAMA_HOST`, for messages. */
export const anyVariable = providerVariables.join(', ').replace(/, (\w+)$/, ' or $1')

/** Returns the providers whose variable is set, in order of preference: the first becomes the default provider. */
export function proposeProviders(env: ProviderEnv): readonly Proposal[] {
  return vendors.filter(({ because }) => isSet(env, because)).flatMap((vendor) => knownProvider(vendor.name, env) ?? [])
}

/** Returns the provider's configuration, whether or not its key is set. Undefined for an unknown name or an invalid address. */
export function knownProvider(name: string, env: ProviderEnv): Proposal | undefined {
  const vendor = vendors.find((each) => each.name === name)
  if (vendor === undefined) return undefined
  const { label: _, addressEnv, ...proposal } = vendor
  const moved = addressEnv !== undefined && isSet(env, addressEnv) ? env[addressEnv]?.trim() : undefined
  if (moved === undefined) return proposal
  const baseUrl = addressOf(name, moved)
  if (baseUrl === undefined) return undefined
  // Servers other than OpenAI's own support the chat completions protocol; few support OpenAI's newer one.
  const kind = name === 'openai' && new URL(baseUrl).hostname !== 'api.openai.com' ? 'openai-compatible' : proposal.kind
  return { ...proposal, kind, baseUrl }
}

/** Returns the variable that contains an invalid address, if there is one. */
export function brokenAddress(name: string, env: ProviderEnv): string | undefined {
  const variable = vendors.find((each) => each.name === name)?.addressEnv
  return variable !== undefined && isSet(env, variable) && knownProvider(name, env) === undefined ? variable : undefined
}

function isSet(env: ProviderEnv, name: string): boolean {
  return (env[name] ?? '').trim() !== ''
}

function addressOf(name: string, text: string): string | undefined {
  if (name === 'ollama') return localUrl(text, '11434')
  if (name === 'lmstudio') return localUrl(text, '1234')
  const url = webAddress(text)
  if (url === undefined) return undefined
  // Anthropic's own programs add /v1 themselves.
  return name === 'anthropic' && !url.endsWith('/v1') ? `${url}/v1` : url
}

/** Removes trailing slashes. Rejects an address with a password, a query or a fragment. */
function webAddress(text: string): string | undefined {
  const url = URL.parse(text)
  if (url === null || !/^https?:$/.test(url.protocol) || url.username !== '' || url.password !== '' || /[?#\s]/.test(text)) return undefined
  return text.replace(/\/+$/, '')
}

/**
 * Reads the address that a server on this machine binds: "0.0.0.0", ":11434", "host", "host:port" or a URL. An invalid value proposes no
 * provider.
 */
function localUrl(host: string, usualPort: string): string | undefined {
  const bare = /^[\da-f]*:[\da-f]*:[\da-f:]*$/i.test(host) ? `[${host}]` : host.startsWith(':') ? `127.0.0.1${host}` : host
  const url = URL.parse(/^[a-z]+:\/\//i.test(host) ? host : `http://${bare}`)
  if (url === null || !/^https?:$/.test(url.protocol) || url.username !== '' || url.password !== '') return undefined
  const name = url.hostname === '0.0.0.0' || url.hostname === '[::]' ? '127.0.0.1' : url.hostname
  const port = url.port || (/:80\/*$/.test(host) ? '80' : /^https:/i.test(host) ? '443' : usualPort)
  return `${url.protocol}//${name}:${port}${url.pathname.replace(/\/+$/, '').replace(/\/v1$/, '')}/v1`
}
