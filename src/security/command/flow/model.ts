/** Defines what the walk through a script knows at each point, and what it can ask the judge to do. */

import type { ParsedScript, Word } from 'unbash'
import type { CommandRule } from '../../rules.ts'
import type { Bound } from '../syntax/survey.ts'
import type { CommandPolicy } from '../verdict.ts'

/** Replaces, in texts, a part that is known only at run time. */
export const HOLE = '\u{F8FF}'

/**
 * How well a text is known. `glob`: names below its fixed beginning. `number`: digits. `name`: a name below the working directory, neither
 * absolute nor with `..`. `unknown`: any text.
 */
export type TextKind = 'literal' | 'glob' | 'number' | 'name' | 'unknown'

/** One argument as the command would get it; `texts` are all its possible values, with holes unless `kind` is literal or glob. */
export type Arg = {
  readonly texts: readonly string[]
  readonly kind: TextKind
  /** Contains no expansion, so every run gives the same text. */
  readonly fixed: boolean
  /** May expand to no argument at all, which shifts the arguments after it. */
  readonly vanishes: boolean
  /** May split into more than one argument: unquoted, or `"$@"`. */
  readonly several: boolean
  readonly downloads: boolean
  readonly word: Word | undefined
  /** The patterns it comes from; they can be printed as `./*` so that no file name is read as an option. */
  readonly globs: readonly Word[]
  /** For a `name` that is not a word of the script: it is not split, and it begins with a folder. */
  readonly led?: boolean
}

/** The text that a command reads from its standard input, or writes to its standard output. */
export type Feed = {
  readonly kind: TextKind | 'none'
  /** The whole text where `kind` is literal; otherwise the known parts with holes, or empty when nothing is known. */
  readonly text: string
  readonly downloads: boolean
  /** Each name in the text begins with a folder. */
  readonly led?: boolean
}

/** Directories in which a command may run; undefined when they are not known. */
export type Cwds = readonly string[] | undefined

/** Everything that one text (the script itself, the text of a `sh -c`) declares. */
export type Scope = {
  readonly variables: ReadonlyMap<string, readonly Bound[]>
  readonly functions: ReadonlySet<string>
  /** Some command in the text changes directory. */
  readonly moves: boolean
  /** Variables may change in ways that the walk does not follow. */
  readonly opaque: boolean
  readonly unset: ReadonlySet<string>
  /** `$0`, `$1` … of a `sh -c`; undefined when they are not known. */
  readonly positional: readonly Arg[] | undefined
  /** Another shell started this one: a variable that it does not set may be inherited. */
  readonly inherits: boolean
}

export type WalkState = {
  readonly cwds: Cwds
  readonly scope: Scope
  readonly feed: Feed
  /** The current nesting depth. */
  readonly level: number
  /** Variables that certainly have one of their known values here. */
  readonly assigned: ReadonlySet<string>
  readonly inFunction: string | undefined
  /** A program starts the command, so the shell's functions are not visible to it. */
  readonly external: boolean
  /** Runs concurrently with its caller: in a pipe or in the background. */
  readonly forks: boolean
}

export type Flow = { readonly ok: Cwds; readonly fail: Cwds; readonly assigned: ReadonlySet<string>; readonly output: Feed }

/** How one simple command affects the commands after it. */
export type CommandOutcome = { readonly cwds?: { readonly to: Cwds }; readonly output?: Feed }

export type CommandFinding = { readonly rule: string; readonly reason: string }

/** A function called in `place`; `from` names the calling function, if any. */
export type FunctionCall = {
  readonly from: string | undefined
  readonly to: string
  readonly args: readonly Arg[]
  readonly place: WalkState
}

