/** Searches text that may run as shell for blocked commands, even where parts of the text are known only at run time. */

import { holdsCommand, isHarmlessSetting } from '../names.ts'
import { type Arg, HOLE, type JudgeContext, type WalkState } from './model.ts'

/** Tells whether the text has no known part. */
function isEmpty(text: string): boolean {
  return text.replaceAll(HOLE, '').trim() === ''
}

/**
 * Judges each text by itself, with each unknown part as one word of unknown meaning. Judges a text only once, because otherwise nested
 * texts would double the work at every level.
 */
export function searchTexts(judge: JudgeContext, texts: readonly string[], place: WalkState): void {
  for (const text of texts) if (!isEmpty(text) && !judge.found.texts.has(text)) judge.text(text, place, { shared: false })
  // The calls of a function are searched for what it runs from its arguments.
  if (place.inFunction !== undefined && texts.some((text) => text.includes(HOLE))) judge.found.runsArguments.add(place.inFunction)
}

/** @returns the texts of the arguments joined by spaces, as `eval` and `watch` join them */
export function joinedTexts(args: readonly Arg[]): readonly string[] {
  return args.reduce<readonly string[]>((heads, { texts }) => join(heads, texts), [])
}

const maxJoined = 16

function join(heads: readonly string[], texts: readonly string[]): readonly string[] {
  if (heads.length === 0) return texts
  const tails = heads.length * texts.length > maxJoined ? [HOLE] : texts
  return heads.flatMap((head) => tails.map((text) => `${head} ${text}`))
}

/** Searches `NAME=value` where the value is a command that another program runs. */
export function searchSettings(judge: JudgeContext, settings: readonly string[], place: WalkState): void {
  const pairs = settings.map((text) => /^([^=]*)=(.*)$/s.exec(text) ?? [])
  const values = pairs.flatMap(([, name = '', value = '']) => (holdsCommand(name) && !isHarmlessSetting(name, value) ? [value] : []))
  searchTexts(judge, values, place)
}
