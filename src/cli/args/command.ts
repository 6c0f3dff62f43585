/** What a command is: one row of data with its flags, its arguments and the function that runs it. */

import type { CliContext } from '../../channels/terminal/context.ts'

/** Names known here that start with what was typed so far. */
export type Complete = (context: CliContext, partial: string) => Promise<readonly string[]>

type Word =
  | { readonly type: 'text' }
  | { readonly type: 'choice'; readonly values: readonly string[] }
  /** From 0 to 999,999,999, unless it says otherwise. */
  | { readonly type: 'whole'; readonly min?: number; readonly max?: number; readonly unit?: string }

type Common = {
  readonly about: string
  readonly complete?: Complete
}

/** Its key is its name in camelCase: `maxTurns` is typed `--max-turns`. */
export type Flag = Common & {
  /** One letter: `-m`. */
  readonly short?: string
  /** The setting whose place it takes for this call, dotted as in TOML. The setting says what is allowed; no default stands here. */
  readonly setting?: string
} & ((Word & { readonly many?: true; readonly default?: number }) | { readonly type: 'boolean' })

/** Its key is what help calls it: `<query>`. */
export type Argument = Common & Word & { readonly optional?: true; readonly many?: true }

export type Flags = { readonly [name: string]: Flag }
/** In the order of the command line; only the last one may be `many`. */
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

/** What a command receives of its flags; one that was not given is absent. */
export type Given<Rows extends Flags> = { readonly [Name in Certain<Rows, { readonly default: number }>]: Value<Rows[Name]> } & {
  readonly [Name in Exclude<keyof Rows, Certain<Rows, { readonly default: number }>>]?: Value<Rows[Name]>
}

/** The same of its arguments. */
export type Taken<Rows extends Arguments> = {
  readonly [Name in Exclude<keyof Rows, Certain<Rows, { readonly optional: true; readonly many?: never }>>]: Value<Rows[Name]>
} & { readonly [Name in Certain<Rows, { readonly optional: true; readonly many?: never }>]?: Value<Rows[Name]> }

/** A line to type after the name of the command, and what it does. */
export type Example = readonly [line: string, does: string]

type None = { readonly [name: string]: never }

export type Command<F extends Flags = None, A extends Arguments = None> = {
  readonly flags?: F
  readonly args?: A
  readonly examples: readonly Example[]
  /** More than the one sentence of the list, for its help. */
  readonly details?: () => string | Promise<string>
  /** Exit codes besides 0, 1 and 2; with a meaning where it is another one here. */
  readonly exits?: readonly (number | readonly [code: number, meaning: string])[]
  /** The exit code of a wrong command line, where it is not 2. */
  readonly usageExit?: number
  /** What was most likely meant, told below the faults of a command line. */
  readonly advice?: (words: readonly string[]) => Promise<string | undefined>
  /** Ends with exit code 0. @throws CliExit and FailureError for every other */
  run(context: CliContext, flags: Given<F>, args: Taken<A>): Promise<void> | void
}

type Values = { readonly [name: string]: unknown }

/** One whose flags and arguments are known to `scan` alone. */
export type AnyCommand = Omit<Command<Flags, Arguments>, 'run'> & {
  run(context: CliContext, flags: Values, args: Values): Promise<void> | void
}

/** `--max-turns` of `maxTurns`. */
export function spelled(name: string): string {
  return `--${name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`
}
