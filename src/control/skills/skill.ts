/** Defines a skill of agent/library.yaml, and compiles the patterns that say which tasks ask for it. */

import { matcherOf } from '../../runtime/rules/text/regex.ts'

export type Invoke = { readonly source: string; readonly matches: (text: string) => boolean }

export type Skill = {
  readonly name: string
  /** Sums the skill up in one line for the index. */
  readonly summary: string
  /** These lists say which agents have it; both empty: all. */
  readonly roles: readonly string[]
  readonly agents: readonly string[]
  readonly invoke: readonly Invoke[]
  /** Explains in Markdown how it is done; empty: the summary is enough. */
  readonly content: string
  /** A program with its arguments that does it without a model. */
  readonly command?: readonly string[]
}

export type SkillOwner = { readonly id: string; readonly role: string }

export function skillsOf(skills: readonly Skill[], { id, role }: SkillOwner): readonly Skill[] {
  return skills.filter(({ roles, agents }) => (roles.length === 0 && agents.length === 0) || roles.includes(role) || agents.includes(id))
}

type CompiledInvoke = { readonly ok: true; readonly invoke: Invoke } | { readonly ok: false; readonly message: string }

/**
 * Compiles words or a regular expression; both match in linear time. `/…/` is a regular expression without look-around and back-references; it is
 * tried on the text as it is, and in lower case. Everything else is words: a text matches when it has them all, whole, in this order.
 */
export function compileInvoke(source: string): CompiledInvoke {
  const [, regex] = /^\/(.+)\/i?$/.exec(source) ?? []
  return regex === undefined ? compileWords(source) : compileRegex(source, regex)
}

function compileRegex(source: string, regex: string): CompiledInvoke {
  const matches = matcherOf(regex)
  if (typeof matches === 'string') return { ok: false, message: `${source}: ${matches}` }
  if (matches('')) return { ok: false, message: `${source} matches an empty text, so every task would ask for this skill` }
  return { ok: true, invoke: { source, matches: (text) => matches(text) || matches(text.toLowerCase()) } }
}

function compileWords(source: string): CompiledInvoke {
  const words = wordsOf(source)
  if (words.length === 0) return { ok: false, message: `${JSON.stringify(source)} has no word` }
  return { ok: true, invoke: { source, matches: (text) => hasInOrder(wordsOf(text), words) } }
}

/** Returns the words of a text: letters and digits of any script, in lower case. */
export function wordsOf(text: string): readonly string[] {
  return text.toLowerCase().match(/[\p{L}\p{M}\p{N}]+/gu) ?? []
}

function hasInOrder(text: readonly string[], words: readonly string[]): boolean {
  let at = 0
  for (const word of text) if (word === words[at]) at += 1
  return at === words.length
}
