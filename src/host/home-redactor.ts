/** Takes the secrets of all users of a home out of what any of them stores: it learns from each of them, and forgets nothing. */

import type { Redact } from '../runtime/port.ts'
import { createRedactor, nameOfLabel, type Redactor } from '../security/redaction/redact.ts'

export type HomeRedactor = {
  readonly redact: Redact
  /** @returns a function for when this user is gone: nothing more is learned from it */
  learnFrom(user: Redactor): () => void
}

export function createHomeRedactor(): HomeRedactor {
  const all = createRedactor()
  /** How many secrets of each user are known here. */
  const known = new Map<Redactor, number>()

  function learn(): void {
    for (const [user, count] of known) {
      if (user.count() === count) continue
      for (const [value, label] of user.entries()) all.register(value, nameOfLabel(label))
      known.set(user, user.count())
    }
  }

  return {
    redact(value) {
      learn()
      return all.json(value)
    },
    learnFrom(user) {
      known.set(user, 0)
      learn()
      return () => void known.delete(user)
    },
  }
}
