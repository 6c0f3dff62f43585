/** What the walk through a script knows at each point, and what it can ask the judgement to do. */

import type { ParsedScript, Word } from 'unbash'
import type { CommandRule } from '../command-rules.ts'
import type { Bound } from '../syntax/survey.ts'
import type { CommandPolicy } from '../verdict.ts'

/** Stands in texts for a part that is known only at run time. */
export const HOLE = '\u{F8FF}'

/**
 * How well a text is known. `glob`: names below its fixed beginning. `number`: digits. `name`: a name below the working directory, neither
 * absolute nor with `..`. `unknown`: anything at all.
 */
export type Kind = 'literal' | 'glob' | 'number' | 'name' | 'unknown'

/** One argument as the command would get it; `texts` are all it may be, with holes unless `kind` is literal or glob. */
export type Arg = {
  readonly texts: readonly string[]
  readonly kind: Kind
  /** Holds no expansion: the same on every run. */
  readonly fixed: boolean
  /** May turn out to be no argument at all, moving those after it. */
  readonly vanishes: boolean
  /** May fall apart into more than one argument: unquoted, or `"$@"`. */
  readonly several: boolean
  readonly downloads: boolean
  readonly word: Word | undefined
  /** Patterns it comes from, which can be printed as `./*` so that no file name is taken for an option. */
  readonly globs: readonly Word[]
  /** Of a `name` that is no word of the script: it begins with a folder, whole. */
  readonly led?: boolean
}

/** What a command reads from its standard input, or writes to its standard output. */
export type Feed = {
  readonly kind: Kind | 'none'
  /** All of it where `kind` is literal; else what is known of it, with holes, and empty where nothing is. */
  readonly text: string
  readonly downloads: boolean
  /** Each name in it begins with a folder. */
  readonly led?: boolean
}

/** Directories a command may run in; undefined when that is not known. */
export type Cwds = readonly string[] | undefined

/** Everything one text (the script itself, the text of a `sh -c`) declares. */
export type Scope = {
  readonly variables: ReadonlyMap<string, readonly Bound[]>
  readonly functions: ReadonlySet<string>
  /** Directories change somewhere in it. */
  readonly moves: boolean
  /** Variables may change by means that are not followed. */
  readonly opaque: boolean
  readonly unset: ReadonlySet<string>
  /** `$0`, `$1` … of a `sh -c`; undefined when not known. */
  readonly positional: readonly Arg[] | undefined
  /** A shell started by another: what it does not set itself may come from there. */
  readonly inherits: boolean
}

export type Place = {
  readonly cwds: Cwds
  readonly scope: Scope
  readonly feed: Feed
  /** Nesting so far. */
  readonly level: number
  /** Variables that certainly have one of their values here. */
  readonly assigned: ReadonlySet<string>
  readonly inFunction: string | undefined
  /** Started by a program, which knows nothing of the shell's functions. */
  readonly external: boolean
  /** Runs beside its caller: in a pipe or in the background. */
  readonly forks: boolean
}

export type Flow = { readonly ok: Cwds; readonly fail: Cwds; readonly assigned: ReadonlySet<string>; readonly output: Feed }

/** What one simple command does to what follows. */
export type Outcome = { readonly cwds?: { readonly to: Cwds }; readonly output?: Feed }

export type Finding = { readonly rule: string; readonly reason: string }

/** A function called in `place`, from another one if `from` names it. */
export type Called = { readonly from: string | undefined; readonly to: string; readonly args: readonly Arg[]; readonly place: Place }

/** One judgement in progress: collects findings, and closes the circle from commands back to the texts they run. */
export type Look = {
  readonly policy: CommandPolicy
  readonly found: {
    blocked: Finding | undefined
    high: Finding | undefined
    nodes: number
    downloads: number
    /** Variables looked up so far: values that double at every step must end. */
    lookups: number
    readonly executables: Set<string>
    readonly writes: Set<string>
    readonly edits: Map<object, string>
    /** Words printed with `./` before each pattern. */
    readonly dotted: Set<object>
    readonly outputs: Map<object, Feed>
    readonly calls: Called[]
    /** Texts that were judged as shell already. */
    readonly texts: Set<string>
    /** Functions that run, or may run, what they are given as arguments: `run() { "$@"; }`. */
    readonly runsArguments: Set<string>
  }
  /** Both return nothing, so that a check can end with them. */
  block(rule: string, reason: string): undefined
  raise(rule: CommandRule, reason: string): undefined
  /** Judges a command given as its arguments. */
  invoke(args: readonly Arg[], place: Place): Outcome
  /** Judges a script that is part of the tree. */
  script(script: ParsedScript, place: Place): Flow
  /** Judges text that a command would run as shell; its re-print, unless it cannot be read. */
  text(text: string, place: Place, inner: Inner): { readonly print: string | undefined; readonly flow: Flow }
}

/** `shared`: runs in the same shell, so it sees its variables and functions and may change directory. */
export type Inner = { readonly shared: boolean; readonly positional?: readonly Arg[] }

export const noFeed: Feed = { kind: 'none', text: '', downloads: false }
export const anyFeed: Feed = { kind: 'unknown', text: '', downloads: false }

export function literalArg(text: string, word?: Word): Arg {
  return { texts: [text], kind: 'literal', fixed: true, vanishes: false, several: false, downloads: false, word, globs: [] }
}

/** The one text of an argument that is certain. */
export function sure(arg: Arg | undefined): string | undefined {
  return arg?.kind === 'literal' && arg.texts.length === 1 ? arg.texts[0] : undefined
}

/** Unquoted and not a pattern itself: a file name with spaces falls apart, and the parts no longer begin as the whole does. */
export function scatters({ kind, several, globs, word }: Arg): boolean {
  return several && (kind === 'name' || kind === 'glob') && !(word && globs.includes(word))
}

/** Whether it may turn out to be this word, or to hold it. */
export function couldBe(arg: Arg, word: RegExp): boolean {
  if (arg.kind === 'number') return false
  if (arg.kind === 'literal') return arg.texts.some((text) => word.test(text))
  return arg.several || arg.texts.some((text) => /^[\u{F8FF}*?[-]/u.test(text))
}

/** The one text of an argument as it is spelled, patterns included. */
export function spelled(arg: Arg | undefined): string | undefined {
  return arg && arg.texts.length === 1 && (arg.kind === 'literal' || arg.kind === 'glob') ? arg.texts[0] : undefined
}

/** The same argument without its first characters (`--file=x` → `x`). */
export function tail(arg: Arg, from: number): Arg {
  return { ...arg, texts: arg.texts.map((text) => text.slice(from)) }
}

export function unionOf(a: Cwds, b: Cwds): Cwds {
  if (!a || !b) return
  const all = [...new Set([...a, ...b])]
  return all.length > 8 ? undefined : all
}

const ranks: readonly Kind[] = ['literal', 'glob', 'number', 'name', 'unknown']

export function widest(a: Kind, b: Kind): Kind {
  return ranks.indexOf(a) > ranks.indexOf(b) ? a : b
}

export function basename(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1)
}

/** Absolute and without `.` and `..`, by text alone. */
export function resolvePath(path: string, cwd: string): string {
  const names: string[] = []
  for (const name of (path.startsWith('/') ? path : `${cwd}/${path}`).split('/')) {
    if (name === '..') names.pop()
    else if (name !== '' && name !== '.') names.push(name)
  }
  return `/${names.join('/')}`
}
