/** Gives an earlier answer again for a question that means the same. Exported as `braidclaw/cache`. */

import { errorText } from '../kit/errors.ts'
import type { AgentEvent, Part } from '../runtime/event.ts'
import { createSaver, type SaveOptions } from './saver.ts'

/** `cachedAt` counts milliseconds since 1970; `embedding` is empty in a cache without an embedder. */
export type SerializableCacheEntry = Omit<CacheEntry, 'similarity'> & { id: number; embedding: number[] }
export type CacheEntry = { query: string; response: string; cachedAt: number; hitCount: number; similarity?: number }
export type CacheLookupResult = { hit: boolean; entry?: CacheEntry; lookupMs: number }
export type CacheStats = { totalEntries: number; totalHits: number; totalMisses: number; hitRate: number; avgSimilarity: number }

export type SemanticCacheConfig = SaveOptions<SerializableCacheEntry[]> & {
  /** Returns one vector for each text, all of one length. Absent: a question matches only the same text, white space aside. */
  embedder?: { embed(texts: readonly string[]): Promise<readonly ArrayLike<number>[]> }
  /** The least cosine similarity of a hit (default: 0.85). */
  similarityThreshold?: number
  /** Beyond it the entry that was used longest ago goes (default: 1,000). */
  maxEntries?: number
  /** Milliseconds until an entry expires (default: a day). */
  ttlMs?: number
  initialEntries?: SerializableCacheEntry[]
}

/** A text, the response of a model, or all events of a turn. */
export type CacheableAnswer = string | { readonly parts: readonly Part[] } | readonly AgentEvent[]

export type SemanticCache = ReturnType<typeof createSemanticCache>

