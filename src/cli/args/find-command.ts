/** Which command the first words of a line name. */

import type { AnyCommand } from './command.ts'

/** A line of the list: a command, or a group of commands. */
export type Listed = { readonly name: string; readonly about: string } & (
  | { readonly load: () => Promise<AnyCommand> }
  /** `alone`: the command of the group that its name alone stands for. */
  | { readonly load?: never; readonly alone?: string }
)
export type Runnable = Extract<Listed, { load: () => Promise<AnyCommand> }>
export type List = readonly Listed[]

export type Named = { readonly row: Listed; readonly rest: readonly string[] }

/** The longest name that the line starts with, and the words after it. */
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

/** The commands and groups right below this one; without a name those at the top. */
export function below(list: List, group?: string): List {
  const start = group === undefined ? '' : `${group} `
  return list.filter(({ name }) => name.startsWith(start) && !name.slice(start.length).includes(' '))
}

/** `list` of `memory list`. */
export function lastWord(name: string): string {
  return name.slice(name.lastIndexOf(' ') + 1)
}

/** The command that the name of a group alone stands for. */
export function aloneIn(list: List, { alone }: Extract<Listed, { load?: never }>): Runnable | undefined {
  return list.filter(isRunnable).find(({ name }) => name === alone)
}
