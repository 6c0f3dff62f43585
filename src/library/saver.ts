/** Saves the state of a store through the caller's function: one call at a time, and of several waiting calls only the last state. */

import { errorText } from '../kit/errors.ts'

export type SaveOptions<State> = {
  /** Receives the whole state. It is called again only when the call before has ended. */
  onPersist?: (state: State) => void | Promise<void>
  /** Calls onPersist after changes, once for all changes of one turn of the event loop (default: false). A failure is a warning of the process. */
  autoPersist?: boolean
}

/** `save` rejects with what the caller's function throws. */
export function createSaver<State>({ onPersist, autoPersist = false }: SaveOptions<State>, snapshot: () => State) {
  const calls: { last: Promise<void>; waiting?: Promise<void> | undefined } = { last: Promise.resolve() }

  function save(): Promise<void> {
    calls.waiting ??= calls.last.then(() => {
      calls.waiting = undefined
      return onPersist?.(snapshot())
    })
    calls.last = calls.waiting.catch(() => {})
    return calls.waiting
  }

  const warn = (error: unknown) => process.emitWarning(`onPersist failed, so the last changes are not saved: ${errorText(error)}`)
  return { save, changed: () => void (autoPersist && save().catch(warn)) }
}
