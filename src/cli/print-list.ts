/** Prints what a command that lists things has found: one JSON value for programs, else a line each, or on stderr that there is nothing. */

import type { CliContext } from '../channels/terminal/context.ts'

/** `lines`: one for each item. */
export type Listing = {
  readonly items: readonly unknown[]
  readonly json: boolean
  readonly lines: readonly string[]
  /** Said when there are no items. */
  readonly none: string
}

export function printList({ process: { stdout, stderr } }: Pick<CliContext, 'process'>, { items, json, lines, none }: Listing): void {
  if (json) return void stdout.write(`${JSON.stringify(items)}\n`)
  if (items.length === 0) stderr.write(`${none}\n`)
  else stdout.write(lines.map((line) => `${line}\n`).join(''))
}
