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
  /** How many secrets of each are known here, and how many users have it. */
  const known = new Map<Redactor, { count: number; users: number }>()

  function learn(): void {
    for (const [user, has] of known) {
      if (user.count() === has.count) continue
      for (const [value, label] of user.entries()) all.register(value, nameOfLabel(label))
      has.count = user.count()
    }
  }

  return {
    redact(value) {
      learn()
      return all.json(value)
    },
    learnFrom(user) {
      const has = known.get(user) ?? { count: 0, users: 0 }
      has.users += 1
      known.set(user, has)
      learn()
      return () => {
        has.users -= 1
        if (has.users === 0) known.delete(user)
      }
    },
  }
}
