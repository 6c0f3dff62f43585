/** Finds the command that the first words of a line name. */

import type { AnyCommand } from './command.ts'

/** An entry of the list: a command, or a group of commands. */
export type Listed = { readonly name: string; readonly about: string } & (
  | { readonly load: () => Promise<AnyCommand> }
  /** `alone`: the command that runs when the user types only the name of the group. */
  | { readonly load?: never; readonly alone?: string }
)
export type Runnable = Extract<Listed, { load: () => Promise<AnyCommand> }>
export type List = readonly Listed[]

export type Named = { readonly row: Listed; readonly rest: readonly string[] }

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
