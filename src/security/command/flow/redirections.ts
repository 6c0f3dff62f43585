/** Judges redirections: where they read and write, and what they feed to the command. */

import type { Redirect, Redirection, Word } from 'unbash'
import { bodyOf } from '../syntax/pieces.ts'
import { type Arg, anyFeed, type Feed, type Look, type Place } from './model.ts'
import { checkPath } from './paths.ts'
import { argOf, argsOf } from './value.ts'
import { walkForm, walkWord } from './word.ts'

/** @returns what the command then reads from its standard input */
export function walkRedirections(look: Look, redirects: readonly Redirection[], place: Place): Feed {
  return redirects.reduce((feed, one) => walkRedirection(look, one, { ...place, feed }), place.feed)
}

function walkRedirection(look: Look, node: Redirection, place: Place): Feed {
  const toInput = !node.descriptor || (node.descriptor.type === 'FileDescriptor' && node.descriptor.value === 0)
  if (node.type === 'HereDoc') {
    const body = bodyOf(node)
    walkForm(look, body, place)
    return toInput ? fed(argOf(body, undefined, { look, place }), '') : place.feed
  }
  const arg = target(look, node.target, place)
  if (!arg) return place.feed
  if (node.type === 'HereString') return toInput ? fed(arg, '\n') : place.feed
  checkTarget(look, node, arg, place)
  return node.operator.startsWith('<') && toInput ? { ...anyFeed, downloads: arg.downloads } : place.feed
}

function target(look: Look, word: Word | undefined, place: Place): Arg | undefined {
  if (!word) return
  walkWord(look, word, place)
  const [arg, ...more] = argsOf(word, { look, place })
  if (more.length > 0) look.raise('command.unclear', 'a redirection needs exactly one file')
  return arg
}

function fed(arg: Arg, end: string): Feed {
  const [text = ''] = arg.texts
  return { kind: arg.kind === 'literal' && arg.texts.length === 1 ? 'literal' : 'unknown', text: text + end, downloads: arg.downloads }
}

function checkTarget(look: Look, { operator }: Redirect, arg: Arg, place: Place): undefined {
  if (arg.word && arg.globs.includes(arg.word)) return look.raise('command.unclear', 'a redirection needs a file name, not a pattern')
  if (operator.endsWith('&') && arg.texts.every((text) => /^(\d+-?|-)$/.test(text))) return
  if (operator === '<&') return look.raise('command.unclear', 'which descriptor is read is known only when it runs')
  if (operator === '>&' && !isTwiceTheSame(arg))
    look.raise('command.unclear', 'bash reads the word after >& twice, and runs what is quoted in it; write &> instead')
  checkPath(look, arg, operator === '<' ? 'read' : 'write', place, 'redirection')
}

/** Bash expands the word of `>&word` once more as a file name, after its quotes were removed: `>& 'a$(rm x)'` runs rm. */
function isTwiceTheSame({ kind, texts }: Arg): boolean {
  return kind === 'number' || (kind === 'literal' && texts.every((text) => /^[\w./+:@%,-]+$/.test(text)))
}
