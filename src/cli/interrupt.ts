/** Ctrl-C: the first cancels the turn, the second ends the program at once. SIGTERM: cancels, and ends within five seconds. */

export type Interrupt = { readonly signal: AbortSignal; stop(): void }

/** What a turn may take to end after SIGTERM, in milliseconds: whoever sent it is about to send SIGKILL. */
const drainMs = 5000

/** The exit code is 130 for both, as for every cancelled turn; 143 when the turn did not end in time. */
export function onInterrupt(cancel: (by: string) => void): Interrupt {
  const controller = new AbortController()
  const begin = (by: string) => {
    controller.abort()
    cancel(by)
  }
  const interrupt = () => {
    if (controller.signal.aborted) process.exit(130)
    begin('Ctrl-C')
  }
  const terminate = () => {
    setTimeout(() => process.exit(143), drainMs).unref()
    if (!controller.signal.aborted) begin('SIGTERM')
  }
  process.on('SIGINT', interrupt)
  process.on('SIGTERM', terminate)
  return {
    signal: controller.signal,
    stop: () => {
      process.off('SIGINT', interrupt)
      process.off('SIGTERM', terminate)
    },
  }
}
