/** `agent` with its everyday flags, read without the argument parser, which takes longer to begin than the rest of a turn's own code. */

import type { AgentFlags } from './routes/types.ts'

type Drafted = { -readonly [flag in keyof AgentFlags]: AgentFlags[flag] }

/**
 * What the parser would make of these words. Undefined for anything but `agent` and the flags below, each with one plain value: the
 * parser then reads them, and says what is wrong.
 */
export function plainFlags([command, ...rest]: readonly string[]): AgentFlags | undefined {
  if (command !== 'agent') return undefined
  const flags: Drafted = {}
  for (let at = 0; at < rest.length; ) {
    const taken = take(flags, rest[at], rest[at + 1])
    if (taken === 0) return undefined
    at += taken
  }
  return flags
}

/** @returns how many words it took; 0 when they are not for here. */
function take(flags: Drafted, word: string | undefined, next: string | undefined): number {
  const switched = word === undefined ? undefined : switches.get(word)
  if (switched !== undefined) {
    if (flags[switched] !== undefined) return 0
    flags[switched] = true
    return 1
  }
  const named = word === undefined ? undefined : texts.get(word)
  if (named === undefined || next === undefined || next === '' || next.startsWith('-') || flags[named] !== undefined) return 0
  flags[named] = next
  return 2
}

const texts: ReadonlyMap<string, 'message' | 'workspace' | 'model' | 'resume'> = new Map([
  ['-m', 'message'],
  ['--message', 'message'],
  ['-C', 'workspace'],
  ['--workspace', 'workspace'],
  ['--model', 'model'],
  ['--resume', 'resume'],
])

const switches: ReadonlyMap<string, 'continue' | 'json' | 'approveAllMedium'> = new Map([
  ['-c', 'continue'],
  ['--continue', 'continue'],
  ['--json', 'json'],
  ['--approve-all-medium', 'approveAllMedium'],
])
