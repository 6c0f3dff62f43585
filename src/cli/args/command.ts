/** Defines a command: a data record with its flags, its arguments and the function that runs it. */

import type { CliContext } from '../../channels/terminal/context.ts'

/** Returns the known names that start with the partial word. */
export type Complete = (context: CliContext, partial: string) => Promise<readonly string[]>

/** Kinds of names that the home knows. */
export type HomeNames =
  | 'agents'
  | 'changes'
  | 'conversations'
  | 'mcp'
  | 'plugins'
  | 'providers'
  | 'skills'
  | 'sops'
  | 'templates'
  | 'tokens'
  | 'tools'

type Word =
  | { readonly type: 'text' }
  | { readonly type: 'choice'; readonly values: readonly string[] }
  /** From 0 to 999,999,999, unless `min` and `max` say otherwise. */
  | { readonly type: 'whole'; readonly min?: number; readonly max?: number; readonly unit?: string }

type Common = { readonly about: string; readonly complete?: Complete | HomeNames }

/** The key of a flag is its name in camelCase: `maxTurns` is typed `--max-turns`. */
export type Flag = Common & {
  /** One letter: `-m`. */
  readonly short?: string
  /** A second, shorter name: `--auto`. */
  readonly also?: string
  /** The setting that this flag overrides for one call, dotted as in TOML. The setting defines the allowed values and the default. */
  readonly setting?: string
} & ((Word & { readonly many?: true; readonly default?: number }) | { readonly type: 'boolean' })

/** The key of an argument is its name in help: `<query>`. */
export type Argument = Common & Word & { readonly optional?: true; readonly many?: true }

export type Flags = { readonly [name: string]: Flag }
/** In the order of the command line; only the last argument may be `many`. */
export type Arguments = { readonly [name: string]: Argument }

type One<Row> = Row extends { readonly type: 'boolean' }
  ? boolean
  : Row extends { readonly type: 'whole' }
    ? number
    : Row extends { readonly type: 'choice'; readonly values: infer Values extends readonly string[] }
      ? Values[number]
      : string

type Value<Row> = Row extends { readonly many: true } ? readonly One<Row>[] : One<Row>

type Certain<Rows, Mark> = { [Name in keyof Rows]: Rows[Name] extends Mark ? Name : never }[keyof Rows]

/** The flags as a command receives them; a flag that was not given is absent. */
export type Given<Rows extends Flags> = { readonly [Name in Certain<Rows, { readonly default: number }>]: Value<Rows[Name]> } & {
  readonly [Name in Exclude<keyof Rows, Certain<Rows, { readonly default: number }>>]?: Value<Rows[Name]>
}

/** The arguments as a command receives them. */
export type Taken<Rows extends Arguments> = {
  readonly [Name in Exclude<keyof Rows, Certain<Rows, { readonly optional: true; readonly many?: never }>>]: Value<Rows[Name]>
} & { readonly [Name in Certain<Rows, { readonly optional: true; readonly many?: never }>]?: Value<Rows[Name]> }

/** An example: the text after the command's name, and what it does. */
export type Example = readonly [line: string, does: string]

export type None = { readonly [name: string]: never }

export type Command<F extends Flags = None, A extends Arguments = None> = {
  readonly flags?: F
  readonly args?: A
  readonly examples: readonly Example[]
  /** A longer text for the command's help. */
  readonly details?: () => string | Promise<string>
  /** Exit codes besides 0, 1 and 2; with a meaning where this command's differs. */
  readonly exits?: readonly (number | readonly [code: number, meaning: string])[]
  /** The exit code for a wrong command line, when it is not 2. */
  readonly usageExit?: number
  /** Suggests what the user most likely meant; printed below the errors of a command line. */
  readonly advice?: (words: readonly string[]) => string | undefined
  /** Exit code 0 when it returns. @throws CliExit and FailureError for every other exit code */
  run(context: CliContext, flags: Given<F>, args: Taken<A>): Promise<void> | void
}

/** Declares a command, so that `run` knows its flags and arguments. */
export function command<const F extends Flags = None, const A extends Arguments = None>(row: Command<F, A>): Command<F, A> {
  return row
}

type Values = { readonly [name: string]: unknown }

/** A command whose flags and arguments only `scan` knows. */
export type AnyCommand = Omit<Command<Flags, Arguments>, 'run'> & {
  run(context: CliContext, flags: Values, args: Values): Promise<void> | void
}

/** Converts `maxTurns` to `--max-turns`. */
export function spelled(name: string): string {
  return `--${name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`
}

/** An entry of the list: a command, or a group of commands. */
export type Listed = { readonly name: string; readonly about: string } & (
  | { readonly load: () => Promise<AnyCommand> }
  /** `alone`: the command that runs when the user types only the name of the group. */
  | { readonly load?: never; readonly alone?: string }
)
export type Runnable = Extract<Listed, { load: () => Promise<AnyCommand> }>
export type List = readonly Listed[]

type Named = { readonly row: Listed; readonly rest: readonly string[] }

/** Returns the entry with the longest name at the start of the line, and the remaining words. */
export function named(list: List, line: readonly string[]): Named | undefined {
  for (let count = Math.min(3, line.length); count > 0; count--) {
    const words = line.slice(0, count)
    const row = list.find(({ name }) => name === words.join(' '))
    if (row && !words.some((word) => word.includes(' '))) return { row, rest: line.slice(count) }
  }
  return undefined
}

export function isRunnable(row: Listed): row is Runnable {
  return row.load !== undefined
}

/** Returns the commands and groups directly below this group, or the top-level entries without a group. */
export function below(list: List, group?: string): List {
  const start = group === undefined ? '' : `${group} `
  return list.filter(({ name }) => name.startsWith(start) && !name.slice(start.length).includes(' '))
}

/** Returns the last word of a name: `list` for `memory list`. */
export function lastWord(name: string): string {
  return name.slice(name.lastIndexOf(' ') + 1)
}

/** Returns the command that runs for the name of a group alone. */
export function aloneIn(list: List, { alone }: Extract<Listed, { load?: never }>): Runnable | undefined {
  return list.filter(isRunnable).find(({ name }) => name === alone)
}
