/** Defines the context of all command-line code: streams, environment, home. */

import type { HostContext, Setup } from '../../host/api.ts'
import type { Ending } from '../../runtime/event.ts'
import type { Printer } from './printer.ts'
import type { StatusLine } from './status-line.ts'

export type CliContext = HostContext & {
  readonly process: { readonly stdout: Printer; readonly stderr: Printer; readonly env: HostContext['env'] }
  /** Shows the current activity at a terminal. */
  readonly status: StatusLine
  /** Leaves out notes on stderr from now on. */
  readonly quiet: () => void
  /** True when the reader of stdout has gone away: stop writing, stop working. */
  readonly outputClosed: () => boolean
  /** Why writing to stdout failed, when the reader going away was not the reason. */
  readonly outputFailure: () => string | undefined
  /** Explains the failure of a command in sentences: "error: …". */
  readonly explain: (error: unknown) => string
  /** Returns the exit code of a command with this ending. */
  readonly exitCodeOf: (code: Ending['code']) => number
}

export type CliSetup = Setup<CliContext>
