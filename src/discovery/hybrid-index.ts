/**
 * Finds what fits an intent: BM25 over stemmed words and the likeness of words and letters, both without a model, and vectors of an embedder
 * where there is one; the ranks of these legs are fused. It runs in memory, in Bun and in Node.
 */

import { stemmer } from 'stemmer'

/** Everything that can be found. Kind, source and name identify an entry; `params` and `context` are further text about it. */
export type Entry = { readonly kind: string; readonly source: string; readonly name: string; readonly description: string } & {
  readonly params?: string
  readonly context?: string
}

type Leg = 'keywords' | 'features' | 'embedding'

/** Says why an entry was found: its rank from 1, and its score, in each leg, and the words of the query that it has. */
export type Why = { readonly words: readonly string[] } & { readonly [Name in Leg]?: { readonly rank: number; readonly score: number } }

export type Hit<E extends Entry = Entry> = { readonly entry: E; readonly score: number; readonly why: Why }

/** `limit` is 5 unless given; `accept` filters before the limit; `of` gives the vectors of entries, of the query's length. */
export type Query<E extends Entry> = {
  readonly limit?: number | undefined
  readonly accept?: (entry: E) => boolean
  readonly vectors?: { readonly query: Float32Array; readonly of: (entry: E) => Float32Array | undefined } | undefined
}

/** Gives each field its weight and its usual number of words: a word counts less in a longer text. */
const fields = [
  ['name', 3, 3],
  ['description', 1.5, 15],
  ['params', 0.4, 10],
  ['context', 0.8, 100],
] as const
const [k1, b, rankConstant, perLeg] = [2, 0.4, 60, 50]
const [maxQuery, maxTerms, maxField, maxFeatureText] = [8_192, 64, 65_536, 600]
/** A query finds something when an entry reaches one of them: score, covered share of its words times √words, cosine, cosine. */
const least = { keywords: 5.25, coverage: 0.55, features: 0.25, embedding: 0.4 }
/** An entry counts in a leg from this score on. */
const floors = { keywords: Number.MIN_VALUE, features: 0.1, embedding: 0.4 }

/** The entries that have a term or a feature, by their places, and how much they have of it. */
type Postings = Map<string, Map<number, number>>
type Built<E> = { readonly entries: readonly E[]; readonly words: Postings; readonly features: Postings; readonly norms: Float64Array }

export function createHybridIndex<E extends Entry>() {
  const rows = new Map<string, E>()
  const state: { built?: Built<E> | undefined } = {}
  return {
    /** Adds entries; one of the same kind, source and name is replaced. */
    put(added: Iterable<E>): void {
      for (const entry of added) rows.set(JSON.stringify([entry.kind, entry.source, entry.name]), entry)
      state.built = undefined
    },
    remove(isGone: (entry: E) => boolean): void {
      for (const [key, entry] of rows) if (isGone(entry)) rows.delete(key)
      state.built = undefined
    },
    all: (): readonly E[] => [...rows.values()],
    /** Returns the best first; nothing when nothing is relevant. Ties keep the order in which the entries came. Never throws. */
    search(query: string, options: Query<E> = {}): readonly Hit<E>[] {
      state.built ??= build([...rows.values()])
      return search(state.built, query.slice(0, maxQuery), options)
    },
  }
}

function build<E extends Entry>(entries: readonly E[]): Built<E> {
  const [words, features, norms]: [Postings, Postings, Float64Array] = [new Map(), new Map(), new Float64Array(entries.length)]
  for (const [doc, entry] of entries.entries()) {
    const frequencies = new Map<string, number>()
    for (const [field, weight, usual] of fields) {
      const terms = wordsOf((entry[field] ?? '').slice(0, maxField)).map(stem)
      const share = weight / (1 - b + (b * terms.length) / usual)
      for (const term of terms) frequencies.set(term, (frequencies.get(term) ?? 0) + share)
    }
    for (const [term, frequency] of frequencies) put(words, term, doc, (frequency * (k1 + 1)) / (frequency + k1))
    for (const [feature, weight] of featuresOf(`${entry.name} ${entry.description}`.slice(0, maxFeatureText)))
      put(features, feature, doc, weight)
  }
  for (const posting of features.values()) {
    const idf = rarity(entries.length, posting.size)
    for (const [doc, value] of posting) add(norms, doc, (value * idf) ** 2)
  }
  return { entries, words, features, norms: norms.map(Math.sqrt) }
}

