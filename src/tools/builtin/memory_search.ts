/** memory_search: what was said before, in this conversation and others. */

import type { Tool } from '../../runtime/port.ts'
import { count, done, fail, text } from '../input.ts'
import { specs } from '../specs.ts'

/** `at` in milliseconds since 1970. */
export type Remembered = { readonly conversationId: string; readonly role: string; readonly at: number; readonly snippet: string }

export type Search = (request: { readonly query: string; readonly limit: number }) => readonly Remembered[] | Promise<readonly Remembered[]>

export function memorySearchTool({ search }: { readonly search: Search }): Tool {
  return {
    ...specs.memory_search,
    touches: () => [],
    async invoke(input) {
      const query = text(input, 'query')
      if (query.trim() === '') return fail('the query is empty; give one or more words that were said')
      const hits = await search({ query, limit: count(input, 'limit', 10) })
      if (hits.length === 0) return done(`nothing was said that matches ${JSON.stringify(query)}; try fewer or other words`, { hits: 0 })
      return done(hits.map(line).join('\n'), { hits: hits.length })
    },
  }
}

function line({ conversationId, role, at, snippet }: Remembered): string {
  const day = new Date(at).toISOString().slice(0, 16).replace('T', ' ')
  return `[${day} ${conversationId} ${role}] ${snippet.replaceAll(/\s+/g, ' ')}`
}
