/** Lists the providers that need no table in the config file: each works as soon as its environment variable is set. */

type Kind = 'openai' | 'anthropic' | 'openai-compatible'

export type Proposal = {
  readonly name: string
  readonly kind: Kind
  /** Empty: the server is asked which model it has. */
  readonly model: string
  readonly baseUrl?: string
  readonly apiKeyEnv?: string
  /** The environment variable that suggested this provider. */
  readonly because: string
}

type ProviderEnv = { readonly [name: string]: string | undefined }

type VendorRow = readonly [name: string, model: string, baseUrl?: string, kind?: Kind]

/**
 * In order of preference: the first vendor whose variable is set becomes the default provider. A row without a model is a server on this
 * machine. `onboard` holds the names shown to people.
 */
const rows: readonly VendorRow[] = [
  ['openai', 'gpt-5.4-mini', undefined, 'openai'],
  ['anthropic', 'claude-sonnet-5', undefined, 'anthropic'],
  ['openrouter', 'openrouter/auto', 'https://openrouter.ai/api/v1'],
  ['ollama', '', 'http://127.0.0.1:11434/v1'],
  ['lmstudio', '', 'http://127.0.0.1:1234/v1'],
  ['gemini', 'gemini-flash-latest', 'https://generativelanguage.googleapis.com/v1beta/openai'],
  ['groq', 'openai/gpt-oss-120b', 'https://api.groq.com/openai/v1'],
  ['mistral', 'mistral-medium-latest', 'https://api.mistral.ai/v1'],
  ['deepseek', 'deepseek-v4-flash', 'https://api.deepseek.com/v1'],
  ['xai', 'grok-4.3', 'https://api.x.ai/v1'],
]

/** The variable of its key, or else that of its address, suggests a vendor. */
const vendors = rows.map(([name, model, baseUrl, kind = 'openai-compatible']) => {
  const start = name.toUpperCase()
  const apiKeyEnv = model ? `${start}_API_KEY` : undefined
  // Replaces the address; some vendors' own programs read it too.
  const addressEnv = model ? `${start}_BASE_URL` : `${start}_HOST`
  return { addressEnv, proposal: { name, kind, model, baseUrl, apiKeyEnv, because: apiKeyEnv ?? addressEnv } satisfies Proposal }
})

export const knownNames: readonly string[] = rows.map(([name]) => name)

/** Names such variables in messages. */
export const anyVariable = 'OPENAI_API_KEY, ANTHROPIC_API_KEY or another key of docs/models.md'

/** Tells whether a vendor's server has this address: it rejects requests without a key. */
export function isVendorAddress(url: string): boolean {
  return rows.some(([, model, baseUrl]) => model && baseUrl === url)
}

/** Returns the providers whose variable is set, in order of preference: the first becomes the default provider. */
export function proposeProviders(env: ProviderEnv): readonly Proposal[] {
  return vendors.filter(({ proposal }) => isSet(env, proposal.because)).flatMap(({ proposal }) => knownProvider(proposal.name, env) ?? [])
}

/** Returns the provider's configuration, whether or not its key is set. Undefined for an unknown name or an invalid address. */
export function knownProvider(name: string, env: ProviderEnv): Proposal | undefined {
  const vendor = vendors.find(({ proposal }) => proposal.name === name)
  if (vendor === undefined) return undefined
  const { proposal } = vendor
  const moved = env[vendor.addressEnv]?.trim()
  if (!moved) return proposal
  const baseUrl = addressOf(name, moved)
  if (baseUrl === undefined) return undefined
  // Servers other than OpenAI's own support the chat completions protocol; few support OpenAI's newer one.
  const kind = name === 'openai' && new URL(baseUrl).hostname !== 'api.openai.com' ? 'openai-compatible' : proposal.kind
  return { ...proposal, kind, baseUrl }
}

/** Returns the variable that contains an invalid address, if there is one. */
export function brokenAddress(name: string, env: ProviderEnv): string | undefined {
  const variable = vendors.find(({ proposal }) => proposal.name === name)?.addressEnv
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
export function webAddress(text: string): string | undefined {
  // A scheme in front of an address that has one makes it the name of a host.
  const url = /[?#\s]/.test(text) ? undefined : webUrl(text)
  return url === undefined || /^https?$/.test(url.hostname) ? undefined : text.replace(/\/+$/, '')
}

function webUrl(text: string): URL | undefined {
  const url = URL.parse(text)
  return url && /^https?:$/.test(url.protocol) && url.username === '' && url.password === '' ? url : undefined
}

/**
 * Reads the address that a server on this machine binds: "0.0.0.0", ":11434", "host", "host:port" or a URL. An invalid value proposes no
 * provider.
 */
function localUrl(host: string, usualPort: string): string | undefined {
  const bare = /^[\da-f]*:[\da-f]*:[\da-f:]*$/i.test(host) ? `[${host}]` : host.startsWith(':') ? `127.0.0.1${host}` : host
  const url = webUrl(/^[a-z]+:\/\//i.test(host) ? host : `http://${bare}`)
  if (url === undefined) return undefined
  const name = url.hostname === '0.0.0.0' || url.hostname === '[::]' ? '127.0.0.1' : url.hostname
  const port = url.port || (/:80\/*$/.test(host) ? '80' : /^https:/i.test(host) ? '443' : usualPort)
  return `${url.protocol}//${name}:${port}${url.pathname.replace(/\/+$/, '').replace(/\/v1$/, '')}/v1`
}
