/**
 * Ends a child when the worker dies. Bubblewrap's --die-with-parent alone is too late for a worker that dies in the first moments of its child:
 * the first process of the namespace asks the kernel for that signal only after the program runs.
 */

/** The guard reads from a pipe that only the worker holds: the end of the pipe is the worker's death. */
const script = 'read -r _ || kill -KILL "$@"'

/** `targets`: process numbers, and process groups as numbers below zero. */
export function startGuard(targets: readonly number[]): { stop(): void } {
  const guard = Bun.spawn(['/bin/sh', '-c', script, 'sh', ...targets.map(String)], {
    env: {},
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  })
  guard.unref()
  return { stop: () => guard.kill('SIGKILL') }
}
