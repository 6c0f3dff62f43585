/** Joins the index with the vectors of an embedder, and keeps both in a file. */

import { readFileSync } from 'node:fs'
import { errorText, unlessMissing } from '../kit/errors.ts'
import { replaceFile } from '../kit/files.ts'
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
type Saved<E> = { readonly version: 1; readonly entries: readonly E[] } & Pick<Partial<Embedder>, 'model' | 'dimensions'> & {
    readonly vectors?: readonly [string, readonly number[]][]
  }

const [batch, maxText] = [64, 8_192]

/** @throws Error when the file is not one of ours, or cannot be read */
export function openStoredIndex<E extends Entry>({ embedder, dbPath = ':memory:' }: StoreOptions) {
  const saved: Saved<E> = dbPath === ':memory:' ? { version: 1, entries: [] } : readSaved(dbPath)
  const { model = '', dimensions } = embedder ?? saved
  const isOurs = saved.model === model && saved.dimensions === dimensions
  const vectors = new Map<string, Float32Array>((isOurs ? saved.vectors : [])?.map(([text, numbers]) => [text, Float32Array.from(numbers)]))
  const notices = new Set<string>()
  const index = createHybridIndex<E>()
  index.put(saved.entries)

  function save(): void {
    if (dbPath === ':memory:') return
    const content = { version: 1, entries: index.all(), model, dimensions, vectors: [...vectors].map(([text, one]) => [text, [...one]]) }
    replaceFile(dbPath, JSON.stringify(content))
  }

  /** Leaves out a vector that is not usable, and all further ones where the embedder fails. Never rejects. */
  async function vectorsOf(texts: readonly string[]): Promise<ReadonlyMap<string, Float32Array>> {
    const found = new Map<string, Float32Array>()
    try {
      for (let at = 0; embedder && at < texts.length; at += batch) {
        const given = await embedder.embed(texts.slice(at, at + batch).map((text) => text.slice(0, maxText)))
        for (const [place, text] of texts.slice(at, at + batch).entries()) {
          const vector = Float32Array.from(given[place] ?? [])
          if (vector.length === dimensions && vector.every(Number.isFinite)) found.set(text, vector)
          else notices.add(`a vector is dropped: it has ${vector.length} numbers, not ${dimensions}, or one that is not finite`)
        }
      }
    } catch (error) {
      notices.add(`the embedder failed: ${errorText(error)}`)
    }
    return found
  }

  async function put(entries: readonly E[]): Promise<void> {
    index.put(entries)
    const texts = new Set(index.all().map(textOf))
    for (const text of vectors.keys()) if (!texts.has(text)) vectors.delete(text)
    for (const [text, vector] of await vectorsOf([...texts].filter((text) => !vectors.has(text)))) vectors.set(text, vector)
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
      const vector = vectors.size === 0 ? undefined : (await vectorsOf([query])).get(query)
      return index.search(query, { ...options, vectors: vector && { query: vector, of: (entry) => vectors.get(textOf(entry)) } })
    },
    /** Names what is wrong with the embedder or its vectors; the search does without them. */
    notices: (): readonly string[] => [...notices],
  }
}

function textOf({ name, description }: Entry): string {
  return `${name}: ${description}`
}

function readSaved<E>(path: string): Saved<E> {
  const text = unlessMissing(() => readFileSync(path, 'utf8'))
  const value = text === undefined ? { version: 1, entries: [] } : parseJson(text)
  if (isObject(value) && value.version === 1 && Array.isArray(value.entries)) return value as Saved<E>
  throw new Error(`dbPath: ${JSON.stringify(path)} is not a file of this index; name another file, or remove it`)
}
