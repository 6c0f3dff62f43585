/** Defines the error for a program that never comes to rest. */

/**
 * The engine selected more events without an external one in between than the caller allowed. `last` has the labels of the latest events,
 * `by` the threads that requested them.
 */
export class LivelockError extends Error {
  override readonly name = 'LivelockError'
  constructor(
    readonly maxSelections: number,
    readonly last: readonly string[],
    readonly by: readonly string[] = [],
  ) {
    super(
      `livelock: more than ${maxSelections} events in a row with no external one between, the last ${last.join(', ')}; ` +
        'a thread requests again what it was just given, or raise maxSelections if so long a chain is meant',
    )
  }
}
