/** Ctrl-C: the first cancels the turn, the second ends the program at once. */

export type Interrupt = { readonly signal: AbortSignal; stop(): void }

export function onInterrupt(cancel: () => void): Interrupt {
  const controller = new AbortController()
  const handle = () => {
    if (controller.signal.aborted) process.exit(130)
    controller.abort()
    cancel()
  }
  process.on('SIGINT', handle)
  process.on('SIGTERM', handle)
  return {
    signal: controller.signal,
    stop: () => {
      process.off('SIGINT', handle)
      process.off('SIGTERM', handle)
    },
  }
}
