/** Draws the progress of long work as one line of the terminal. */

import type { CliContext } from '../channels/terminal/context.ts'
import { isTerminal } from '../channels/terminal/tty.ts'

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
