/** Checks a command before the walk: its text, and of its whole tree the size, the errors and everything it declares. */

import { type Assignment, forEachChild, type ParsedScript, type SyntaxNode, type Word } from 'unbash'
import { declarers, isHarmlessSetting, isRefusedName } from '../names.ts'
import { literalOf } from './pieces.ts'

export const maxNodes = 20_000
export const maxLevels = 16

export type Bound = { readonly word: Word } | 'empty' | 'number' | 'unknown'

export type ScriptSurvey = {
  nodes: number
  tooDeep: boolean
  error: string | undefined
  /** The first variable that chooses programs or how they run. */
  refused: string | undefined
  readonly variables: Map<string, Bound[]>
  readonly functions: Set<string>
  readonly unset: Set<string>
  /** Assignments that last for one harmless command: `IFS= read`. */
  readonly excused: Set<object>
  moves: boolean
  opaque: boolean
  /** The script changes `$1` …. */
  shifts: boolean
}

const nesting = new Set([
  'Script',
  'If',
  'For',
  'ArithmeticFor',
  'While',
  'Case',
  'Select',
  'Subshell',
  'BraceGroup',
  'Function',
  'Coproc',
  'TestGroup',
  'ArithmeticGroup',
])

export function survey(script: ParsedScript, { level, home }: { readonly level: number; readonly home: string }): ScriptSurvey {
  const seen: ScriptSurvey = {
    nodes: 0,
    tooDeep: false,
    error: undefined,
    refused: undefined,
    variables: new Map(),
    functions: new Set(),
    unset: new Set(),
    excused: new Set(),
    moves: false,
    opaque: false,
    shifts: false,
  }
  visit(script, { seen, home, level: level - 1 })
  return seen
}

type Visit = { readonly seen: ScriptSurvey; readonly home: string; readonly level: number }

function visit(node: SyntaxNode, at: Visit): void {
  const { seen } = at
  if (++seen.nodes > maxNodes) return
  const level = at.level + (nesting.has(node.type) ? 1 : 0)
  if (level > maxLevels) seen.tooDeep = true
  if (seen.tooDeep) return
  note(node, at)
  forEachChild(node, (child) => visit(child, { ...at, level }))
}

function note(node: SyntaxNode, { seen, home }: Visit): void {
  if (node.type === 'Script') seen.error ??= node.errors?.[0]?.message
  else if (node.type === 'HereDoc') seen.error ??= node.closing && node.delimiter ? undefined : 'a here-document does not end'
  else if (node.type === 'Assignment') assign(node, { seen, home })
  else if (node.type === 'Command') command(node, { seen, home })
  else if (node.type === 'Function') seen.functions.add(node.name.text)
  else if (node.type === 'For' || node.type === 'Select') {
    for (const word of node.wordlist ?? []) bind(seen, node.name.text, { word })
    if (!node.wordlist) bind(seen, node.name.text, 'unknown')
    if (node.type === 'Select') bind(seen, 'REPLY', 'unknown')
  } else if (node.type === 'Coproc') bind(seen, node.name?.text ?? 'COPROC', 'unknown')
  else if (node.type === 'FileDescriptorVariable') bind(seen, node.name, 'number')
  else if (node.type === 'ParameterExpansion' && node.operation?.type === 'Default' && /=/.test(node.operation.operator)) {
    bind(seen, node.parameter, { word: node.operation.operand })
    bind(seen, node.parameter, 'unknown')
  } else if (node.type === 'ArithmeticBinary' && node.left.type === 'ArithmeticWord' && /^[^=!<>]*=$|^(<<|>>)=$/.test(node.operator)) {
    bind(seen, /^\w*/.exec(node.left.value)?.[0] ?? '', 'number')
  } else if (node.type === 'ArithmeticUnary' && /^(\+\+|--)$/.test(node.operator) && node.operand.type === 'ArithmeticWord') {
    bind(seen, /^\w*/.exec(node.operand.value)?.[0] ?? '', 'number')
  }
}

function bind(seen: ScriptSurvey, name: string, value: Bound): void {
  seen.variables.set(name, [...(seen.variables.get(name) ?? []), value])
  if (isRefusedName(name)) seen.refused ??= name
}

function assign(node: Assignment, { seen, home }: Pick<Visit, 'seen' | 'home'>): void {
  if (seen.excused.has(node)) return
  const { name, value, append, index } = node
  const plain = value.type === 'Word' && !append && !index
  if (plain && isHarmlessSetting(name, literalOf(value, home) ?? '?')) return
  bind(seen, name, value.type === 'ArrayValue' || value.text === '' ? 'empty' : { word: value })
  if (value.type === 'ArrayValue') for (const word of value.elements) bind(seen, name, { word })
  if (!plain) bind(seen, name, 'unknown')
}

