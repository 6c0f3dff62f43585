/** Runs a conversation on a pseudo-terminal: it types each answer when its cue appears. */

import type { Nest } from './cli.ts'
import { scripted } from './turns.ts'

export const ctrlC = '\u0003'
export const ctrlD = '\u0004'
export const up = '\u001b[A'

export type Answers = Parameters<Nest['terminal']>[1]

/** The last answer should leave the conversation. */
export function talk(at: Nest, responses: readonly object[], answers: Answers, args: readonly string[] = [], env = {}) {
  return at.terminal(['agent', ...args], answers, { env: { ...scripted(at, responses).env, ...env } })
}
