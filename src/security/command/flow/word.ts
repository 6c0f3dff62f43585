/** Judges the scripts and expressions inside a word, and computes what the word may expand to, as far as the script itself shows. */

import type { ArithmeticExpression, ParameterExpansionPart, ParsedScript, Word } from 'unbash'
import { arithmeticInputs, arithmeticText } from '../syntax/arithmetic.ts'
import { type Expansion, type Form, formsOf, type WordPiece } from '../syntax/pieces.ts'
import { isPlainParameter } from '../syntax/print.ts'
import type { Bound } from '../syntax/survey.ts'
import { type Arg, HOLE, type JudgeContext, noFeed, type TextKind, type WalkState, widest } from './model.ts'

export function walkWord(judge: JudgeContext, word: Word, place: WalkState): void {
  for (const form of formsOf(word, judge.policy.home)) walkForm(judge, form, place)
}

export function walkForm(judge: JudgeContext, form: Form, place: WalkState): void {
  for (const piece of form) {
    if (piece.type === 'opaque')
      judge.raise('command.unclear', `${JSON.stringify(piece.text.slice(0, 40))} is known only when it runs; write it out`)
    if (piece.type !== 'dynamic') continue
    const { part } = piece
    if (part.type === 'ParameterExpansion') walkParameter(judge, part, place)
    if (part.type === 'ArithmeticExpansion') walkArithmetic(judge, part.expression, place)
    if (part.type === 'ProcessSubstitution')
      walkInner(judge, part, part.script, { ...place, feed: part.operator === '>' ? { ...place.feed, kind: 'unknown' } : noFeed })
    if (part.type === 'CommandExpansion') {
      if (part.text[1] === '{') judge.raise('command.unclear', 'only newer shells run a command in braces; write $(command)')
      walkInner(judge, part, part.script, { ...place, feed: noFeed })
    }
  }
}

function walkInner(judge: JudgeContext, part: object, script: ParsedScript | undefined, place: WalkState): undefined {
  if (!script) return judge.raise('command.unparseable', 'a substitution cannot be read')
  const before = judge.found.downloads
  const { output } = judge.script(script, { ...place, level: place.level + 1, forks: true })
  judge.found.outputs.set(part, { ...output, downloads: output.downloads || judge.found.downloads > before })
}

function walkParameter(judge: JudgeContext, part: ParameterExpansionPart, place: WalkState): void {
  const { operation, index, text } = part
  if (!isPlainParameter(text))
    judge.raise('command.unclear', `${JSON.stringify(text.slice(0, 40))} is more than a plain variable; write it out`)
  if (index) walkWord(judge, index, place)
  if (!operation) return
  if ('operand' in operation && operation.operand) walkWord(judge, operation.operand, place)
  if (operation.type === 'Replace') for (const word of [operation.pattern, operation.replacement]) walkWord(judge, word, place)
  if (operation.type === 'Slice') for (const word of [operation.offset, operation.length]) if (word) walkWord(judge, word, place)
}

/** Judges arithmetic: bash evaluates the values of the variables in it as expressions, which may contain commands. */
export function walkArithmetic(judge: JudgeContext, expression: ArithmeticExpression | undefined, place: WalkState): void {
  if (arithmeticText(expression, () => '') === undefined || !expression) {
    judge.raise('command.unclear', 'an arithmetic expression holds more than numbers and plain variables; simplify it')
  }
  if (!expression) return
  const { names, commands, scripts } = arithmeticInputs(expression)
  for (const name of names) checkNumeric(judge, name, place)
  for (const script of [...scripts, ...commands.flatMap((part) => part.script ?? [])]) {
    const { output } = judge.script(script, { ...place, level: place.level + 1, feed: noFeed, forks: true })
    if (output.kind !== 'number')
      judge.raise('command.unclear', "a command's output is evaluated as arithmetic, which may run more commands")
  }
}

export function checkNumeric(judge: JudgeContext, name: string, place: WalkState): undefined {
  if (!isNumeric(name, { judge, place }))
    judge.raise('command.unclear', `$${name} is evaluated as arithmetic but may hold any text; give it a number`)
}

const maxTexts = 16
const maxLookups = 5_000

/** @returns one argument for each word of the brace expansion */
export function argsOf(word: Word, at: At): readonly Arg[] {
  return formsOf(word, at.judge.policy.home).map((form) => argOf(form, word, at))
}

type At = { readonly judge: JudgeContext; readonly place: WalkState; readonly inside?: ReadonlySet<string> }

