/** The error of a program that never comes to rest. */

/** More events were selected, with no external one between them, than the caller allowed. `last` are the labels of the newest, `by` who asked for them. */
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
