/** Exports discovery: `import { createToolDiscovery } from 'braidclaw/discovery'`. It runs in Bun and in Node, and needs no model. */

import type { Embedder } from '../discovery/stored-index.ts'
import { isObject, parseJson } from '../kit/json.ts'
import { createProviderFetch } from '../workspace/net/provider-fetch.ts'

export type { Why } from '../discovery/hybrid-index.ts'
export * from '../discovery/markdown-links.ts'
export type { SkillMetadata } from '../discovery/skill-files.ts'
export type { Embedder, StoreOptions } from '../discovery/stored-index.ts'
export type { Reference, ReferenceMatch, RulesDiscovery, RulesDiscoveryConfig } from './discovery/rules-discovery.ts'
export { createRulesDiscovery } from './discovery/rules-discovery.ts'
export type { SkillDiscovery, SkillDiscoveryConfig, SkillMatch } from './discovery/skill-discovery.ts'
export { createSkillDiscovery } from './discovery/skill-discovery.ts'
export type { IndexedTool, SearchOptions, ToolDiscovery, ToolMatch, ToolSchema, ToolSource } from './discovery/tool-discovery.ts'
export { createToolDiscovery, zodToToolSchema } from './discovery/tool-discovery.ts'

/** `baseUrl` includes the version: `http://127.0.0.1:11434/v1`. */
export type EmbeddingServer = { readonly baseUrl: string; readonly model: string; readonly apiKey?: string | undefined }

const timeoutMs = 60_000

/** Asks a server with POST /v1/embeddings for a first vector. Requests go only to its origin. @throws Error that says what the server answered */
export async function createEmbedder({ baseUrl, model, apiKey }: EmbeddingServer): Promise<Embedder> {
  const [url, send] = [`${baseUrl.replace(/\/+$/, '')}/embeddings`, createProviderFetch({ baseUrl })]

  async function embed(input: readonly string[]): Promise<readonly (readonly number[])[]> {
    const headers = { 'content-type': 'application/json', ...(apiKey ? { authorization: `Bearer ${apiKey}` } : {}) }
    const body = JSON.stringify({ model, input })
    const answer = await send(url, { method: 'POST', headers, body, signal: AbortSignal.timeout(timeoutMs) })
    const text = await answer.text()
    const found = parseJson(text)
    const rows: readonly unknown[] = answer.ok && isObject(found) && Array.isArray(found.data) ? found.data : []
    const vectors = rows.filter(isVector).sort((a, z) => (a.index ?? 0) - (z.index ?? 0))
    if (vectors.length === input.length) return vectors.map(({ embedding }) => embedding)
    throw new Error(`${url} answered ${answer.status} without ${input.length} vectors: ${text.slice(0, 200)}`)
  }

  return { model, embed, dimensions: (await embed(['dimensions']))[0]?.length ?? 0 }
}

function isVector(row: unknown): row is { readonly index?: number; readonly embedding: readonly number[] } {
  return isObject(row) && Array.isArray(row.embedding) && row.embedding.every((one) => typeof one === 'number')
}
