/** Splits text into the terms of an index: words of identifiers, without diacritics, stemmed by Porter's algorithm. */

import { stemmer } from 'stemmer'

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
export function wordsOf(text: string): readonly string[] {
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
export function stem(word: string): string {
  return /^[a-z]{3,}$/.test(word) ? stemmer(word) : word
}
