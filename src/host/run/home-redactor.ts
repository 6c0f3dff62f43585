/**
 * Redacts the secrets of every user of a home from everything that any of them stores: it learns from each user and never forgets a secret.
 */

import type { Redact } from '../../runtime/port.ts'
import { createRedactor, nameOfLabel, type Redactor } from '../../security/redaction/redact.ts'

export type HomeRedactor = {
  readonly redact: Redact
  /** @returns a function to call when this user leaves: the redactor then stops learning from it */
  learnFrom(user: Redactor): () => void
}

export function createHomeRedactor(): HomeRedactor {
  const all = createRedactor()
  /** For each user redactor: how many of its secrets are known here, and how many users share it. */
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
