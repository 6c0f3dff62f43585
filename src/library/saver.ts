/** Saves the state of a store through the caller's function: one call at a time, and of several waiting calls only the last state. */

import { errorText } from '../kit/errors.ts'

export type SaveOptions<State> = {
  /** Receives the whole state. It is called again only when the call before has ended. */
  onPersist?: (state: State) => void | Promise<void>
  /** Calls onPersist after changes, once for all changes of one turn of the event loop (default: false). */
  autoPersist?: boolean
  /** Receives the failure of an automatic call; absent: it becomes a warning of the process. */
  onPersistError?: (error: unknown) => void
}

/** `save` rejects with what the caller's function throws. */
export function createSaver<State>(options: SaveOptions<State>, snapshot: () => State) {
  const { onPersist, autoPersist = false, onPersistError = warn } = options
  const calls: { last: Promise<void>; waiting?: Promise<void> | undefined } = { last: Promise.resolve() }

  async function save(): Promise<void> {
    calls.waiting ??= calls.last.then(() => {
      calls.waiting = undefined
      return onPersist?.(snapshot())
    })
    const mine = calls.waiting
    calls.last = mine.catch(() => {})
    await mine
  }

  return { save, changed: () => void (autoPersist && save().catch(onPersistError)) }
}

function warn(error: unknown): void {
  process.emitWarning(`onPersist failed, so the last changes are not saved: ${errorText(error)}`)
}