/** Counts words, pairs of words, and runs of three letters. */
function featuresOf(text: string): ReadonlyMap<string, number> {
  const features = new Map<string, number>()
  const count = (feature: string, weight: number) => features.set(feature, (features.get(feature) ?? 0) + weight)
  let before = ''
  for (const word of wordsOf(text)) {
    const [term, letters] = [stem(word), ` ${word.slice(0, 40)} `]
    count(term, 1)
    if (before !== '') count(`${before} ${term}`, 0.5)
    for (let at = 0; at + 3 <= letters.length; at += 1) count(letters.slice(at, at + 3), 0.5)
    before = term
  }
  return features
}

function put(postings: Postings, key: string, doc: number, value: number): void {
  const posting = postings.get(key)
  if (posting) posting.set(doc, value)
  else postings.set(key, new Map([[doc, value]]))
}

function add(sums: Float64Array, at: number, value: number): void {
  sums[at] = (sums[at] ?? 0) + value
}

function rarity(all: number, having: number): number {
  return Math.log(1 + (all - having + 0.5) / (having + 0.5))
}

function search<E extends Entry>(index: Built<E>, query: string, options: Query<E>): readonly Hit<E>[] {
  const { limit = 5, accept = () => true, vectors } = options
  const isOpen = index.entries.map(accept)
  const { scores, coverage, asked } = keywordScores(index, query)
  const legs = { keywords: scores, features: featureScores(index, query), embedding: vectorScores(index.entries, vectors) }
  const hits = new Map<number, { score: number; why: { [Name in Leg]?: { rank: number; score: number } } }>()
  let isRelevant = coverage.some((share, doc) => isOpen[doc] && share >= least.coverage)
  for (const leg of ['keywords', 'features', 'embedding'] as const)
    for (const [at, doc] of bestOf(legs[leg], isOpen, floors[leg]).entries()) {
      const [hit, score] = [hits.get(doc) ?? { score: 0, why: {} }, legs[leg][doc] ?? 0]
      isRelevant ||= score >= least[leg]
      hit.score += 0.5 / (rankConstant + at + 1)
      hit.why[leg] = { rank: at + 1, score }
      hits.set(doc, hit)
    }
  const name = query.trim().toLowerCase()
  for (const [doc, entry] of index.entries.entries())
    if (isOpen[doc] && entry.name.toLowerCase() === name) hits.set(doc, { why: {}, ...hits.get(doc), score: 1 })
  return [...hits]
    .filter(([, { score }]) => isRelevant || score === 1)
    .sort(([a, x], [z, y]) => y.score - x.score || a - z)
    .slice(0, limit)
    .map(([doc, { score, why }]) => {
      const words = asked.flatMap(({ word, posting }) => (posting.has(doc) ? [word] : []))
      return { entry: index.entries[doc] as E, score, why: { words, ...why } }
    })
}

/** Returns the entries with the highest scores, the best first; equal ones stay in their order. */
function bestOf(scores: Float64Array, isOpen: readonly boolean[], floor: number): readonly number[] {
  const found = [...scores.keys()].filter((doc) => isOpen[doc] && (scores[doc] ?? 0) >= floor)
  return found.sort((a, z) => (scores[z] ?? 0) - (scores[a] ?? 0)).slice(0, perLeg)
}

