/** Judges the scripts and expressions inside a word. */

import type { ParameterExpansionPart, ParsedScript, Word } from 'unbash'
import { type Form, formsOf } from '../syntax/pieces.ts'
import { isPlainParameter } from '../syntax/print-word.ts'
import { walkArithmetic } from './evaluate-arithmetic.ts'
import { type Look, noFeed, type Place } from './model.ts'

export function walkWord(look: Look, word: Word, place: Place): void {
  for (const form of formsOf(word, look.policy.home)) walkForm(look, form, place)
}

export function walkForm(look: Look, form: Form, place: Place): void {
  for (const piece of form) {
    if (piece.type === 'opaque')
      look.raise('command.unclear', `${JSON.stringify(piece.text.slice(0, 40))} is known only when it runs; write it out`)
    if (piece.type !== 'dynamic') continue
    const { part } = piece
    if (part.type === 'ParameterExpansion') walkParameter(look, part, place)
    if (part.type === 'ArithmeticExpansion') walkArithmetic(look, part.expression, place)
    if (part.type === 'ProcessSubstitution')
      walkInner(look, part, part.script, { ...place, feed: part.operator === '>' ? { ...place.feed, kind: 'unknown' } : noFeed })
    if (part.type === 'CommandExpansion') {
      if (part.text[1] === '{') look.raise('command.unclear', 'only newer shells run a command in braces; write $(command)')
      walkInner(look, part, part.script, { ...place, feed: noFeed })
    }
  }
}

function walkInner(look: Look, part: object, script: ParsedScript | undefined, place: Place): undefined {
  if (!script) return look.raise('command.unparseable', 'a substitution cannot be read')
  const before = look.found.downloads
  const { output } = look.script(script, { ...place, level: place.level + 1, forks: true })
  look.found.outputs.set(part, { ...output, downloads: output.downloads || look.found.downloads > before })
}

function walkParameter(look: Look, part: ParameterExpansionPart, place: Place): void {
  const { operation, index, text } = part
  if (!isPlainParameter(text))
    look.raise('command.unclear', `${JSON.stringify(text.slice(0, 40))} is more than a plain variable; write it out`)
  if (index) walkWord(look, index, place)
  if (!operation) return
  if ('operand' in operation && operation.operand) walkWord(look, operation.operand, place)
  if (operation.type === 'Replace') for (const word of [operation.pattern, operation.replacement]) walkWord(look, word, place)
  if (operation.type === 'Slice') for (const word of [operation.offset, operation.length]) if (word) walkWord(look, word, place)
}
