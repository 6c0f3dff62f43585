/** Prints what a command that lists things has found: one JSON value for programs, else a line each, or on stderr that there is nothing. */

import type { CliContext } from '../channels/terminal/context.ts'
import { isTerminal } from '../channels/terminal/tty.ts'

/** `lines`: one for each item. */
type Listing = {
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

/** At a terminal, after half a second, draws one line with the progress, and erases it at 1. */
export function progressOn({ process: { stderr }, env }: CliContext, what: string): (share: number) => void {
  if (!isTerminal(2) || env.TERM === 'dumb') return () => {}
  const begin = performance.now()
  let drawn = false
  return (share) => {
    if (!drawn && (share === 1 || performance.now() - begin < 500)) return
    drawn = share < 1
    stderr.write([{ mark: 'eraseLine' }, ...(drawn ? [`${what}: ${Math.floor(share * 100)} %`] : [])])
  }
}
