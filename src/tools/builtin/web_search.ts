/** Defines the tool web_search, which asks a search engine for which the operator has a key or an address. */

import { isObject, objectSchema, parseJson } from '../../kit/json.ts'
import { done, fail, refused, type ToolKind, textOr } from '../tool-kind.ts'
import type { Get } from './http.ts'

type Asked = {
  readonly search?: { readonly [name: string]: string }
  readonly headers?: { readonly [name: string]: string }
  readonly body?: object
}

type Engine = {
  /** The variable with its key; of SearXNG, with its address. */
  readonly variable: string
  /** Where it answers; absent: the operator names it. */
  readonly url?: string
  readonly ask: (query: string, count: number, key: string) => Asked
  /** Where the hits are in its answer, and which member of a hit is its text. */
  readonly hits: (answer: { readonly [key: string]: unknown }) => unknown
  readonly text: string
}

const engines: { readonly [name: string]: Engine } = {
  brave: {
    variable: 'BRAVE_API_KEY',
    url: 'https://api.search.brave.com/res/v1/web/search',
    ask: (q, count, key) => ({ search: { q, count: String(count) }, headers: { 'x-subscription-token': key } }),
    hits: ({ web }) => (isObject(web) ? web.results : undefined),
    text: 'description',
  },
  tavily: {
    variable: 'TAVILY_API_KEY',
    url: 'https://api.tavily.com/search',
    ask: (query, count, key) => ({ body: { query, max_results: count }, headers: { authorization: `Bearer ${key}` } }),
    hits: ({ results }) => results,
    text: 'content',
  },
  exa: {
    variable: 'EXA_API_KEY',
    url: 'https://api.exa.ai/search',
    ask: (query, count, key) => ({
      body: { query, numResults: count, contents: { text: { maxCharacters: longestText } } },
      headers: { 'x-api-key': key },
    }),
    hits: ({ results }) => results,
    text: 'text',
  },
  searxng: { variable: 'SEARXNG_URL', ask: (q) => ({ search: { q, format: 'json' } }), hits: ({ results }) => results, text: 'content' },
}

/** The most characters of the title, the address or the text of one hit. */
const longestText = 500

const parameters = objectSchema(
  { query: { type: 'string', minLength: 1, maxLength: 400 }, count: { type: 'integer', minimum: 1, maximum: 10 } },
  'query',
)

/** Returns the tool with the chosen engine, or the first that has its variable; nothing when that has none. WEB_SEARCH_URL replaces its address. */
export function webSearchTools(chosen: string | undefined, env: { readonly [name: string]: string | undefined }) {
  const [name, engine] = Object.entries(engines).find(([name, { variable }]) => (chosen ?? name) === name && env[variable]) ?? []
  const key = engine && env[engine.variable]
  if (name === undefined || engine === undefined || key === undefined) return []
  return [webSearch({ name, engine, key, url: env.WEB_SEARCH_URL || (engine.url ?? `${key.replace(/\/$/, '')}/search`) })]
}

type Searching = { readonly name: string; readonly engine: Engine; readonly key: string; readonly url: string }

/** The gate judges the address that a call asks, as it does for http. */
function webSearch({ name, engine, key, url: base }: Searching) {
  const asked = (query: string, count: number) => {
    const { search, headers, body } = engine.ask(query, count, key)
    const url = search ? `${base}?${new URLSearchParams(search)}` : base
    return { url, method: body ? 'POST' : 'GET', headers: { accept: 'application/json', ...headers }, body: body && JSON.stringify(body) }
  }
  return {
    name: 'web_search',
    description: 'Search the web. Then read a hit with http.',
    parameters,
    risk: 'low',
    timeoutMs: 20_000,
    idempotent: false,
    touches({ query, count }) {
      const { url, method } = asked(textOr(query, ''), Number(count ?? usualCount))
      return [{ kind: 'url', url, method }]
    },
    async run({ query, count = usualCount }, { signal }, { get }) {
      const { url, body, headers, ...request } = asked(query, count)
      const page = await get(url, {
        ...request,
        headers: body ? { ...headers, 'content-type': 'application/json' } : headers,
        body,
        signal,
      })
      if (!page.ok) return refused(page)
      if (page.status >= 400) return fail(`${name} answered ${page.status}: ${page.body.slice(0, 300)}`)
      const answer = parseJson(page.body)
      const hits = isObject(answer) ? engine.hits(answer) : undefined
      if (!Array.isArray(hits)) return fail(`${name} answered without a list of hits: ${page.body.slice(0, 300)}`)
      return done(
        hits
          .slice(0, count)
          .map((hit, at) => shown(hit, at, engine.text))
          .join('\n') || `nothing found for ${query}`,
      )
    },
  } as const satisfies ToolKind<typeof parameters, { readonly get: Get }>
}

const usualCount = 5

function shown(hit: unknown, at: number, text: string): string {
  const line = (member: string) => {
    const value = isObject(hit) ? hit[member] : undefined
    const plain =
      typeof value === 'string'
        ? value
            .replace(/<\/?\w+>/g, '')
            .replace(/\s+/g, ' ')
            .trim()
        : ''
    return plain.length > longestText ? `${plain.slice(0, longestText - 1).toWellFormed()}…` : plain
  }
  return `${at + 1}. ${line('title')}\n   ${line('url')}\n   ${line(text)}`
}
