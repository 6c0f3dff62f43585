/** Defines the tool memory_search, which searches the messages of this conversation and of earlier ones. */

import { objectSchema } from '../../kit/json.ts'
import { done, fail, type ToolKind } from '../tool-kind.ts'

/** `at` is in milliseconds since 1970. */
export type Remembered = { readonly conversationId: string; readonly role: string; readonly at: number; readonly snippet: string }

export type Search = (request: { readonly query: string; readonly limit: number }) => readonly Remembered[] | Promise<readonly Remembered[]>

const parameters = objectSchema({ query: { type: 'string' }, limit: { type: 'integer', minimum: 1, maximum: 50 } }, 'query')

export const memorySearch = {
  name: 'memory_search',
  description: 'Search past conversations by words.',
  parameters,
  risk: 'low',
  timeoutMs: 30_000,
  idempotent: true,
  touches: () => [],
  async run({ query, limit = 10 }, _context, { search }) {
    if (query.trim() === '') return fail('the query is empty; give one or more words that were said')
    const hits = await search({ query, limit })
    if (hits.length === 0) return done(`nothing was said that matches ${JSON.stringify(query)}; try fewer or other words`, { hits: 0 })
    return done(hits.map(line).join('\n'), { hits: hits.length })
  },
} as const satisfies ToolKind<typeof parameters, { readonly search: Search }>

function line({ conversationId, role, at, snippet }: Remembered): string {
  const day = new Date(at).toISOString().slice(0, 16).replace('T', ' ')
  return `[${day} ${conversationId} ${role}] ${snippet.replaceAll(/\s+/g, ' ')}`
}
