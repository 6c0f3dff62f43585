/** Looks for what is blocked in text that may be run as shell, also where parts of it are known only when it runs. */

import { holdsCommand, isHarmlessSetting } from '../names.ts'
import { type Arg, HOLE, type Look, type Place } from './model.ts'

/** Nothing is known of it. */
function isEmpty(text: string): boolean {
  return text.replaceAll(HOLE, '').trim() === ''
}

/**
 * Each text is judged by itself, with one word of unknown meaning in the place of each unknown part; once, or texts within texts would be
 * judged twice as often at every step.
 */
export function searchTexts(look: Look, texts: readonly string[], place: Place): void {
  for (const text of texts) if (!isEmpty(text) && !look.found.texts.has(text)) look.text(text, place, { shared: false })
  // What a function runs of its arguments is looked for in its calls.
  if (place.inFunction !== undefined && texts.some((text) => text.includes(HOLE))) look.found.runsArguments.add(place.inFunction)
}

/** The texts of some arguments joined by spaces, as `eval` and `watch` do. */
export function joinedTexts(args: readonly Arg[]): readonly string[] {
  return args.reduce<readonly string[]>((heads, { texts }) => join(heads, texts), [])
}

const maxJoined = 16

function join(heads: readonly string[], texts: readonly string[]): readonly string[] {
  if (heads.length === 0) return texts
  const tails = heads.length * texts.length > maxJoined ? [HOLE] : texts
  return heads.flatMap((head) => tails.map((text) => `${head} ${text}`))
}

/** `NAME=value` where the value is a command that another program runs. */
export function searchSettings(look: Look, settings: readonly string[], place: Place): void {
  const pairs = settings.map((text) => /^([^=]*)=(.*)$/s.exec(text) ?? [])
  const values = pairs.flatMap(([, name = '', value = '']) => (holdsCommand(name) && !isHarmlessSetting(name, value) ? [value] : []))
  searchTexts(look, values, place)
}