/** One judgement in progress: it collects findings, and connects commands to the judge of the texts they run. */
export type JudgeContext = {
  readonly policy: CommandPolicy
  readonly found: {
    blocked: CommandFinding | undefined
    high: CommandFinding | undefined
    nodes: number
    downloads: number
    /** Number of variable look-ups so far; bounds values that double at every step. */
    lookups: number
    readonly executables: Set<string>
    readonly writes: Set<string>
    /** Something in it may change a file: a write, or a program that is not known to only read. */
    acts: boolean
    readonly hosts: Set<string>
    /** Absolute paths of the files whose content decides what runs. */
    readonly runs: Set<string>
    readonly edits: Map<object, string>
    /** Words that are printed with `./` before each pattern. */
    readonly dotted: Set<object>
    readonly outputs: Map<object, Feed>
    readonly calls: FunctionCall[]
    /** Texts already judged as shell. */
    readonly texts: Set<string>
    /** Functions that run, or may run, their arguments: `run() { "$@"; }`. */
    readonly runsArguments: Set<string>
  }
  /** Both return undefined, so that a check can end with `return judge.block(…)`. */
  block(rule: string, reason: string): undefined
  raise(rule: CommandRule, reason: string): undefined
  /** Judges a command given as its arguments. */
  invoke(args: readonly Arg[], place: WalkState): CommandOutcome
  /** Judges a script that is part of the tree. */
  script(script: ParsedScript, place: WalkState): Flow
  /** Judges text that a command would run as shell. `print` is the text printed again from its tree; undefined when it cannot be read. */
  text(text: string, place: WalkState, inner: Inner): { readonly print: string | undefined; readonly flow: Flow }
}

/** `shared`: the text runs in the same shell, so it sees the shell's variables and functions and may change its directory. */
export type Inner = { readonly shared: boolean; readonly positional?: readonly Arg[] }

export const noFeed: Feed = { kind: 'none', text: '', downloads: false }
export const anyFeed: Feed = { kind: 'unknown', text: '', downloads: false }

export function literalArg(text: string, word?: Word): Arg {
  return { texts: [text], kind: 'literal', fixed: true, vanishes: false, several: false, downloads: false, word, globs: [] }
}

/** @returns the single certain text of an argument */
export function sure(arg: Arg | undefined): string | undefined {
  return arg?.kind === 'literal' && arg.texts.length === 1 ? arg.texts[0] : undefined
}

/** Unquoted and not a pattern itself: a file name with spaces splits, and the parts no longer begin like the whole name. */
export function scatters({ kind, several, globs, word }: Arg): boolean {
  return several && (kind === 'name' || kind === 'glob') && !(word && globs.includes(word))
}

/** Tells whether the argument may expand to this word or contain it. */
export function couldBe(arg: Arg, word: RegExp): boolean {
  if (arg.kind === 'number') return false
  if (arg.kind === 'literal') return arg.texts.some((text) => word.test(text))
  return arg.several || arg.texts.some((text) => /^[\u{F8FF}*?[-]/u.test(text))
}

/** @returns the single text of an argument as it is spelled, patterns included */
export function spelled(arg: Arg | undefined): string | undefined {
  return arg && arg.texts.length === 1 && (arg.kind === 'literal' || arg.kind === 'glob') ? arg.texts[0] : undefined
}

/** @returns the argument without its first characters (`--file=x` → `x`) */
export function tail(arg: Arg, from: number): Arg {
  return { ...arg, texts: arg.texts.map((text) => text.slice(from)) }
}

export function unionOf(a: Cwds, b: Cwds): Cwds {
  if (!a || !b) return
  const all = [...new Set([...a, ...b])]
  return all.length > 8 ? undefined : all
}

const ranks: readonly TextKind[] = ['literal', 'glob', 'number', 'name', 'unknown']

export function widest(a: TextKind, b: TextKind): TextKind {
  return ranks.indexOf(a) > ranks.indexOf(b) ? a : b
}

export function basename(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1)
}

/** @returns the path as absolute, without `.` and `..`, from its text alone */
export function resolvePath(path: string, cwd: string): string {
  const names: string[] = []
  for (const name of (path.startsWith('/') ? path : `${cwd}/${path}`).split('/')) {
    if (name === '..') names.pop()
    else if (name !== '' && name !== '.') names.push(name)
  }
  return `/${names.join('/')}`
}
