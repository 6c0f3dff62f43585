/** Finds tools by what somebody intends: local ones, those of MCP servers and of skills. */

import { type Entry, type Hit, paramsOf, type Why } from '../../discovery/hybrid-index.ts'
import { openStoredIndex, type StoreOptions } from '../../discovery/stored-index.ts'
import type { ToolSpec } from '../../runtime/port.ts'
import { isZod, schemaOf, type ZodSchema } from '../agent/agent-api.ts'

/** A tool as models are told of it; `parameters` is a JSON Schema of an object. */
export type ToolSchema = ToolSpec

export type ToolSource = 'local' | 'mcp' | 'skill'

/** `keywords` are further words by which the tool is found. Tools of one name that differ in source or `sourceUrl` are different tools. */
export type IndexedTool = {
  readonly name: string
  readonly description: string
  readonly keywords?: readonly string[]
  readonly source: ToolSource
  readonly sourceUrl?: string
  readonly schema: ToolSchema
}

/** `score` sums 0.5 / (60 + rank) over the legs, and is 1 for the very name; the other two grow with the likeness. */
export type ScoredMatch = { readonly score: number; readonly why: Why } & Readonly<
  Partial<Record<'ftsRank' | 'vectorSimilarity', number | undefined>>
>
export type ToolMatch = ScoredMatch & { readonly tool: IndexedTool }

/** Defaults: 5 hits, of all sources. */
export type SearchOptions = { readonly limit?: number; readonly source?: ToolSource }

export type ToolDiscovery = Awaited<ReturnType<typeof createToolDiscovery>>

/** Opens an index of tools; with `dbPath` it has what was indexed before. @throws Error when that file is not one of ours */
export async function createToolDiscovery(config: StoreOptions = {}) {
  const index = openStoredIndex<Entry & { readonly tool: IndexedTool }>(config)
  const all = () => index.all().map(({ tool }) => tool)
  const bySource = (source: ToolSource) => all().filter((tool) => tool.source === source)
  const indexBatch = (tools: readonly IndexedTool[]) => index.put(tools.map(entryOf))
  return {
    index: (tool: IndexedTool) => indexBatch([tool]),
    indexBatch,
    async search(intent: string, { source, limit }: SearchOptions = {}): Promise<ToolMatch[]> {
      const hits = await index.search(intent, { limit, accept: ({ tool }) => source === undefined || tool.source === source })
      return hits.map((hit) => ({ tool: hit.entry.tool, ...matchOf(hit) }))
    },
    all,
    bySource,
    remove: (name: string) => index.remove(({ tool }) => tool.name === name),
    clearSource: (source: ToolSource) => index.remove(({ tool }) => tool.source === source),
    stats() {
      const [localTools, mcpTools, skillTools] = (['local', 'mcp', 'skill'] as const).map((source) => bySource(source).length)
      return { totalTools: all().length, localTools, mcpTools, skillTools, vectorSearchEnabled: config.embedder !== undefined }
    },
    notices: index.notices,
    close(): void {},
  }
}

function entryOf(tool: IndexedTool) {
  const { name, description = '', keywords = [], source, sourceUrl = '', schema } = tool
  const [params, context] = [paramsOf(schema?.parameters), keywords.join(' ')]
  return { kind: 'tool', source: `${source} ${sourceUrl}`, name, description, params, context, tool }
}

export function matchOf({ score, why }: Hit): ScoredMatch {
  return { score, ftsRank: why.keywords?.score, vectorSimilarity: why.embedding?.score, why }
}

type ZodTool = { readonly name: string; readonly description: string; readonly schema: ZodSchema }

/** Returns the tool as models are told of it: what has a default is not required. @throws Error when `schema` is not a z.object of zod 4 */
export function zodToToolSchema({ name, description, schema }: ZodTool): ToolSchema {
  if (!isZod(schema)) throw new TypeError(`tool "${name}": its parameters must be a z.object of zod 4`)
  return { name, description, parameters: schemaOf(name, schema) }
}
