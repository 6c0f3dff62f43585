/** Splits text into the terms of an index: words of identifiers, without diacritics, stemmed by Porter's algorithm. */

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

/** The stems of words that many requests have, whatever they are about: beside others they count little. */
const softStems = new Set(
  `abl access app ask assist avail base best better check creat current dai detail differ displai explain explor find follow gener good great
  includ info inform interest latest list look offer particular plugin popular possibl provid question recent recommend relat right
  search show specif suggest todai tool top understand variou work`.split(/\s+/),
)

/** Returns how much a word of a query counts. */
export function softness(word: string): number {
  return softStems.has(stem(word)) ? 0.2 : 1
}

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

/** Porter's steps 2 to 4: the least measure of what stays, and what replaces a suffix, longer suffixes first. */
const steps = [
  step(
    1,
    `ational:ate ization:ize iveness:ive fulness:ful ousness:ous tional:tion biliti:ble entli:ent ousli:ous ation:ate alism:al aliti:al
    iviti:ive enci:ence anci:ance izer:ize alli:al ator:ate logi:log bli:ble eli:e`,
  ),
  step(1, 'icate:ic ative: alize:al iciti:ic ical:ic ness: ful:'),
  step(2, 'ement: ance: ence: able: ible: ment: sion:s tion:t ant: ent: ism: ate: iti: ous: ive: ize: al: er: ic: ou:'),
]

function step(least: number, table: string) {
  return { least, suffixes: table.split(/\s+/).map((pair) => pair.split(':')) }
}

/** Returns the stem of an English word in lower case; every other word stays as it is. */
export function stem(word: string): string {
  if (word.length < 3 || !/^[a-z]+$/.test(word)) return word
  let rest = past(word.replace(/(?<=ss|i)es$|(?<!s)s$/, ''))
  if (rest.endsWith('y') && /v/.test(shapeOf(rest.slice(0, -1)))) rest = `${rest.slice(0, -1)}i`
  for (const { least, suffixes } of steps) {
    const [suffix = '', put = ''] = suffixes.find(([end = '']) => rest.endsWith(end)) ?? []
    const start = rest.slice(0, rest.length - suffix.length)
    if (suffix !== '' && measure(`${start}${least > 1 ? put : ''}`) >= least) rest = `${start}${put}`
  }
  const start = rest.slice(0, -1)
  if (rest.endsWith('e')) return measure(start) > 1 || (measure(start) === 1 && !endsShort(start)) ? start : rest
  return rest.endsWith('ll') && measure(start) > 1 ? start : rest
}

function past(word: string): string {
  if (word.endsWith('eed')) return measure(word.slice(0, -3)) > 0 ? word.slice(0, -1) : word
  const rest = word.replace(/(ed|ing)$/, '')
  if (rest === word || !shapeOf(rest).includes('v')) return word
  if (/([^aeioulsz])\1$/.test(rest)) return rest.slice(0, -1)
  return /(at|bl|iz)$/.test(rest) || (measure(rest) === 1 && endsShort(rest)) ? `${rest}e` : rest
}

/** Returns a `v` for each vowel and a `c` for each consonant; y after a consonant is a vowel. */
function shapeOf(word: string): string {
  let shape = ''
  for (const letter of word) shape += 'aeiou'.includes(letter) || (letter === 'y' && shape.endsWith('c')) ? 'v' : 'c'
  return shape
}

/** Counts how often a consonant follows a vowel. */
function measure(word: string): number {
  return shapeOf(word).split('vc').length - 1
}

function endsShort(word: string): boolean {
  return /cvc$/.test(shapeOf(word)) && !/[wxy]$/.test(word)
}
