/** Defines the exit codes: stable, documented in --help, one meaning each. */

import type { Ending } from '../runtime/event.ts'

export const exitCodes = {
  answered: 0,
  error: 1,
  usage: 2,
  denied: 3,
  approval_needed: 4,
  limit: 5,
  budget: 6,
  timeout: 7,
  provider: 8,
  integrity: 9,
  estop: 10,
  stalled: 1,
  cancelled: 130,
} as const satisfies Record<Ending['code'] | 'usage', number>

export const exitCodeHelp: readonly (readonly [number, string])[] = [
  [0, 'answered, or done'],
  [1, 'error'],
  [2, 'usage: a flag, argument or command is wrong'],
  [3, 'denied: a tool was refused and the turn could not do what was asked'],
  [4, 'approval needed, but nobody to ask'],
  [5, 'limit reached (tool rounds)'],
  [6, 'budget spent (tokens, money)'],
  [7, 'timeout (the run, or the model)'],
  [8, 'provider failed'],
  [9, 'integrity: receipts, journal or session altered, or no receipt kept'],
  [10, 'stopped (estop)'],
  [130, 'cancelled (Ctrl-C, SIGTERM)'],
]

/** Ends a command with this code; the message goes to stderr unless it is empty. */
export class CliExit extends Error {
  constructor(
    readonly code: number,
    message = '',
  ) {
    super(message)
  }
}