/** A word that no entry has stands for the first one that it begins. */
function keywordScores<E>({ entries, words }: Built<E>, query: string) {
  const [scores, coverage] = [new Float64Array(entries.length), new Float64Array(entries.length)]
  const terms = [...new Map(wordsOf(query).map((word) => [stem(word), word]))].slice(0, maxTerms)
  const asked = terms.map(([term, word]) => {
    const begun = words.has(term) || term.length < 4 ? term : [...words.keys()].find((known) => known.startsWith(term))
    const posting = words.get(begun ?? '') ?? new Map<number, number>()
    return { word, posting, weight: rarity(entries.length, Math.max(posting.size, 1)) }
  })
  const total = asked.reduce((sum, { weight }) => sum + weight, 0) / Math.sqrt(asked.length)
  for (const { weight, posting } of asked)
    for (const [doc, value] of posting) {
      add(scores, doc, weight * value)
      add(coverage, doc, (weight / total) * Math.min(1, Math.max(least.coverage, value / 1.5)))
    }
  return { scores, coverage, asked }
}

function featureScores<E>({ entries, features, norms }: Built<E>, query: string): Float64Array {
  const scores = new Float64Array(entries.length)
  let norm = 0
  for (const [feature, value] of featuresOf(query)) {
    const posting = features.get(feature) ?? new Map<number, number>()
    const weight = value * rarity(entries.length, posting.size) ** 2
    norm += value * weight
    for (const [doc, own] of posting) add(scores, doc, own * weight)
  }
  return scores.map((score, doc) => score / (Math.sqrt(norm) * (norms[doc] ?? 0) || 1))
}

function vectorScores<E extends Entry>(entries: readonly E[], vectors: Query<E>['vectors']): Float64Array {
  const dot = (a: Float32Array, z: Float32Array) => a.reduce((sum, value, at) => sum + value * (z[at] ?? 0), 0)
  return Float64Array.from(vectors ? entries : [], (entry) => {
    const [query, own] = [vectors?.query, vectors?.of(entry)]
    return query && own?.length === query.length ? dot(query, own) / (Math.sqrt(dot(query, query) * dot(own, own)) || 1) : 0
  })
}

/** Returns the names and descriptions of a schema's parameters, at any depth; each object is visited once, so that it may have cycles. */
export function paramsOf(schema: unknown): string {
  const words: string[] = []
  const queue = new Set([schema])
  for (const value of queue) {
    if (typeof value !== 'object' || value === null || queue.size > 2_000) continue
    const { properties, description } = value as { readonly [key: string]: unknown }
    if (typeof properties === 'object') words.push(...Object.keys(properties ?? {}).slice(0, 500))
    if (typeof description === 'string') words.push(description)
    for (const inner of Object.values(value)) queue.add(inner)
  }
  return words.join(' ')
}

/** Function words of English, and the words of a request: they say nothing about a topic. */
const stopWords = new Set(
  `a about above after again against all also am an and any anyone anything are as at be because been before being below between both but by
  can could did do does doing don down during each else even ever every few for from further get give go got had has have having he help her
  here hers him his how i if in into is it its itself just know let like ll lot made make many may me might mine more most much must my myself
  need needs no nor not nothing now of off on once one only or other our ours out over own please re s same see she should show so some
  someone something such t take tell than thank thanks that the their theirs them then there these they thing things this those through to
  too try under until up us use using ve very want wants was way we well were what when where which while who whom whose why will with within
  without would you your yours yourself`.split(/\s+/),
)

/** Scripts that put no spaces between words. */
const unspaced = /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmer}]/u

/** Returns the words of a text in lower case and in order, without stop words; `getHTTPStatus` gives its parts and the whole. */
function wordsOf(text: string): readonly string[] {
  const runs =
    text
      .normalize('NFKD')
      .replaceAll(/\p{M}+/gu, '')
      .match(/[\p{L}\p{N}]+/gu) ?? []
  const words = runs.flatMap((run) => {
    if (unspaced.test(run)) return [...run].map((letter, at, all) => `${letter}${all[at + 1] ?? ''}`)
    const parts = run.match(/\p{Lu}+(?!\p{Ll})|\p{Lu}?[^\p{Lu}\p{N}]+|\p{N}+/gu) ?? []
    return parts.length > 1 ? [...parts, run] : [run]
  })
  return words.map((word) => word.toLowerCase()).filter((word) => !stopWords.has(word) && !/^[a-z]$/.test(word))
}

/** Returns the stem of an English word in lower case; every other word stays as it is. */
function stem(word: string): string {
  return /^[a-z]{3,}$/.test(word) ? stemmer(word) : word
}
