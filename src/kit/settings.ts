/** Defines settings tables with one row per key; types, checks, docs and environment names derive from the rows. */

import type { JsonObject } from './json.ts'

/** The allowed forms of a text value; `says` completes the message "must be …". */
export const forms = {
  agent: { pattern: '^[a-z0-9][a-z0-9-]{0,63}$', says: 'the name of an agent: lower-case letters, digits and "-"' },
  any: { pattern: '^[^\\u0000]+$', says: 'some text' },
  command: { pattern: '^[^\\s/\\u0000]+$', says: 'a command name without path or arguments, such as "rm"' },
  domain: {
    pattern:
      '^(?:@(?:npm|pypi|crates|go|rubygems|github)|(?:\\*\\.)?[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*)$',
    says: 'a host name such as "api.example.org", or "*.example.org" for what lies below it (no scheme, port or path), or a list: "@npm", "@pypi", "@crates", "@go", "@rubygems", "@github"',
  },
  plugin: { pattern: '^[a-z0-9][a-z0-9-]{0,63}$', says: 'the name of a plugin: lower-case letters, digits and "-"' },
  provider: { pattern: '^[A-Za-z0-9][A-Za-z0-9_-]*$', says: 'the name of a provider: letters, digits, "-" and "_"' },
  snowflake: { pattern: '^\\d{17,20}$', says: 'a Discord id: 17 to 20 digits ("Copy Channel ID", "Copy User ID")' },
  telegram: { pattern: '^\\d{1,19}$', says: 'a Telegram user id: digits, such as "123456789"' },
  tool: { pattern: '^[A-Za-z0-9_.-]+$', says: 'the name of a tool, such as "file_read"' },
  toolVariable: {
    pattern: '^([\\w-]+:)?(?!(PATH|HOME|BASH_ENV)$|LD_|GLIBC_|GIT_)[A-Za-z_]\\w*$',
    says: 'NAME or TOOL:NAME of a variable (not PATH, HOME, BASH_ENV, LD_*, GLIBC_*, GIT_*)',
  },
  variable: { pattern: '^[A-Z_][A-Z0-9_]*$', says: 'the NAME of an environment variable, such as "OPENAI_API_KEY", not the key itself' },
} as const

export type Form = keyof typeof forms

type Common = {
  readonly about: string
  /**
   * The rights of a project's file over this key; absent: none. `free`: set it. `stricter`: set an earlier choice, `true`, a smaller
   * number or a subset of the user's list. `union`: add to the user's list.
   */
  readonly project?: 'free' | 'stricter' | 'union'
  /** A short environment variable in addition to the generic one. */
  readonly env?: string
  readonly required?: true
  /** Describes the effect of a missing key without a constant default; `computed`: the program always finds a value. */
  readonly absent?: string
  readonly computed?: string
  /** `init` writes this key into a new file; for the others it shows the default or this example as a comment. */
  readonly init?: 'written'
  readonly example?: string | number | readonly string[]
}

export type Row = Common &
  (
    | { readonly type: 'text'; readonly form?: Form; readonly default?: string }
    | { readonly type: 'choice'; readonly values: readonly string[]; readonly default?: string }
    | { readonly type: 'boolean'; readonly default?: boolean }
    | {
        readonly type: 'whole' | 'number'
        readonly min: number
        readonly max: number
        readonly unit: string
        readonly default?: number
        /** The number of the first specification, which `init --seed-defaults` writes into a new file. */
        readonly seed?: number
      }
    /** `relative`: a path in a file may be relative to the folder of that file. */
    | { readonly type: 'path'; readonly default?: string; readonly relative?: boolean }
    | { readonly type: 'url'; readonly default?: string }
    | { readonly type: 'paths'; readonly default?: readonly string[] }
    | {
        readonly type: 'words'
        readonly form: Form
        readonly default?: readonly string[]
        readonly filled?: boolean
        /** An item may also be "*". */
        readonly everyone?: boolean
      }
    | { readonly type: 'ports'; readonly default?: readonly number[] }
    | { readonly type: 'map' }
    /** A whole table of the file, which its owner reads. */
    | { readonly type: 'table' }
  )

/** Rows by key, spelled as in TOML. */
export type Rows = { readonly [key: string]: Row }

/** A time limit. */
export const seconds = { type: 'number', min: 0.01, max: 86_400, unit: 'seconds' } as const

/** `max_tool_rounds` → `maxToolRounds`. */
type Camel<Key> = Key extends `${infer Head}_${infer Rest}` ? `${Head}${Capitalize<Camel<Rest>>}` : Key

type Types = {
  readonly text: string
  readonly boolean: boolean
  readonly whole: number
  readonly number: number
  readonly path: string
  readonly url: string
  readonly paths: readonly string[]
  readonly words: readonly string[]
  readonly ports: readonly number[]
  readonly map: { readonly [hint: string]: string }
  readonly table: JsonObject
}

type ValueOf<R> = R extends { type: 'choice'; values: readonly (infer Word)[] }
  ? Word
  : R extends { type: keyof Types }
    ? Types[R['type']]
    : never

/** There is always a value: a default, a required key, or a value that the program computes. */
type Certain = { readonly default: unknown } | { readonly required: true } | { readonly computed: string }

/** The values of a settings table, as the program sees them. */
export type Values<R extends Rows> = {
  readonly [Key in keyof R as R[Key] extends Certain ? Camel<Key> : never]: ValueOf<R[Key]>
} & { readonly [Key in keyof R as R[Key] extends Certain ? never : Camel<Key>]?: ValueOf<R[Key]> }

/** `read` returns the value of a key, checked against its row, or undefined; then the default applies. */
export function withDefaults<const R extends Rows>(rows: R, read: (key: string) => unknown): Values<R> {
  const values = Object.entries(rows).map(([key, row]) => [camel(key), read(key) ?? defaultOf(row)])
  return Object.fromEntries(values.filter(([, value]) => value !== undefined)) as Values<R>
}

export function camel(key: string): string {
  return key.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
}

export function defaultOf(row: Row): string | number | boolean | readonly string[] | readonly number[] | undefined {
  return 'default' in row ? row.default : undefined
}

/** Finds only the table's own rows: every object has a key `constructor`. */
export function rowOf(rows: Rows, key: string): Row | undefined {
  return Object.hasOwn(rows, key) ? rows[key] : undefined
}
