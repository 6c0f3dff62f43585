/** Expands braces as bash does, in text without quotes and expansions. */

const limit = 256

/** `{a,b}` → `a`, `b`; `{1..3}` → `1`, `2`, `3`. Undefined when the text is not plain enough or makes too many words. */
export function expandBrace(text: string): readonly string[] | undefined {
  if (!/^\{[\w.,/@%+:*?{}=-]*\}$/.test(text)) return
  const items = splitItems(text.slice(1, -1))
  const words = items.length > 1 ? all(items.map(expandText)) : sequence(items[0] ?? '')
  return words && words.length <= limit ? words : undefined
}

/** Concatenates the lists; undefined if one of them is undefined. */
function all(lists: readonly (readonly string[] | undefined)[]): readonly string[] | undefined {
  const known = lists.filter((list) => list !== undefined)
  return known.length === lists.length ? known.flat() : undefined
}

/** Expands text with any number of braces. */
function expandText(text: string): readonly string[] | undefined {
  const open = text.indexOf('{')
  if (open < 0) return [text]
  const close = closing(text, open)
  const middle = close < 0 ? undefined : expandBrace(text.slice(open, close + 1))
  const tails = close < 0 ? undefined : expandText(text.slice(close + 1))
  if (!middle || !tails || middle.length * tails.length > limit) return
  return middle.flatMap((word) => tails.map((tail) => text.slice(0, open) + word + tail))
}

function closing(text: string, open: number): number {
  let depth = 0
  for (let at = open; at < text.length; at++) {
    if (text[at] === '{') depth++
    if (text[at] === '}' && --depth === 0) return at
  }
  return -1
}

function splitItems(text: string): readonly string[] {
  const items: string[] = []
  let depth = 0
  let start = 0
  for (let at = 0; at < text.length; at++) {
    if (text[at] === '{') depth++
    if (text[at] === '}') depth--
    if (text[at] === ',' && depth === 0) {
      items.push(text.slice(start, at))
      start = at + 1
    }
  }
  return [...items, text.slice(start)]
}

function sequence(text: string): readonly string[] | undefined {
  const [, from = '', to = '', by] = /^(-?\d{1,9})\.\.(-?\d{1,9})(?:\.\.(-?\d{1,9}))?$/.exec(text) ?? []
  if (from !== '') return numbers(from, to, Number(by ?? 1))
  const [, first, last] = /^([a-z])\.\.([a-z])$|^([A-Z])\.\.([A-Z])$/.exec(text)?.filter((part) => part !== undefined) ?? []
  if (first === undefined || last === undefined) return
  return range(first.charCodeAt(0), last.charCodeAt(0), 1)?.map((code) => String.fromCharCode(code))
}

function numbers(from: string, to: string, by: number): readonly string[] | undefined {
  const padded = [from, to].some((text) => /^-?0\d/.test(text))
  const width = padded ? Math.max(from.length, to.length) : 0
  const spell = (value: number) => (value < 0 ? `-${String(-value).padStart(width - 1, '0')}` : String(value).padStart(width, '0'))
  return range(Number(from), Number(to), Math.abs(by) || 1)?.map(spell)
}

function range(from: number, to: number, by: number): readonly number[] | undefined {
  const count = Math.floor(Math.abs(to - from) / by) + 1
  if (count > limit) return
  return Array.from({ length: count }, (_, index) => from + (from <= to ? 1 : -1) * by * index)
}
