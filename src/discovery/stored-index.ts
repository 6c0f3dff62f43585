/** Joins the index with the vectors of an embedder, and keeps both in a file. */

import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { errorText, unlessMissing } from '../kit/errors.ts'
import { isObject, parseJson } from '../kit/json.ts'
import { createHybridIndex, type Entry, type Hit, type Query } from './hybrid-index.ts'

/** Computes a vector of `dimensions` numbers for each text; it may reject. Vectors of another `model` are never compared with its own. */
export type Embedder = {
  readonly dimensions: number
  readonly model?: string
  embed(texts: readonly string[]): Promise<readonly ArrayLike<number>[]>
}

/** Without an embedder words and features alone are compared; without `dbPath`, or with ":memory:", nothing is kept. */
export type StoreOptions = { readonly embedder?: Embedder | undefined; readonly dbPath?: string | undefined }

/** `vectors` are pairs of a text and the vector of the model. */
type SavedVectors = { readonly model?: string; readonly dimensions?: number; readonly vectors?: readonly [string, readonly number[]][] }
type Saved<E> = SavedVectors & { readonly version: 1; readonly entries: readonly E[] }

/** @throws Error when the file is not one of ours, or cannot be read */
export function openStoredIndex<E extends Entry>({ embedder, dbPath = ':memory:' }: StoreOptions) {
  const saved = dbPath === ':memory:' ? undefined : readSaved<E>(dbPath)
  const vectors = embedder && openVectors(embedder, saved)
  const index = createHybridIndex<E>()
  index.put(saved?.entries ?? [])

  function save(): void {
    if (dbPath === ':memory:') return
    const draft = `${dbPath}.${process.pid}`
    mkdirSync(dirname(dbPath), { recursive: true, mode: 0o700 })
    writeFileSync(draft, JSON.stringify({ ...saved, ...vectors?.saved(), version: 1, entries: index.all() }), { mode: 0o600 })
    renameSync(draft, dbPath)
  }

  async function put(entries: readonly E[]): Promise<void> {
    index.put(entries)
    await vectors?.keep(index.all().map(textOf))
    save()
  }

  return {
    all: index.all,
    put,
    remove(isGone: (entry: E) => boolean): void {
      index.remove(isGone)
      save()
    },
    /** Puts these in place of all others. */
    replace(entries: readonly E[]): Promise<void> {
      index.remove(() => true)
      return put(entries)
    },
    async search(query: string, options: Omit<Query<E>, 'vectors'> = {}): Promise<readonly Hit<E>[]> {
      const vector = await vectors?.of(query)
      return index.search(
        query,
        vector ? { ...options, vectors: { query: vector, of: (entry) => vectors?.known.get(textOf(entry)) } } : options,
      )
    },
    /** Names what is wrong with the embedder or its vectors; the search does without them. */
    notices: (): readonly string[] => [...(vectors?.notices ?? [])],
  }
}

const [batch, maxText] = [64, 8_192]

function openVectors({ model = '', dimensions, embed }: Embedder, saved: SavedVectors = {}) {
  const notices = new Set<string>()
  const known = new Map<string, Float32Array>()
  const isOurs = saved.model === model && saved.dimensions === dimensions
  for (const [text, numbers] of isOurs ? (saved.vectors ?? []) : []) known.set(text, Float32Array.from(numbers))
  if (!isOurs && saved.vectors?.length)
    notices.add(
      `${saved.vectors.length} vectors of the model "${saved.model}" with ${saved.dimensions} dimensions are dropped: now it is "${model}" with ${dimensions}`,
    )

  /** Returns nothing where the embedder fails, or its vector is not usable. Never rejects. */
  async function vectorsOf(texts: readonly string[]): Promise<readonly (Float32Array | undefined)[]> {
    try {
      const given = await embed(texts.map((text) => text.slice(0, maxText)))
      return texts.map((_, at) => {
        const vector = Float32Array.from(given[at] ?? [])
        if (vector.length === dimensions && vector.every(Number.isFinite)) return vector
        notices.add(`a vector is dropped: it has ${vector.length} numbers, not ${dimensions}, or one that is not finite`)
        return undefined
      })
    } catch (error) {
      notices.add(`the embedder failed: ${errorText(error)}`)
      return []
    }
  }

  return {
    known,
    notices,
    /** Embeds those of the texts that have no vector, and forgets all others. */
    async keep(texts: readonly string[]): Promise<void> {
      const wanted = new Set(texts)
      for (const text of known.keys()) if (!wanted.has(text)) known.delete(text)
      const missing = [...wanted].filter((text) => !known.has(text))
      for (let at = 0; at < missing.length; at += batch) {
        const vectors = await vectorsOf(missing.slice(at, at + batch))
        if (vectors.length === 0) return
        vectors.forEach((vector, place) => void (vector && known.set(missing[at + place] ?? '', vector)))
      }
    },
    of: async (query: string) => (known.size === 0 ? undefined : (await vectorsOf([query]))[0]),
    saved: (): SavedVectors => ({ model, dimensions, vectors: [...known].map(([text, vector]) => [text, [...vector]]) }),
  }
}

function textOf({ name, description }: Entry): string {
  return `${name}: ${description}`
}

function readSaved<E>(path: string): Saved<E> | undefined {
  const text = unlessMissing(() => readFileSync(path, 'utf8'))
  const value = text === undefined ? { version: 1, entries: [] } : parseJson(text)
  if (isSaved<E>(value)) return value
  throw new Error(`dbPath: ${JSON.stringify(path)} is not a file of this index; name another file, or remove it`)
}

function isSaved<E>(value: unknown): value is Saved<E> {
  return isObject(value) && value.version === 1 && Array.isArray(value.entries)
}
