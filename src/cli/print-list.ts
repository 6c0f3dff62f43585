/** Prints what a command has found: JSON for programs, else a line for each thing, or on stderr that there is nothing. */

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

/** `text` is printed as it is, with its newlines. */
type Printed = { readonly json?: boolean | undefined; readonly value: unknown; readonly text: string }

export function printOne({ process: { stdout } }: Pick<CliContext, 'process'>, { json, value, text }: Printed): void {
  stdout.write(json ? `${JSON.stringify(value)}\n` : text)
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