type WordValue = Pick<Arg, 'texts' | 'kind' | 'downloads' | 'globs'>

export function argOf(form: Form, word: Word | undefined, at: At): Arg {
  const values = form.map((piece) => pieceValue(piece, word, at))
  const joined = values.reduce(concat, { texts: [''], kind: 'literal', downloads: false, globs: [] })
  const dynamic = form.filter((piece) => piece.type === 'dynamic')
  const bare = dynamic.length === form.length && dynamic.some((piece) => !piece.quoted || /^\$\{?@/.test(piece.part.text))
  const vanishes = bare && (joined.kind === 'unknown' || joined.kind === 'name' || joined.texts.includes('') || joined.texts.length > 1)
  const fixed = form.every((piece) => piece.type === 'literal' && piece.print === undefined && !hasHole(piece))
  const onlyHole = joined.texts.length > 0 && joined.texts.every((text) => text.replaceAll(HOLE, '') === '' && text !== '')
  return { ...joined, fixed, vanishes: vanishes || (onlyHole && form.some(hasHole)), several: form.some(mayBeSeveral), word }
}

/** A searched text with unknown parts: such a part may contain spaces, quotes and any other text. */
function hasHole(piece: WordPiece): boolean {
  return piece.type === 'literal' && piece.text.includes(HOLE)
}

function mayBeSeveral(piece: WordPiece): boolean {
  return (
    piece.type === 'glob' || hasHole(piece) || (piece.type === 'dynamic' && (!piece.quoted || /^\$(@|\{[^}]*[@*])/.test(piece.part.text)))
  )
}

function concat(a: WordValue, b: WordValue): WordValue {
  const texts = pairs(a.texts, b.texts)
  const tooMany = texts.length > maxTexts
  return {
    texts: tooMany ? pairs(onlyOne(a.texts), onlyOne(b.texts)) : texts,
    kind: tooMany ? 'unknown' : widest(a.kind, b.kind),
    downloads: a.downloads || b.downloads,
    globs: [...a.globs, ...b.globs],
  }
}

function pairs(heads: readonly string[], tails: readonly string[]): readonly string[] {
  return [...new Set(heads.flatMap((head) => tails.map((tail) => head + tail)))]
}

/** Used when there are too many texts: keeps a single certain text, otherwise a hole. */
function onlyOne(texts: readonly string[]): readonly string[] {
  return texts.length === 1 ? texts : [HOLE]
}

function value(kind: TextKind, texts: readonly string[] = [HOLE], more: Partial<WordValue> = {}): WordValue {
  return { texts, kind, downloads: false, globs: [], ...more }
}

function pieceValue(piece: WordPiece, word: Word | undefined, at: At): WordValue {
  if (piece.type === 'literal') return value(hasHole(piece) ? 'unknown' : 'literal', [piece.text])
  if (piece.type === 'glob') return value('glob', [piece.text], { globs: word ? [word] : [] })
  if (piece.type === 'opaque') return value('unknown')
  const known = expansionValue(piece.part, at)
  const splits = !piece.quoted && known.kind === 'literal' && known.texts.some((text) => /[\s*?[\\]/.test(text))
  return splits ? { ...known, kind: 'unknown' } : known
}

function expansionValue(part: Expansion, at: At): WordValue {
  switch (part.type) {
    case 'SimpleExpansion':
      return variable(part.text.slice(1), at)
    case 'ParameterExpansion':
      return parameter(part, at)
    case 'ArithmeticExpansion':
      return value('number')
    case 'ProcessSubstitution':
      return value('name', [HOLE], { downloads: at.judge.found.outputs.get(part)?.downloads ?? false })
    case 'CommandExpansion': {
      const output = at.judge.found.outputs.get(part)
      if (!output || output.kind === 'none') return value('unknown')
      return value(output.kind, [output.text.replace(/\n+$/, '') || (output.kind === 'literal' ? '' : HOLE)], {
        downloads: output.downloads,
      })
    }
  }
}

/** @returns every value that the script gives a variable, and the empty text unless it is certainly set here */
function variable(name: string, at: At): WordValue {
  const { scope, cwds, assigned, inFunction } = at.place
  if (
    /^[?#$!]$/.test(name) ||
    (/^(RANDOM|SECONDS|LINENO|UID|EUID|PPID|SRANDOM|EPOCHSECONDS|BASHPID)$/.test(name) && !scope.variables.has(name))
  ) {
    return value('number')
  }
  if (/^\d+$|^[@*]$/.test(name)) return positional(name, at)
  const bound = scope.variables.get(name)
  const usual = bound ? undefined : name === 'HOME' ? [at.judge.policy.home] : name === 'PWD' ? cwds : undefined
  if (usual !== undefined) {
    const isCertain = !scope.opaque && (name === 'HOME' || (!scope.moves && usual.length === 1 && !inFunction))
    return merge([value('literal', usual), ...(isCertain ? [] : [value('unknown')])])
  }
  if (!bound && name === 'IFS') return value('literal', [' '])
  if (!bound || at.inside?.has(name) || ++at.judge.found.lookups > maxLookups) return value('unknown')
  const inner: At = { ...at, inside: new Set([...(at.inside ?? []), name]) }
  const values = bound.flatMap((one) => boundValue(one, inner))
  const certain = assigned.has(name) && !scope.unset.has(name)
  return merge([...values, ...(certain ? [] : [value('literal', [''])]), ...(scope.opaque ? [value('unknown')] : [])])
}

function boundValue(bound: Bound, at: At): readonly WordValue[] {
  if (bound === 'empty') return [value('literal', [''])]
  if (bound === 'number' || bound === 'unknown') return [value(bound)]
  return argsOf(bound.word, at)
}

function merge(values: readonly WordValue[]): WordValue {
  const texts = [...new Set(values.flatMap((one) => one.texts))]
  const kind = values.reduce<TextKind>((wide, one) => widest(wide, one.kind), 'literal')
  if (texts.length > maxTexts) return value('unknown', [HOLE], { downloads: values.some((one) => one.downloads) })
  return { texts, kind, downloads: values.some((one) => one.downloads), globs: values.flatMap((one) => one.globs) }
}

function positional(name: string, { place: { scope, inFunction } }: At): WordValue {
  const args = inFunction === undefined ? scope.positional : undefined
  if (!args) return value('unknown')
  return merge(/\d/.test(name) ? args.slice(Number(name), Number(name) + 1) : args.slice(1))
}

function parameter(part: ParameterExpansionPart, at: At): WordValue {
  if (part.prefix === '#') return value('number')
  if (part.prefix === '!') return value('unknown')
  const base = variable(part.parameter, at)
  if (part.index || !isPlainParameter(part.text)) return merge([base, value('unknown')])
  const { operation } = part
  if (!operation) return base
  if (operation.type === 'Default' && /-|=/.test(operation.operator)) return merge([base, value('literal', [operation.operand.value])])
  if (operation.type === 'Default')
    return operation.operator.includes('?') ? base : merge([value('literal', ['', operation.operand.value])])
  if (operation.type === 'Remove' && base.kind === 'literal' && !/[*?[\\]/.test(operation.operand.value)) {
    return value(
      'literal',
      base.texts.map((text) => removed(text, operation.operator, operation.operand.value)),
    )
  }
  const replaced = operation.type === 'Replace' ? operation.replacement.value : ''
  if (replaced.includes('/') || replaced.includes('..')) return value('unknown')
  return isTame(base) ? value(base.kind === 'number' ? 'number' : 'name', [HOLE], { globs: base.globs }) : value('unknown')
}

function removed(text: string, operator: string, part: string): string {
  if (operator.startsWith('%')) return text.endsWith(part) ? text.slice(0, text.length - part.length) : text
  return text.startsWith(part) ? text.slice(part.length) : text
}

/** A part of the value cannot lead outside the working directory. */
function isTame({ kind, texts }: WordValue): boolean {
  return kind !== 'unknown' && texts.every((text) => !text.includes('..') && (kind !== 'literal' || !/^[/~-]/.test(text)))
}

/** Tells whether a variable always holds an integer: the shell evaluates any other text as an expression, including commands in it. */
function isNumeric(name: string, at: At): boolean {
  const { scope } = at.place
  if (scope.opaque) return false
  if (/^\d+$/.test(name)) return positional(name, at).kind === 'number'
  const bound = scope.variables.get(name)
  if (!bound) return !scope.inherits && !at.inside?.has(name)
  if (at.inside?.has(name)) return true
  if (++at.judge.found.lookups > maxLookups) return false
  const inner: At = { ...at, inside: new Set([...(at.inside ?? []), name]) }
  return bound.every((one) => one === 'empty' || one === 'number' || (one !== 'unknown' && argsOf(one.word, inner).every(isInteger)))
}

export function isInteger(arg: Pick<Arg, 'texts' | 'kind'>): boolean {
  return arg.kind === 'number' || (arg.kind === 'literal' && arg.texts.every((text) => /^-?\d*$/.test(text)))
}