/** Records builtins that change variables by name. Checks every argument for names, since a wrapper may come first. */
function command({ name, prefix, suffix }: Extract<SyntaxNode, { type: 'Command' }>, { seen, home }: Pick<Visit, 'seen' | 'home'>): void {
  if (name?.text === 'read') for (const item of prefix) if (item.type === 'Assignment' && item.name === 'IFS') seen.excused.add(item)
  const words = [...(name ? [name] : []), ...suffix.filter((item) => item.type === 'Word')]
  const texts = words.map((word) => literalOf(word, home))
  const has = (...names: readonly string[]) => texts.some((text) => text !== undefined && names.includes(text))
  if (has('eval', 'source', 'trap', 'mapfile', 'readarray', 'getopts') || texts[0] === '.' || (has('command', 'builtin') && has('.'))) {
    seen.opaque = true
  }
  if (has('cd', 'pushd', 'popd', 'eval', 'source', 'trap') || texts[0] === '.') seen.moves = true
  if (has('shift', 'set')) seen.shifts = true
  const rest = texts.slice(1)
  if (has('unset')) for (const text of rest) unset(seen, text)
  if (has('read')) for (const text of ['REPLY', ...rest]) bindNames(seen, text)
  if (has('mapfile', 'readarray', 'getopts') || (has('wait') && rest.some((text) => /^-\w*p/.test(text ?? ''))))
    for (const text of rest) bindNames(seen, text?.replace(/^-\w*p/, ''))
  if (texts[0] === 'let') for (const text of rest) bindNames(seen, text, 'number')
  if (has('printf') && rest.some((text) => text?.startsWith('-v'))) for (const text of rest) bindNames(seen, text?.replace(/^-v/, ''))
  if (texts.some((text) => text !== undefined && declarers.has(text))) declare(seen, rest, has('local', 'declare', 'typeset'))
}

function unset(seen: ScriptSurvey, text: string | undefined): void {
  if (text === undefined) seen.opaque = true
  else seen.unset.add(text)
  if (text !== undefined && isRefusedName(text)) seen.refused ??= text
}

function bindNames(seen: ScriptSurvey, text: string | undefined, value: Bound = 'unknown'): void {
  const name = /^[A-Za-z_]\w*/.exec(text ?? '')?.[0]
  if (name !== undefined) bind(seen, name, value)
}

/** In a function `local NAME` leaves the variable without a value, and an empty PATH means the working directory. */
function declare(seen: ScriptSurvey, texts: readonly (string | undefined)[], isNew: boolean): void {
  for (const text of texts) {
    if (text === undefined || /^[-+]\w*[ni]/.test(text)) seen.opaque = true
    else if (text.includes('=')) bindNames(seen, text)
    else if (/^[A-Za-z_]\w*$/.test(text) && (isNew || !isRefusedName(text))) bind(seen, text, 'empty')
  }
}

export const maxBytes = 256 * 1024

/** Controls other than tab and newline, text direction, zero width, fillers, unusual spaces and line ends, lone surrogates. */
const hidden = /[^\P{Cc}\t\n]|[\p{Cf}\p{Zl}\p{Zp}\p{Cs}]|(?! )\p{Zs}|\u034f|[\u115f\u1160\u3164\uffa0\u2800]|\u17b4|\u17b5|[\u180b-\u180d]/u

/** @returns the first character that a reader would not see, as `U+202E` */
export function hiddenCharacter(text: string): string | undefined {
  const found = hidden.exec(text)?.[0]
  return found === undefined ? undefined : `U+${(found.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`
}

export function isTooLong(text: string): boolean {
  return text.length > maxBytes || (text.length * 3 > maxBytes && new TextEncoder().encode(text).length > maxBytes)
}

/**
 * For text that is too large or broken to walk: finds a name that stands where a command could. A false match is possible, so that padding
 * a command beyond a limit never gives it a milder verdict.
 */
export function mentionsCommand(text: string, names: readonly string[]): string | undefined {
  const plain = text.replace(/\\\n|["'\\]/g, '')
  return names.find((name) => new RegExp(`(^|[\\s;&|({\`/!])${RegExp.escape(name)}(?=$|[\\s;&|)}\`<>])`, 'm').test(plain))
}

/**
 * @returns the first of the names that begins a command in the text: at the start or after an operator, with or without a folder before it
 */
export function commandsIn(text: string, names: readonly string[]): string | undefined {
  return names.find((name) => new RegExp(`(^|[;|&({\`!\\n])\\s*(\\S*/)?${RegExp.escape(name)}(?=$|[\\s;&|)}\`<>])`).test(text))
}
