/**
 * Handles signals of a turn: the first Ctrl-C cancels the turn, the second ends the program at once; SIGTERM and SIGHUP cancel it and end
 * the program within five seconds.
 */

import { readFileSync } from 'node:fs'
import { statFields } from '../../kit/proc.ts'

/** How long a turn may take to end after SIGTERM, in milliseconds, because SIGKILL usually follows soon. */
const drainMs = 5000

/** The exit code is 130 for every signal, as for every cancelled turn; 143 (SIGHUP: 129) when the turn did not end in time. */
export function onInterrupt(cancel: (by: string) => void): Disposable & { readonly signal: AbortSignal; stop(): void } {
  const controller = new AbortController()
  const begin = (by: string) => {
    controller.abort()
    cancel(by)
  }
  const interrupt = () => {
    if (controller.signal.aborted) process.exit(130)
    begin('Ctrl-C')
  }
  const end = (by: string, code: number) => () => {
    setTimeout(() => process.exit(code), drainMs).unref()
    if (!controller.signal.aborted) begin(by)
  }
  const terminate = end('SIGTERM', 143)
  const hangUp = end('SIGHUP', 129)
  process.on('SIGINT', interrupt)
  process.on('SIGTERM', terminate)
  if (!survivesHangUp()) process.on('SIGHUP', hangUp)
  const stop = () => {
    process.off('SIGINT', interrupt)
    process.off('SIGTERM', terminate)
    process.off('SIGHUP', hangUp)
  }
  return { signal: controller.signal, stop, [Symbol.dispose]: stop }
}

/** True when `nohup` started this process: its user wants the turn to continue. */
function survivesHangUp(): boolean {
  try {
    // The mask of ignored signals, in decimal: odd when it contains SIGHUP, number 1.
    const ignored = statFields(readFileSync('/proc/self/stat', 'latin1'))(33)
    return '13579'.includes(ignored[ignored.length - 1] ?? ' ')
  } catch {
    return false
  }
}