/** @throws Error that lists everything that is wrong with `initialEntries` */
export function createSemanticCache(config: SemanticCacheConfig = {}) {
  const { embedder, similarityThreshold = 0.85, maxEntries = 1_000, ttlMs = 86_400_000, initialEntries = [] } = config
  /** By normalised text; the entry that was used last stands last. */
  const entries = new Map<string, SerializableCacheEntry>()
  const counts = { hits: 0, misses: 0, similarity: 0, nextId: 1, dimensions: 0 }
  const { save, changed } = createSaver(config, () => structuredClone([...entries.values()]))
  const wrong = initialEntries.flatMap((entry, at) => {
    try {
      if (typeof entry.query !== 'string' || typeof entry.response !== 'string' || !Number.isFinite(entry.cachedAt))
        throw new TypeError('needs the texts "query" and "response" and the time "cachedAt"')
      put({ ...entry, embedding: entry.embedding?.length ? checked(entry.embedding) : [] })
      return []
    } catch (error) {
      return [`initialEntries[${at}]: ${errorText(error)}`]
    }
  })
  if (wrong.length > 0) throw new Error(`semantic cache: ${wrong.join('; ')}`)

  function checked(embedding: ArrayLike<number> = []): number[] {
    const numbers = Array.from(embedding)
    const odd = numbers.find((each) => !Number.isFinite(each))
    if (odd !== undefined) throw new TypeError(`the embedding has ${odd} in it; only finite numbers can be compared`)
    if (!numbers.some((each) => each !== 0)) throw new TypeError('the embedding is empty or zero, so nothing is similar to it')
    counts.dimensions ||= numbers.length
    const sizes = `${numbers.length} dimensions, those in the cache ${counts.dimensions}`
    if (counts.dimensions !== numbers.length) throw new TypeError(`the embedding has ${sizes}; clear it for another model`)
    return numbers
  }

  function put(entry: SerializableCacheEntry): void {
    const key = normalised(entry.query)
    entries.delete(key)
    entries.set(key, entry)
    counts.nextId = Math.max(counts.nextId, entry.id + 1)
    const [oldest = ''] = entries.keys()
    if (entries.size > maxEntries) entries.delete(oldest)
  }

  /** @returns how many entries it removed */
  function clearExpired(): number {
    const old = [...entries].filter(([, { cachedAt }]) => Date.now() - cachedAt >= ttlMs)
    for (const [key] of old) entries.delete(key)
    if (old.length > 0) changed()
    return old.length
  }

  async function find(query: string): Promise<{ readonly entry: SerializableCacheEntry; readonly similarity: number } | undefined> {
    const same = entries.get(normalised(query))
    if (same || !embedder || entries.size === 0) return same && { entry: same, similarity: 1 }
    const embedding = checked((await embedder.embed([query]))[0])
    const all = Array.from(entries.values(), (entry) => ({ entry, similarity: cosine(embedding, entry.embedding) }))
    const best = all.reduce((best, each) => (each.similarity > best.similarity ? each : best))
    return best.similarity >= similarityThreshold ? best : undefined
  }

  /** @throws TypeError when the embedder returns something else than finite numbers, or another count of them than before */
  async function lookup(query: string): Promise<CacheLookupResult> {
    const began = performance.now()
    clearExpired()
    const found = await find(query)
    const lookupMs = performance.now() - began
    if (!found) counts.misses++
    if (!found) return { hit: false, lookupMs }
    const { similarity } = found
    const { id, embedding, ...entry } = { ...found.entry, hitCount: found.entry.hitCount + 1 }
    put({ ...entry, id, embedding })
    counts.hits++
    counts.similarity += similarity
    changed()
    return { hit: true, entry: { ...entry, similarity }, lookupMs }
  }

  /** Stores no response with tool calls, and no turn that ran a tool or did not end well: a repeated answer would not repeat the effect. */
  async function store(query: string, answer: CacheableAnswer): Promise<void> {
    const { text, hasEffects } = read(answer)
    if (hasEffects) return
    const embedding = embedder ? checked((await embedder.embed([query]))[0]) : []
    put({ id: counts.nextId, query, response: text, cachedAt: Date.now(), hitCount: 0, embedding })
    changed()
  }

  return {
    lookup,
    store,
    /** Looks the question up, else computes the answer and stores it if it can be stored. */
    async getOrCompute(query: string, compute: () => Promise<CacheableAnswer>): Promise<{ response: string; cached: boolean }> {
      const { entry } = await lookup(query)
      if (entry) return { response: entry.response, cached: true }
      const answer = await compute()
      await store(query, answer)
      return { response: read(answer).text, cached: false }
    },
    stats(): CacheStats {
      const { hits: totalHits, misses: totalMisses, similarity } = counts
      const hitRate = totalHits / (totalHits + totalMisses || 1)
      return { totalEntries: entries.size, totalHits, totalMisses, hitRate, avgSimilarity: similarity / (totalHits || 1) }
    },
    clear(): void {
      entries.clear()
      Object.assign(counts, { hits: 0, misses: 0, similarity: 0, dimensions: 0 })
      changed()
    },
    clearExpired,
    persist: (): void | Promise<void> => save(),
  }
}

function normalised(query: string): string {
  return query.normalize('NFC').trim().replace(/\s+/g, ' ')
}

/** Returns -1 for vectors of different lengths. */
function cosine(a: readonly number[], b: readonly number[]): number {
  const dot = (x: readonly number[], y: readonly number[]) => x.reduce((sum, each, at) => sum + each * (y[at] ?? 0), 0)
  return a.length === b.length ? dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b)) : -1
}

function read(answer: CacheableAnswer): { readonly text: string; readonly hasEffects: boolean } {
  if (typeof answer === 'string') return { text: answer, hasEffects: false }
  if ('parts' in answer) {
    const text = answer.parts.map((part) => (part.type === 'text' ? part.text : '')).join('')
    return { text, hasEffects: answer.parts.some(({ type }) => type === 'call') }
  }
  const end = answer.at(-1)
  const isWell = end?.type === 'done' && end.stopReason === 'end_turn' && end.result !== undefined
  return { text: isWell ? (end.result ?? '') : '', hasEffects: !isWell || answer.some(({ type }) => type === 'tool_use') }
}
