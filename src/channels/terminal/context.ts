/** What everything at a command line gets: streams, environment, home. */

import type { HostContext, Setup } from '../../host/api.ts'
import type { Ending } from '../../runtime/event.ts'
import type { Printer } from './printer.ts'
import type { StatusLine } from './status-line.ts'

export type CliContext = HostContext & {
  readonly process: {
    readonly stdout: Printer
    readonly stderr: Printer
    readonly env: HostContext['env']
  }
  /** What is under way, at a terminal. */
  readonly status: StatusLine
  /** The reader of stdout went away: stop writing, stop working. */
  readonly outputClosed: () => boolean
  /** Why stdout could not be written, when it was not that its reader went away. */
  readonly outputFailure: () => string | undefined
  /** The number that a command ends with for this ending. */
  /** Why a command failed, in sentences: "error: …". */
  readonly explain: (error: unknown) => string
  readonly exitCodeOf: (code: Ending['code']) => number
}

export type CliSetup = Setup<CliContext>
