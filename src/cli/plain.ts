/** Everyday command lines, read without the argument parser, which takes longer to begin than the rest of a turn's own code. */

import type { AgentFlags, FilterFlags } from './routes/types.ts'

type Switch = 'continue' | 'json' | 'approveAllMedium'
type Text = 'message' | 'workspace' | 'model' | 'resume' | 'system' | 'agent' | 'tools'
type Drafted = { [flag in Switch]?: true } & { [flag in Text]?: string }

/** Each switch alone, each text with one plain value after it. */
type Known = { readonly switches: ReadonlyMap<string, Switch>; readonly texts: ReadonlyMap<string, Text> }

/**
 * What the parser would make of these words. Undefined for anything but `agent` and the flags below, each with one plain value: the
 * parser then reads them, and says what is wrong.
 */
export function plainFlags([command, ...rest]: readonly string[]): AgentFlags | undefined {
  if (command !== 'agent') return undefined
  const flags: Drafted = {}
  for (let at = 0; at < rest.length; ) {
    const taken = take(flags, ofAgent, rest.slice(at, at + 2))
    if (taken === 0) return undefined
    at += taken
  }
  return flags
}

export type Question = {
  readonly flags: FilterFlags
  readonly words: readonly string[]
  /** After `--`: then a word is a word, and no command. */
  readonly escaped: boolean
}

/** The same of a command line that names no command: flags of the filter, and what is asked. */
export function plainQuestion(words: readonly string[]): Question | undefined {
  const flags: Drafted = {}
  const asked: string[] = []
  for (let at = 0; at < words.length; ) {
    const word = words[at] ?? ''
    if (word === '--') return { flags, words: [...asked, ...words.slice(at + 1)], escaped: true }
    const taken = word.startsWith('-') ? take(flags, ofFilter, words.slice(at, at + 2)) : 1
    if (taken === 0 || word === '') return undefined
    if (!word.startsWith('-')) asked.push(word)
    at += taken
  }
  return { flags, words: asked, escaped: false }
}

/** What may be a command: one word of letters. */
export function isBare(word: string): boolean {
  return /^[a-z][a-z-]*$/i.test(word)
}

/** @returns how many words it took; 0 when they are not for here. */
function take(flags: Drafted, { switches, texts }: Known, [word = '', next = '']: readonly string[]): number {
  const switched = switches.get(word)
  if (switched !== undefined) {
    if (flags[switched] !== undefined) return 0
    flags[switched] = true
    return 1
  }
  const named = texts.get(word)
  if (named === undefined || next === '' || next.startsWith('-') || flags[named] !== undefined) return 0
  flags[named] = next
  return 2
}

const switches: Known['switches'] = new Map([
  ['-c', 'continue'],
  ['--continue', 'continue'],
  ['--json', 'json'],
  ['--approve-all-medium', 'approveAllMedium'],
])

const ofAgent: Known = {
  switches,
  texts: new Map([
    ['-m', 'message'],
    ['--message', 'message'],
    ['-C', 'workspace'],
    ['--workspace', 'workspace'],
    ['--model', 'model'],
    ['--agent', 'agent'],
    ['--resume', 'resume'],
  ]),
}

const ofFilter: Known = {
  switches,
  texts: new Map([
    ['-s', 'system'],
    ['--system', 'system'],
    ['-m', 'model'],
    ['--model', 'model'],
    ['-C', 'workspace'],
    ['--workspace', 'workspace'],
    ['--agent', 'agent'],
    ['--tools', 'tools'],
    ['--resume', 'resume'],
  ]),
}
