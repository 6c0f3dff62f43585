/** Reads the imports of a file: of TypeScript and JavaScript as the parser finds them, of other languages as languages.ts does. */

import { attempt, errorText } from '../../kit/errors.ts'
import { memo } from '../../kit/lazy.ts'
import { languageOf } from './languages.ts'

/** `line` counts from 1. The specifier of an import whose name is known only at run time is empty. */
export type Import = { readonly specifier: string; readonly line: number; readonly typeOnly: boolean }

/** `problem` says why the imports are not known. */
export type ReadImports = { readonly imports: readonly Import[]; readonly problem?: string }

/** Tells whether the imports of such a file are read. */
export function isCode(path: string): boolean {
  return /\.[mc]?[tj]sx?$/i.test(path) || languageOf(path) !== undefined
}

/** Returns a reader, which reads each text once and finds no imports in a file of another language. */
export function createImportReader(): (path: string, text: string) => ReadImports {
  const parserFor = memo((kind) => new Bun.Transpiler({ loader: kind === 'ts' || kind === 'tsx' ? kind : 'jsx' }))
  const known = new Map<string, ReadImports>()
  return (path, text) => {
    const kind = /\.[mc]?([tj]sx?)$/i.exec(path)?.[1]?.toLowerCase()
    if (kind === undefined) return { imports: withLines(text, languageOf(path)?.scan(text) ?? []) }
    const key = `${kind} ${Bun.hash(text)}`
    const read = known.get(key) ?? readScript(text, parserFor(kind))
    known.set(key, read)
    return read
  }
}

function withLines(text: string, named: readonly { readonly specifier: string; readonly at: number }[]): readonly Import[] {
  let [line, counted] = [1, 0]
  return named.map(({ specifier, at }) => {
    line += text.slice(counted, at).split('\n').length - 1
    counted = at
    return { specifier, line, typeOnly: false }
  })
}

function readScript(text: string, parser: Bun.Transpiler): ReadImports {
  try {
    return { imports: importsOf(text.replace(/^#!.*/, ''), parser) }
  } catch (error) {
    const why = error instanceof AggregateError ? error.errors[0] : error
    return { imports: [], problem: `cannot be parsed: ${errorText(why).split('\n')[0]}` }
  }
}

/** The parser leaves out what exists only for types, so it parses once more without the word `type`. @throws what the parser throws */
function importsOf(text: string, parser: Bun.Transpiler): readonly Import[] {
  const scan = (source: string): ReadonlySet<string> => new Set(parser.scanImports(source).map(({ path }) => path))
  const values: ReadonlySet<string> = scan(text)
  const typeless = text.includes('type') ? withoutTypes(text) : text
  const all = typeless === text ? values : new Set([...values, ...(attempt(() => scan(typeless)) ?? [])])
  const named = [...all].flatMap((specifier) => {
    const at = placeOf(text, specifier)
    // The parser adds what JSX is compiled to.
    return at < 0 && /^react(?:$|\/jsx-)/.test(specifier) ? [] : { specifier, line: lineAt(text, at), typeOnly: !values.has(specifier) }
  })
  const [call] = text.match(computedCall) ?? []
  const isCall =
    call !== undefined && (attempt(() => scan(text.replace(computedCall, (found) => `${found}\`\u0001\`)||(`)).has('\u0001')) ?? true)
  return isCall ? [...named, { specifier: '', line: lineAt(text, text.search(computedCall)), typeOnly: false }] : named
}

/** Matches a call with anything but one literal. A mark in it comes back from the parser unless it is in a comment or a text. */
const computedCall = /\b(?:import|require)\s*\((?!\s*(?:\/\*[^*]*\*\/\s*)?(?:(["'])(?:\\.|(?!\1)[^\\\n])*\1|`[^`$\\]*`)\s*[),])/g

function withoutTypes(text: string): string {
  return text
    .replace(/\b(import\s+)type(?=\s*[{*]|\s+[\w$]+\s*(?:from\b|=))|\b(export\s+)type(?=\s*[{*])/g, '$1$2')
    .replace(/\b(?:import|export)\b[^;'"`()=]{0,200}?\{[^}'"`]*\}/g, (list) => list.replace(/([{,]\s*)type(?=\s+(?!as\b)[\w$])/g, '$1'))
}

/** Returns the offset of the first import of this name outside of lines that are comments; -1 when its name is written in another way. */
function placeOf(text: string, specifier: string): number {
  for (const quote of ['"', "'", '`'])
    for (let at = text.indexOf(quote + specifier + quote); at >= 0; at = text.indexOf(quote + specifier + quote, at + 1)) {
      const line = text.slice(text.lastIndexOf('\n', at) + 1, at)
      if (/(?:\bfrom|\bimport|\(|\*\/)\s*$/.test(line) && !/^\s*(?:\/[/*]|\*)/.test(line)) return at
    }
  return -1
}

function lineAt(text: string, at: number): number {
  return text.slice(0, Math.max(at, 0)).split('\n').length
}
