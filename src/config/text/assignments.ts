/** Reads files of `NAME=value` lines in shell syntax as text; nothing in them is executed. */

export type Assignment = { readonly name: string; readonly value: string /** From 1. */; readonly line: number }

/** A line that is not an assignment; `why` never quotes the line, because it may be a secret. */
export type OddLine = { readonly line: number; readonly why: string }

export type Assignments = { readonly assignments: readonly Assignment[]; readonly odd: readonly OddLine[] }

/**
 * Reads `export`, quotes, backslashes and comments as a shell does. Leaves `$NAME`, `$(…)` and backticks unchanged. Reports any other shell
 * syntax (a command, a list, an unclosed quote) as odd. Keeps the order and all repeats.
 */
export function readAssignments(text: string): Assignments {
  const assignments: Assignment[] = []
  const odd: OddLine[] = []
  for (const [index, raw] of text
    .replace(/^\ufeff/, '')
    .split('\n')
    .entries()) {
    const found = readLine(raw.replace(/\r$/, '').trim())
    if (typeof found === 'string') odd.push({ line: index + 1, why: found })
    else if (found) assignments.push({ ...found, line: index + 1 })
  }
  return { assignments, odd }
}

/** Returns undefined for an empty line or a comment, and a string that describes the error for an invalid line. */
function readLine(line: string): { readonly name: string; readonly value: string } | string | undefined {
  if (line === '' || line.startsWith('#')) return undefined
  const [, name, rest] = /^(?:export[ \t]+)?([A-Za-z_]\w*)=(.*)$/s.exec(line) ?? []
  if (name === undefined || rest === undefined) return 'is not an assignment NAME=value; nothing is run from this file'
  const read = readValue(rest)
  return 'why' in read ? read.why : { name, value: read.value }
}

/** Joins adjacent quoted and unquoted pieces, as in `a"b c"'d'`. */
function readValue(text: string): { readonly value: string } | { readonly why: string } {
  let value = ''
  for (let rest = text; ; ) {
    if (rest === '' || /^[ \t]+(#|$)/.test(rest)) return { value }
    const next = piece(rest)
    if (next === undefined) return { why: whatStops(rest) }
    value += next.text
    rest = rest.slice(next.length)
  }
}

const pieces: readonly (readonly [form: RegExp, read: (inside: string) => string])[] = [
  [/^'([^']*)'/, (inside) => inside],
  [/^"((?:[^"\\]|\\.)*)"/s, (inside) => inside.replace(/\\(["\\$`])/g, '$1')],
  [/^(\$\([^()]*\)|`[^`]*`)/, (inside) => inside],
  [/^\\(.)/s, (inside) => inside],
  [/^([^\s'"\\`;&|<>()]+)/, (inside) => inside],
]

function piece(rest: string): { readonly text: string; readonly length: number } | undefined {
  for (const [form, read] of pieces) {
    const [whole, inside] = form.exec(rest) ?? []
    if (whole !== undefined && inside !== undefined) return { text: read(inside), length: whole.length }
  }
  return undefined
}

function whatStops(rest: string): string {
  if (/^['"]/.test(rest)) return 'has a quote that is not closed on the same line'
  if (/^\s/.test(rest)) return 'has more words after the value; put a value with spaces into quotes'
  return `has an unquoted ${JSON.stringify(rest[0])}; put the value into quotes. Nothing is run from this file`
}
