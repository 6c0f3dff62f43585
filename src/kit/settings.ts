/** A table of settings: one row a key, plain data beside its owner. Types, checks, docs and environment names all derive from the rows. */

/** What a word must look like; `says` completes "must be …". */
export const forms = {
  agent: { pattern: '^[a-z0-9][a-z0-9-]{0,63}$', says: 'the name of an agent: lower-case letters, digits and "-"' },
  any: { pattern: '^[^\\u0000]+$', says: 'some text' },
  command: { pattern: '^[^\\s/\\u0000]+$', says: 'a command name without path or arguments, such as "rm"' },
  domain: {
    pattern: '^(\\*\\.)?[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*$',
    says: 'a host name such as "api.example.org", or "*.example.org" for what lies below it (no scheme, port or path)',
  },
  provider: { pattern: '^[A-Za-z0-9][A-Za-z0-9_-]*$', says: 'the name of a provider: letters, digits, "-" and "_"' },
  snowflake: { pattern: '^\\d{17,20}$', says: 'a Discord channel id: 17 to 20 digits ("Copy Channel ID")' },
  tool: { pattern: '^[A-Za-z0-9_.-]+$', says: 'the name of a tool, such as "file_read"' },
  variable: { pattern: '^[A-Z_][A-Z0-9_]*$', says: 'the NAME of an environment variable, such as "OPENAI_API_KEY", not the key itself' },
} as const

export type Form = keyof typeof forms

type Common = {
  readonly about: string
  /**
   * What a project's file may do with it; absent: nothing. `free`: set it. `stricter`: an earlier choice, `true`, a smaller number or a part of
   * the list that the user has. `union`: add to the user's list.
   */
  readonly project?: 'free' | 'stricter' | 'union'
  /** A short environment variable besides the generic one. */
  readonly env?: string
  readonly required?: true
  /** What stands in where the key is missing and there is no plain default; `computed`: the program always finds a value. */
  readonly absent?: string
  readonly computed?: string
  /** `init` writes the key into a new file; the others it only shows, with their default or this example. */
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
        /** In place of the default where the user has no config file; `init` writes it into a new one. */
        readonly work?: number
      }
    /** `relative`: also in a file it may start at the folder of the file. */
    | { readonly type: 'path'; readonly default?: string; readonly relative?: boolean }
    | { readonly type: 'url'; readonly default?: string }
    | { readonly type: 'paths'; readonly default?: readonly string[] }
    | { readonly type: 'words'; readonly form: Form; readonly default?: readonly string[]; readonly filled?: boolean }
    | { readonly type: 'ports'; readonly default?: readonly number[] }
    | { readonly type: 'map' }
  )

/** By the key as it is spelled in TOML. */
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
}

type ValueOf<R> = R extends { type: 'choice'; values: readonly (infer Word)[] }
  ? Word
  : R extends { type: keyof Types }
    ? Types[R['type']]
    : never

/** There is always a value: a default, a key that must be there, or one that the program finds. */
type Certain = { readonly default: unknown } | { readonly required: true } | { readonly computed: string }

/** What the program sees of a table of rows. */
export type Values<R extends Rows> = {
  readonly [Key in keyof R as R[Key] extends Certain ? Camel<Key> : never]: ValueOf<R[Key]>
} & { readonly [Key in keyof R as R[Key] extends Certain ? never : Camel<Key>]?: ValueOf<R[Key]> }

/** `read` gives the value of a key, checked by its row, or undefined: then the default counts. */
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

/** Only a row of the table's own: `constructor` is a key of every object. */
export function rowOf(rows: Rows, key: string): Row | undefined {
  return Object.hasOwn(rows, key) ? rows[key] : undefined
}
