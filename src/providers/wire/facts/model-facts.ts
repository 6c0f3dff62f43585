/** Finds the facts of a model: its context window, its longest answer, its prices, what it sees and whether it reasons. Unknown facts are absent. */

/**
 * US dollars per million tokens. The cost is reported only when `input` and `output` are known; `cached` and `cacheWrite` fall back to
 * `input`.
 */
export type Prices = { readonly input?: number; readonly output?: number; readonly cached?: number; readonly cacheWrite?: number }

export type ModelFacts = {
  readonly contextTokens?: number
  readonly maxOutputTokens?: number
  /** Contains both `input` and `output`. */
  readonly prices?: Prices
  /** Names kinds of content, such as `text` and `image`. */
  readonly sees?: readonly string[]
  readonly reasons?: boolean
}

/** Tells people where facts come from: the name of a file or of the table in this program, and the day of its source. */
export type FactsOrigin = { readonly name: string; readonly date?: string }

/** The vendors of the table by the host of their address: a proxy may sell the same model at another price. */
export const vendorHosts: { readonly [host: string]: string } = {
  'api.openai.com': 'openai',
  'api.anthropic.com': 'anthropic',
  'openrouter.ai': 'openrouter',
  'generativelanguage.googleapis.com': 'google',
  'api.groq.com': 'groq',
  'api.x.ai': 'xai',
  'api.deepseek.com': 'deepseek',
  'api.mistral.ai': 'mistral',
  'api.cerebras.ai': 'cerebras',
  'api.fireworks.ai': 'fireworks',
  'api.moonshot.ai': 'moonshotai',
  'router.huggingface.co': 'huggingface',
  'ai-gateway.vercel.sh': 'vercel-ai-gateway',
}

/** Loads the table only for an address that it knows. */
export async function catalogueFacts(address: string | undefined, model: string): Promise<(ModelFacts & FactsOrigin) | undefined> {
  const vendor = vendorOf(address)
  if (vendor === undefined) return undefined
  const { catalogue, catalogueSource } = await import('./catalogue.ts')
  const facts = factsIn(catalogue[vendor] ?? '', model)
  return facts && { ...facts, ...catalogueSource }
}

/** Accepts only https on the usual port: another server may answer on another port or without encryption. */
function vendorOf(address = ''): string | undefined {
  const url = URL.parse(address)
  if (url === null || url.protocol !== 'https:' || url.port !== '') return undefined
  return Object.hasOwn(vendorHosts, url.hostname) ? vendorHosts[url.hostname] : undefined
}

/** @param lines as in catalogue.ts */
export function factsIn(lines: string, model: string): ModelFacts | undefined {
  if (model === '' || /\s/.test(model)) return undefined
  const start = lines.indexOf(`\n${model} `)
  if (start < 0) return undefined
  const [, context, answer, input, output, cached, cacheWrite, sees = '-', reasons = '-'] = lines
    .slice(start + 1, lines.indexOf('\n', start + 1))
    .split(' ')
  const [contextTokens, maxOutputTokens] = [known(context), known(answer)]
  const prices = { input: known(input), output: known(output), cached: known(cached), cacheWrite: known(cacheWrite) }
  return {
    ...{ contextTokens, maxOutputTokens },
    ...(isPriced(prices) ? { prices } : {}),
    ...(sees === '-' ? {} : { sees: sees.split('+') }),
    ...(reasons === '-' ? {} : { reasons: reasons === 'yes' }),
  }
}

/** Tells whether the cost of a call is known: it needs both prices. */
export function isPriced({ input, output }: Prices): boolean {
  return input !== undefined && output !== undefined
}

function known(text = '-'): number | undefined {
  return text === '-' ? undefined : Number(text)
}
