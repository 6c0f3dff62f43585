/** A message from outside, whichever way it came, and the way back for its answer. */

export type Heard = {
  /** Whom the answer goes to: the channel of the wire, or of Discord. */
  readonly channel: string
  readonly text: string
  /** Where it came from, for the log. */
  readonly from: string
  /** Never rejects; what could not be delivered is in the log. */
  answer(text: string): Promise<void>
  /** Somebody is at work on it, where that can be shown. */
  working?(): void
}
