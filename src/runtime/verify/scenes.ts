/** The scenes that are explored: limits of a run, and the replies that a hostile model may give within them. */

import type { AnyThread } from '../../kernel/thread.ts'
import type { RunEvent } from '../event.ts'
import type { RunLimits } from '../program.ts'
import type { Sample } from './world.ts'

/** `toolRounds`: how many rounds of calls are explored. `maxStates`: where the search of one scene is cut; it then proves nothing. */
export type Bounds = { readonly toolRounds: number; readonly maxStates: number }

export const defaultBounds: Bounds = { toolRounds: 2, maxStates: 200_000 }

export type Scene = {
  readonly name: string
  readonly limits: RunLimits
  readonly replies: readonly (readonly Sample[])[]
  /** What each reply costs. */
  readonly tokens: number
}

/** A rule may bring calls that it looks at, so that the hostile model asks for them. */
export type Sampled = AnyThread<RunEvent> & { readonly samples?: readonly Sample[] }

const read: Sample = { name: 'file_read', input: { path: 'a' } }
const risky: Sample = { name: 'shell', input: { command: 'make' }, verdict: 'ask', risk: 'medium' }
const forbidden: Sample = { name: 'shell', input: { command: 'rm -rf /' }, verdict: 'deny', risk: 'high' }
const write: Sample = { name: 'file_write', input: { path: 'x' }, writes: ['/w/x'] }
const kinds: readonly Sample[] = [read, risky, forbidden, write]

/** Each scene is small where another is wide, so that together they stay far below a second or two. */
export function scenesOf(rules: readonly Sampled[], { toolRounds }: Bounds): Scene[] {
  const asked = rules.flatMap(({ samples = [] }) => (samples.length > 0 ? [samples] : []))
  const deep = { maxToolRounds: toolRounds, maxParallel: 2 }
  const poor = { maxToolRounds: toolRounds + 1, maxParallel: 1, maxTokens: 20, maxMs: 1000 }
  return [
    { name: 'two calls at once', limits: { maxToolRounds: 1, maxParallel: 2 }, replies: upToTwo(kinds), tokens: 0 },
    { name: 'rounds', limits: deep, replies: [[], ...kinds.map((one) => [one])], tokens: 0 },
    { name: 'budget', limits: poor, replies: [[], [read], [risky], [read, read], [risky, read]], tokens: 10 },
    ...(asked.length > 0 ? [{ name: 'rules', limits: deep, replies: mixed(asked), tokens: 0 }] : []),
  ]
}

/** No call, one, and every ordered pair. */
function upToTwo(samples: readonly Sample[]): Sample[][] {
  return [[], ...samples.map((one) => [one]), ...samples.flatMap((one) => samples.map((other) => [one, other]))]
}

/** Every call alone, each beside one that needs a yes, and the pairs that one rule speaks of. */
function mixed(asked: readonly (readonly Sample[])[]): Sample[][] {
  const alone = [[], [read], ...asked.flatMap((samples) => samples.flatMap((one) => [[one], [risky, one]]))]
  return [...alone, ...asked.flatMap((samples) => upToTwo(samples).filter((reply) => reply.length === 2))]
}
